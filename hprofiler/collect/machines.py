"""One machine may be visited under several names, or as several users: which of its visits has a process."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hprofiler.model import HostFacts, Outcome, Process, Status

_Key = tuple[str, str, str, int, int, int]
_PID = re.compile("[1-9][0-9]{0,6}")
_AGENTS = ("agent-", ".hprofiler-once-")
"""How the files of agents are called, from which they run."""


class Visitor(NamedTuple):
    """A visit by its host's name, and its agent by its user and its `session`: its pid and start time."""

    host: str
    uid: int
    session: str


class _Holder(NamedTuple):
    """`rightful` is who may record the process: root, or its own user."""

    visitor: Visitor
    rightful: bool


class Machines:
    """Who found a process first has it; but whoever may record it takes it from one who may not.

    Of root and the process's own user the first keeps it: that one is at work on it, and would not stop. For
    the same reason one who may not, and can all the same (by a capability), records it beside who takes it.

    Numbers of processes mean something within one pid namespace of one boot only: containers are none of
    their node's, and of a machine that tells neither nothing is known.

    What a machine tells of itself any host can say: a visit leaves processes only to an agent that its own
    agent sees (`pids`, `seen`). Who comes later and takes what another may not record is believed: of that
    one nothing gets lost but a failure.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[_Key, _Holder] = {}
        self._doubts: set[tuple[str, str]] = set()

    def take(self, facts: HostFacts | None, by: Visitor, processes: Sequence[Process]) -> set[Visitor]:
        """The others that have some of them; what nobody has is `by`'s from now on."""
        with self._lock:
            keys = [(key, process) for process in processes if (key := _key(facts, process))]
            for key, process in keys:
                self._take(key, _Holder(by, by.uid in (0, process.uid)))
            holders = {self._holders[key].visitor for key, _ in keys}
        return {visitor for visitor in holders if visitor.host != by.host}

    def _take(self, key: _Key, by: _Holder) -> None:
        held = self._holders.get(key)
        again = held is not None and held.visitor.host == by.visitor.host
        if held is None or again or (by.rightful and not held.rightful):
            self._holders[key] = by

    def doubt(self, host: str, others: Iterable[Visitor]) -> None:
        """From now on `others` have nothing that `host` has found."""
        with self._lock:
            self._doubts |= {(host, other.host) for other in others}

    def elsewhere(self, facts: HostFacts | None, processes: Sequence[Process]) -> dict[int, str]:
        """The hosts that have such of a visit's processes as are not its own, by pid."""
        with self._lock:
            held = [(one, self._holders.get(key)) for one in processes if (key := _key(facts, one))]
            names = [(one, holder.visitor.host) for one, holder in held if holder]
            return {
                one.pid: name
                for one, name in names
                if name != one.host and (one.host, name) not in self._doubts
            }


def _key(facts: HostFacts | None, process: Process) -> _Key | None:
    """What no other process has, on whatever host. Machines that were copied while they ran have one boot.

    Whose it is belongs to it: nobody is to be its rightful visitor by what he says of its user.
    """
    if facts is None or not facts.boot_id or not facts.pid_namespace:
        return None
    return facts.boot_id, facts.pid_namespace, facts.name, process.uid, process.pid, process.start_time


def pids(visitors: Iterable[Visitor]) -> list[int]:
    """The pids of their agents, as far as they tell some that can be."""
    told = (visitor.session.partition("-")[0] for visitor in visitors)
    return sorted({int(pid) for pid in told if _PID.fullmatch(pid)})


def seen(visitors: Iterable[Visitor], processes: Sequence[Process]) -> set[Visitor]:
    """The visitors whose agents are among the processes of a machine, as its own agent tells them.

    A process that runs as another user is none: a local user can name any, but has none of root's.
    """
    agents = [one for one in processes if one.label.startswith(_AGENTS)]
    told = {(one.uid, f"{one.pid}-{one.start_time}") for one in agents}
    return {visitor for visitor in visitors if (visitor.uid, visitor.session) in told}


def left_to_others(host: str, elsewhere: Mapping[int, str]) -> list[Outcome]:
    """A ledger line for each other name of the machine, with how many processes are left to it."""
    return [
        Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"{'1 process is' if count == 1 else f'{count} processes are'} left to {other}, "
            "which is the same machine",
            "if that is not meant, name the machine once",
        )
        for other, count in Counter(elsewhere.values()).items()
    ]


def settled(host: str, lines: Sequence[Outcome], elsewhere: Mapping[int, str]) -> tuple[Outcome, ...]:
    """The lines of a host's processes; what it failed to record and another visit has is no failure."""
    failed = {line.pid for line in lines if line.status is Status.FAILED}
    left = {pid: name for pid, name in elsewhere.items() if pid in failed}
    kept = [line for line in lines if line.pid not in left]
    idle = [Outcome(host, Status.IDLE, "find", "nothing is left to record")] if left and not kept else []
    return (*kept, *left_to_others(host, left), *idle)
