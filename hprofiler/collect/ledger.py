"""Outcomes of one host: every process that was found has exactly one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from hprofiler.agent.messages import Ended, ProcessOutcome, Started
from hprofiler.agent.session import Found
from hprofiler.model import Outcome, Params, Pauses, Process, Recording, Status

_LOST = "its host was lost: "
_AFTER_IT_BEGAN = ("start", "record", "fetch", "clean")


class Began(NamedTuple):
    """After how many seconds the recording of a process began, 0 if with the others; for how long the process
    had lived then, and the CPU time that it had used."""

    joined: float = 0.0
    age: float | None = None
    cpu_before: float | None = None


class Ledger:
    """Filled as things happen; `lines` closes it. `events` are the requested ones."""

    def __init__(self, host: str, events: Sequence[str]) -> None:
        self._host = host
        self._events = events
        self._processes: dict[int, Process] = {}
        self._began: dict[int, Began] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._problems: dict[int, list[Outcome]] = {}
        self._recordings: dict[tuple[int, str], Recording] = {}
        self._goes_on: set[tuple[int, str]] = set()
        self._pauses: dict[int, Pauses] = {}

    def as_it_is(self) -> Ledger:
        """A copy: the worker of an abandoned visit may still fill it."""
        now = Ledger(self._host, self._events)
        # Read before the recordings, because an outcome arrives after its recordings.
        now._outcomes = dict(self._outcomes)
        now._problems = {pid: list(lines) for pid, lines in dict(self._problems).items()}
        now._recordings = dict(self._recordings)
        now._goes_on = set(self._goes_on)
        now._pauses = dict(self._pauses)
        now._processes = dict(self._processes)
        now._began = dict(self._began)
        return now

    @property
    def recordings(self) -> tuple[Recording, ...]:
        return tuple(self._recordings.values())

    @property
    def pauses(self) -> tuple[Pauses, ...]:
        return tuple(self._pauses.values())

    def found(self, processes: Sequence[Process]) -> None:
        self._processes.update((process.pid, process) for process in processes)

    def forget(self, pid: int) -> None:
        """A process that was found is not a part of the recording."""
        self._processes.pop(pid, None)

    def rename(self, known: Callable[[Process], Process]) -> None:
        """More is known of the processes now."""
        for pid, process in tuple(self._processes.items()):
            self._processes[pid] = known(process)

    def started(self, event: Started, seconds: float) -> None:
        """The recording of a process began after so many seconds."""
        self._began[event.pid] = Began(seconds, event.age, event.cpu_before)

    def began(self, pid: int) -> Began:
        return self._began.get(pid, Began())

    def going_on(self) -> list[tuple[Process, float]]:
        """Processes without an outcome, and of how many seconds there are parts."""
        processes = [one for one in self._processes.values() if one.pid not in self._outcomes]
        return [(one, self._seconds(one) or 0.0) for one in processes]

    def process(self, pid: int) -> Process:
        return self._processes[pid]

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self._processes.values())

    def recorded(self, recording: Recording, more: bool = False) -> None:
        """A profile was received and stored, or a part of one, of which there is `more`."""
        key = recording.pid, recording.event
        (self._goes_on.add if more else self._goes_on.discard)(key)
        before = self._recordings.get(key)
        self._recordings[key] = before.with_part(recording) if before else recording
        if recording.times_off and not (before and before.times_off):
            reason = (
                f"the times of its {recording.event} samples are {recording.times_off:.0f} s off: left out"
            )
            remedy = "look whether the host's clock was set during the recording, and record again"
            line = self._made(recording.process, Status.DEGRADED, "fetch", reason, remedy)
            off: Params = {"event": recording.event, "seconds": recording.times_off}
            self._problems.setdefault(recording.pid, []).append(
                replace(line, code="times-impossible", parameters=off)
            )

    def paused(self, pauses: Pauses) -> None:
        before = self._pauses.get(pauses.pid)
        self._pauses[pauses.pid] = before.with_more(pauses) if before else pauses

    def problem(self, pid: int, reason: str, remedy: str = "") -> None:
        """A profile or file of a process could not be stored."""
        line = self._made(self._processes[pid], Status.FAILED, "fetch", reason, remedy, "profile-unusable")
        self._problems.setdefault(pid, []).append(line)

    def outcome(self, outcome: ProcessOutcome) -> Outcome | None:
        """Note an outcome of the agent; returns it if it concerns the whole host."""
        pid, status = outcome.pid, outcome.status
        if pid is None:
            line = Outcome(self._host, status, outcome.stage, outcome.reason, outcome.remedy)
            return replace(line, code=outcome.code, parameters=outcome.parameters, notes=outcome.notes)
        earlier = self._outcomes.get(pid)
        if not earlier or earlier.status is not Status.FAILED:  # the first failure is the cause
            line = self._made(self._processes[pid], status, outcome.stage, outcome.reason, outcome.remedy)
            gone = outcome.ended is Ended.PROCESS
            cut = outcome.ended is Ended.CUT and status is Status.DEGRADED
            self._outcomes[pid] = replace(
                line,
                gone=gone,
                seconds=outcome.seconds if cut else None,
                code=outcome.code,
                parameters=outcome.parameters,
                notes=outcome.notes,
            )
        return None

    def lines(self, host_failure: Outcome | None) -> tuple[Outcome, ...]:
        """One outcome per process; `host_failure` is the reason for those without one."""
        return tuple(self._closed(process, host_failure) for process in self._processes.values())

    def _closed(self, process: Process, host_failure: Outcome | None) -> Outcome:
        said = self._outcomes.get(process.pid)
        if said and said.status is Status.FAILED:
            return said
        problems = self._problems.get(process.pid, [])
        if not problems and (not said or said.status is Status.OK):
            problems = self._missing(process, said, host_failure)
        if not problems:
            return said or self._made(process, Status.OK, "record", "", code="recorded")
        recorded = any(pid == process.pid for pid, _ in self._recordings)
        told = [line for line in [said, *problems] if line and line.reason]
        return replace(
            problems[0],
            status=Status.DEGRADED if recorded else Status.FAILED,
            reason="; ".join(line.reason for line in told),
            notes=tuple(note for line in told for note in line.every_note),
            remedy=next((line.remedy for line in told if line.remedy), ""),
            seconds=said.seconds if said else self._seconds(process),
            gone=said is not None and said.gone,
        )

    def _seconds(self, process: Process) -> float | None:
        """How long a process was recorded whose last part never came."""
        kept = [one.seconds for (pid, _), one in self._recordings.items() if pid == process.pid]
        return max(kept) if kept and any(pid == process.pid for pid, _ in self._goes_on) else None

    def _missing(self, process: Process, said: Outcome | None, host_failure: Outcome | None) -> list[Outcome]:
        """A problem if profiles are missing without a reason."""
        missing = [event for event in self._events if (process.pid, event) not in self._recordings]
        rest_lost = any(pid == process.pid for pid, _ in self._goes_on)
        if not missing and not (rest_lost and host_failure):
            return []
        if host_failure and not said:
            reason = f"{_LOST}{host_failure.reason}"
            line = self._made(process, Status.FAILED, host_failure.stage, reason)
            return [replace(line, lost=True, code=host_failure.code, parameters=host_failure.parameters)]
        what = f" ({', '.join(missing)})" if len(missing) < len(self._events) else ""
        reason = f"the agent sent no profile{what}"
        return [self._made(process, Status.FAILED, "fetch", reason, code="profile-missing")]

    def _made(
        self, process: Process, status: Status, stage: str, reason: str, remedy: str = "", code: str = ""
    ) -> Outcome:
        return Outcome(self._host, status, stage, reason, remedy, process.pid, process.label, code=code)


def first_failure(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The outcome of a failed host."""
    failures: list[Outcome] = [line for line in outcomes if line.status is Status.FAILED and line.pid is None]
    return failures[0] if failures else None


def with_causes(outcomes: Sequence[Outcome], causes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Outcomes with the causes that the target's manager reports, of the host or a process (by `label`).

    A cause precedes the outcome's own reason. Its first note says what happened, without the name of the
    process.
    """
    lines = tuple(outcomes)
    for cause in causes:
        if any(_explains(cause, line) for line in lines):
            lines = tuple(_explained(cause, line) for line in lines)
        else:
            lines = (*lines, cause)
    return lines


def _explains(cause: Outcome, line: Outcome) -> bool:
    if cause.stage != "record" or line.stage not in _AFTER_IT_BEGAN:
        return False
    if cause.label:
        return line.label == cause.label and line.gone
    return line.status is Status.FAILED


def _explained(cause: Outcome, line: Outcome) -> Outcome:
    if not _explains(cause, line):
        return line
    what = cause.every_note[0].reason
    notes = (cause.every_note[0], *(() if line.lost else line.every_note))
    reason = f"{_LOST}{what}" if line.lost else f"{what}; {line.reason}"
    status = Status.DEGRADED if line.status is Status.OK else line.status
    return replace(
        line, status=status, reason=reason, code=cause.code, parameters=cause.parameters, notes=notes
    )


def doubts(host: str, found: Found) -> Iterator[Outcome]:
    """One outcome for all doubtful matches, because there may be many."""
    doubtful = [one for one in found.ignored if one.doubtful]
    if doubtful:
        more = f", and {len(doubtful) - 1} more" if len(doubtful) > 1 else ""
        yield Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"pid {doubtful[0].pid} ({doubtful[0].reason}){more}",
            "`hprofiler ps` lists it; to record it, use -j pid:N",
            code="doubtful-match",
        )
