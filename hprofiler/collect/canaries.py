"""One process goes before all like it: which are alike, and what becomes of the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hprofiler.agent import CheckedProcess, ProcessOutcome
from hprofiler.base.errors import HostError
from hprofiler.model import Process, Status

TRIES = 5
"""Canaries of one kind, on all hosts, of which nothing was learnt: then no more are tried."""
NO_CANARY = "look at the first before others are recorded; --no-canary records them all the same"
SECONDS = 2
"""How long a canary is recorded."""


class Kind(NamedTuple):
    """What breaks alike: JVMs of one version on one processor, recorded by one engine, on whatever host."""

    arch: str
    version: str
    engine: str

    def __str__(self) -> str:
        return f"JDK {self.version} on {self.arch} by {self.engine}"


def kind_of(arch: str, process: Process, engine: str) -> Kind | None:
    """None of what is no JVM: nothing is loaded into it."""
    return Kind(arch, process.jvm_version or "unknown", engine) if process.is_jvm else None


class Canaries:
    """Which kinds of JVM may be recorded."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: set[Kind] = set()
        self._verdicts: dict[Kind, str] = {}
        self._in_vain: Counter[Kind] = Counter()

    def verdict(
        self, kind: Kind, who: str, watch: Callable[[], str | None], check: Callable[[], None]
    ) -> str | None:
        """Why processes of this kind are not to be recorded, "" where they may be.

        Who asks first has one watched, `who`: `watch` gives the verdict, or None where nothing was learnt,
        and so does this. Then the next who asks is the first again, `TRIES` times. A host that is lost
        meanwhile speaks against the kind. The others wait; `check` raises where they shall wait no longer.
        """
        with self._changed:
            while kind in self._under_way:
                self._changed.wait(1.0)
                check()
            if kind in self._verdicts:
                return self._verdicts[kind]
            self._under_way.add(kind)
        learnt: str | None = None
        try:
            learnt = watch()
        except HostError as lost:
            first = f"the host of the first, {who}, was lost: {lost.reason}"
            learnt = f"none like it ({kind}) is recorded after {first}"
            reason = f"{lost.reason}; {who} was being recorded before the others (--canary)"
            raise type(lost)(lost.stage, reason, lost.remedy) from lost
        finally:
            self._learn(kind, learnt)
        return learnt

    def _learn(self, kind: Kind, learnt: str | None) -> None:
        with self._changed:
            self._under_way.discard(kind)
            if learnt is None:
                self._in_vain[kind] += 1
                if self._in_vain[kind] == TRIES:
                    learnt = f"none like it ({kind}) is recorded: {TRIES} were tried, and not one could be"
            if learnt is not None:
                self._verdicts[kind] = learnt
            self._changed.notify_all()


@dataclass
class Cleared:
    """Who of a host's processes may be recorded, and how; and why not the others."""

    processes: list[Process] = field(default_factory=list)
    engines: dict[int, str] = field(default_factory=dict)
    """By pid, where it may be no other one."""
    refused: list[ProcessOutcome] = field(default_factory=list)


@dataclass(frozen=True)
class Lookout:
    """Where processes wait for canaries, and how one of them is recorded alone by an engine."""

    name: str
    arch: str
    watch: Callable[[Process, str], ProcessOutcome]
    check: Callable[[], None]
    """Raises where nobody shall wait any longer."""
    told: Callable[[str], None]
    """Hears of each that went before and is well."""


def clear(
    canaries: Canaries, lookout: Lookout, foreseen: Sequence[tuple[Process, CheckedProcess]]
) -> Cleared:
    """Each JVM waits for the first of its kind, or is it. What would not be recorded is not tried."""
    cleared = Cleared()
    for process, verdict in foreseen:
        kind = kind_of(lookout.arch, process, verdict.engine)
        refusal: ProcessOutcome | None = None
        if kind and verdict.outcome.status is Status.FAILED:
            refusal = verdict.outcome
        elif kind:
            refusal = _refusal(canaries, lookout, process, kind)
            cleared.engines[process.pid] = kind.engine
        if refusal:
            cleared.refused.append(refusal)
        else:
            cleared.processes.append(process)
    return cleared


def _refusal(canaries: Canaries, lookout: Lookout, process: Process, kind: Kind) -> ProcessOutcome | None:
    """Why a process is not recorded: what became of the first, which it may be itself; None where it is."""
    own: ProcessOutcome | None = None
    first = f"process {process.pid} of {lookout.name}"

    def watch() -> str | None:
        nonlocal own
        own = lookout.watch(process, kind.engine)
        return _meaning(first, kind, own)

    why = canaries.verdict(kind, first, watch, lookout.check)
    if own and own.status is Status.FAILED:
        reason = f"it went first (--canary): {own.reason}"
        return replace(own, pid=process.pid, reason=reason, remedy=own.remedy or NO_CANARY)
    if own:
        who = f"process {process.pid}" + (f" ({process.label})" if process.label else "")
        lookout.told(f"canary: {who} was recorded alone for {SECONDS} s by {kind.engine}: fine")
    return ProcessOutcome(process.pid, Status.FAILED, "prepare", why, NO_CANARY) if why else None


def _meaning(first: str, kind: Kind, outcome: ProcessOutcome) -> str | None:
    """What a canary's end means for all like it."""
    if outcome.status is not Status.FAILED:
        return ""
    if outcome.stage != "record":
        return None
    return f"none like it ({kind}) is recorded after what became of the first, {first}: {outcome.reason}"
