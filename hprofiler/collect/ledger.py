"""What became of each process of one host: every one that was found ends up with exactly one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hprofiler.agent import Ended, Found, ProcessOutcome
from hprofiler.model import Outcome, Process, Recording, Status

_LOST = "its host was lost: "
_AFTER_IT_BEGAN = ("start", "record", "fetch", "clean")


class Ledger:
    """Filled in the order in which things happen; `lines` closes it. `events` are those asked for."""

    def __init__(self, host: str, events: Sequence[str]) -> None:
        self._host = host
        self._events = events
        self._processes: dict[int, Process] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._problems: dict[int, list[Outcome]] = {}
        self._recordings: dict[tuple[int, str], Recording] = {}

    def as_it_is(self) -> Ledger:
        """A copy of what stands in it. The worker of a visit that nobody waits for may go on to fill it."""
        now = Ledger(self._host, self._events)
        # An outcome comes after the recordings that it is of, and so is read before them.
        now._outcomes = dict(self._outcomes)
        now._problems = {pid: list(lines) for pid, lines in dict(self._problems).items()}
        now._recordings = dict(self._recordings)
        now._processes = dict(self._processes)
        return now

    @property
    def recordings(self) -> tuple[Recording, ...]:
        return tuple(self._recordings.values())

    def found(self, processes: Sequence[Process]) -> None:
        self._processes = {process.pid: process for process in processes}

    def process(self, pid: int) -> Process:
        return self._processes[pid]

    @property
    def processes(self) -> tuple[Process, ...]:
        return tuple(self._processes.values())

    def recorded(self, recording: Recording) -> None:
        """A profile has come whole and is kept."""
        self._recordings[recording.process.pid, recording.event] = recording

    def problem(self, pid: int, reason: str, remedy: str = "") -> None:
        """Something that the agent sent of a process (an event's profile, a file) could not be kept."""
        line = self._made(self._processes[pid], Status.FAILED, "fetch", reason, remedy, "profile-unusable")
        self._problems.setdefault(pid, []).append(line)

    def outcome(self, outcome: ProcessOutcome) -> Outcome | None:
        """Note what the agent says; gives the line back where it speaks of the whole host."""
        pid, status = outcome.pid, outcome.status
        if pid is None:
            line = Outcome(self._host, status, outcome.stage, outcome.reason, outcome.remedy)
            return replace(line, code=outcome.code, parameters=outcome.parameters, notes=outcome.notes)
        earlier = self._outcomes.get(pid)
        if not earlier or earlier.status is not Status.FAILED:  # the first failure is the one that explains
            line = self._made(self._processes[pid], status, outcome.stage, outcome.reason, outcome.remedy)
            gone = outcome.ended is Ended.PROCESS and status is not Status.OK
            self._outcomes[pid] = replace(
                line,
                gone=gone,
                seconds=_seconds_of_cut(outcome),
                code=outcome.code,
                parameters=outcome.parameters,
                notes=outcome.notes,
            )
        return None

    def lines(self, host_failure: Outcome | None) -> tuple[Outcome, ...]:
        """One line a process; `host_failure` explains those that were never heard of again."""
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
            seconds=said.seconds if said else None,
            gone=said is not None and said.gone,
        )

    def _missing(self, process: Process, said: Outcome | None, host_failure: Outcome | None) -> list[Outcome]:
        """A problem where profiles are missing without a word."""
        missing = [event for event in self._events if (process.pid, event) not in self._recordings]
        if not missing:
            return []
        if host_failure and not said:
            reason = f"{_LOST}{host_failure.reason}"
            line = self._made(process, Status.FAILED, host_failure.stage, reason)
            return [replace(line, lost=True, code=host_failure.code)]
        what = f" ({', '.join(missing)})" if len(missing) < len(self._events) else ""
        reason = f"the agent sent no profile{what}"
        return [self._made(process, Status.FAILED, "fetch", reason, code="profile-missing")]

    def _made(
        self, process: Process, status: Status, stage: str, reason: str, remedy: str = "", code: str = ""
    ) -> Outcome:
        return Outcome(self._host, status, stage, reason, remedy, process.pid, process.label, code=code)


def _seconds_of_cut(outcome: ProcessOutcome) -> float | None:
    cut = outcome.ended is Ended.CUT and outcome.status is Status.DEGRADED
    return outcome.seconds if cut else None


def first_failure(outcomes: Sequence[Outcome]) -> Outcome | None:
    """The line that says why a host failed as a whole."""
    failures: list[Outcome] = [line for line in outcomes if line.status is Status.FAILED and line.pid is None]
    return failures[0] if failures else None


def with_causes(outcomes: Sequence[Outcome], causes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """A host's lines with what the target's manager says became of it, or of a process (by `label`).

    Where that explains a line it goes before the line's own reason, so that each thing is told once.
    The cause's first note is what became of the process, without its name.
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
    return replace(line, reason=reason, code=cause.code, parameters=cause.parameters, notes=notes)


def doubts(host: str, found: Found) -> Iterator[Outcome]:
    """One line for all of whom nobody knows whether they are meant: anybody may have many of them."""
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
