"""Which stacks cannot be trusted: broken ones, which have lost their callers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hprofiler._flamegraph import BROKEN_STACKS, Profile
from hprofiler.model import HostRecord, Outcome, number_of

MOST_BROKEN = 1 / 3
"""A process with a larger part of broken stacks is not trusted: its totals would be wrong."""
BROKEN_PATTERN = f"^{re.escape(BROKEN_STACKS)}$"
NO_FRAME_POINTERS = "no-frame-pointers"
_CODES = (NO_FRAME_POINTERS, "broken-stacks")


@dataclass(frozen=True)
class Untrusted:
    """A process most of whose callers are not known: `share` of its stacks (0 to 1) are broken."""

    host: str
    pid: int
    label: str
    code: str
    share: float
    remedy: str = ""


def untrusted(hosts: Iterable[HostRecord], event: str) -> dict[tuple[str, int], Untrusted]:
    """The processes whose recording of an event is not trusted, by host and pid, as the agents found."""
    found = {}
    for host in hosts:
        recorded = {one.pid for one in host.recordings if one.event == event}
        for outcome in host.outcomes:
            share, code = broken_share(outcome, event)
            if outcome.pid in recorded and share > MOST_BROKEN:
                process = outcome.pid, outcome.label, code, share, outcome.remedy
                found[host.name, outcome.pid] = Untrusted(host.name, *process)
    return found


def broken_share(outcome: Outcome, event: str) -> tuple[float, str]:
    """The share of the event's stacks that the agent found broken, 0 to 1, and the code of why."""
    for note in outcome.every_note:
        share = number_of(note.parameters, "share", 1)
        if note.code in _CODES and note.parameters.get("event") == event and share:
            return share, note.code
    return 0.0, ""


def broken_part(profile: Profile) -> float:
    """The part of a profile's first value, 0 to 1, that is of processes that are not trusted."""
    total = profile.total()
    trusted = profile.filter(exclude=BROKEN_PATTERN).total()
    return (total - trusted) / total if total else 0.0


@dataclass(frozen=True)
class UnsureCallers:
    """Functions that compiled Java code called may be below wrong callers, in `share` (0 to 1) of an event.

    `processes` were compiled before the profiler was loaded, without debug information. `code` has the names
    of the functions, `methods` those whose totals are not known for it.
    """

    processes: int
    share: float
    code: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


DEBUG_FLAGS = "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
