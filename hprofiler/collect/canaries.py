"""Canaries: one process of each kind of JVM is recorded alone first; the others only if that goes well."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hprofiler.agent import CheckedProcess, Ended, ProcessOutcome
from hprofiler.base.errors import HostError
from hprofiler.model import Process, Status

TRIES = 5
"""Canaries of one kind, on all hosts, that may fail before anything is recorded."""
NO_CANARY = "examine that process, or record without a canary: --no-canary"


class Kind(NamedTuple):
    """JVMs of one version on one processor, recorded by one engine: what breaks one may break all."""

    arch: str
    version: str
    engine: str

    def __str__(self) -> str:
        return f"JDK {self.version} on {self.arch} by {self.engine}"


def kind_of(arch: str, process: Process, engine: str) -> Kind | None:
    """None for a process that is not a JVM."""
    return Kind(arch, process.jvm_version or "unknown", engine) if process.is_jvm else None


class Canaries:
    """Which kinds of JVM may be recorded; shared by the visits of all hosts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: set[Kind] = set()
        self._verdicts: dict[Kind, str] = {}
        self._failed: Counter[Kind] = Counter()

    def verdict(
        self, kind: Kind, who: str, record: Callable[[], str | None], check: Callable[[], None]
    ) -> str | None:
        """Why processes of this kind must not be recorded; "" if they may.

        The first caller's process, `who`, is the canary: `record` returns the verdict, or None if it shows
        nothing about the kind, and so does this method. Then the next caller's process is the canary, up to
        `TRIES` times. Other callers wait; `check` raises when they must not wait any longer. Losing the
        host during the recording counts against the kind.
        """
        with self._changed:
            while kind in self._under_way:
                self._changed.wait(1.0)
                check()
            if kind in self._verdicts:
                return self._verdicts[kind]
            self._under_way.add(kind)
        verdict: str | None = None
        try:
            verdict = record()
        except HostError as lost:
            verdict = f"the canary for {kind} failed: the host of {who} was lost: {lost.reason}"
            reason = f"{lost.reason}; {who} was being recorded as a canary"
            raise type(lost)(lost.stage, reason, lost.remedy, lost.code) from lost
        finally:
            self._store(kind, verdict)
        return verdict

    def _store(self, kind: Kind, verdict: str | None) -> None:
        with self._changed:
            self._under_way.discard(kind)
            if verdict is None:
                self._failed[kind] += 1
                if self._failed[kind] == TRIES:
                    verdict = f"{TRIES} canaries for {kind} could not be recorded"
            if verdict is not None:
                self._verdicts[kind] = verdict
            self._changed.notify_all()


@dataclass
class Cleared:
    """Processes that may be recorded, with their engines, and outcomes of the others."""

    processes: list[Process] = field(default_factory=list)
    engines: dict[int, str] = field(default_factory=dict)
    """The engine of each pid."""
    refused: list[ProcessOutcome] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """The host of a visit, as canaries see it. `record` records one process alone by an engine."""

    name: str
    arch: str
    record: Callable[[Process, str], ProcessOutcome]
    check: Callable[[], None]
    """Raises when the visit must not wait any longer."""
    is_well: Callable[[Process, str], None]
    """Called for each canary that succeeded, with its engine."""


def clear(canaries: Canaries, place: Place, checked: Sequence[tuple[Process, CheckedProcess]]) -> Cleared:
    """Each JVM waits for the canary of its kind, or is the canary. Processes that failed the check are
    skipped."""
    cleared = Cleared()
    for process, one in checked:
        kind = kind_of(place.arch, process, one.engine)
        refusal: ProcessOutcome | None = None
        if kind and one.status is Status.FAILED:
            refusal = one
        elif kind:
            refusal = _refusal(canaries, place, process, kind)
            cleared.engines[process.pid] = kind.engine
        if refusal:
            cleared.refused.append(refusal)
        else:
            cleared.processes.append(process)
    return cleared


def _refusal(canaries: Canaries, place: Place, process: Process, kind: Kind) -> ProcessOutcome | None:
    own: ProcessOutcome | None = None
    who = f"process {process.pid} of {place.name}"

    def record() -> str | None:
        nonlocal own
        own = place.record(process, kind.engine)
        if own.ended is Ended.PROCESS and own.stage != "prepare":
            own = own.replace(
                status=Status.FAILED, stage="record", reason=f"{who} ended while it was recorded"
            )
        if own.status is not Status.FAILED:
            return ""
        if own.stage != "record":
            return None
        return f"the canary for {kind}, {who}, failed: {own.reason}"

    why = canaries.verdict(kind, who, record, place.check)
    if own and own.status is Status.FAILED:
        return own.replace(reason=f"it was the canary: {own.reason}", remedy=own.remedy or NO_CANARY)
    if own:
        place.is_well(process, kind.engine)
    return (
        ProcessOutcome(process.pid, Status.FAILED, "prepare", why, NO_CANARY, code="canary-failed")
        if why
        else None
    )
