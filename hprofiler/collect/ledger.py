"""What became of each process of one host: every one that was found ends up with exactly one line."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from hprofiler.agent import ProcessOutcome
from hprofiler.model import Outcome, Process, Recording, Status


class Ledger:
    """Filled in the order in which things happen; `lines` closes it."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._processes: Dict[int, Process] = {}
        self._outcomes: Dict[int, Outcome] = {}
        self._recordings: Dict[int, Recording] = {}

    @property
    def recordings(self) -> Tuple[Recording, ...]:
        return tuple(self._recordings.values())

    def found(self, processes: Sequence[Process]) -> None:
        self._processes = {process.pid: process for process in processes}

    def process(self, pid: int) -> Process:
        return self._processes[pid]

    def recorded(self, recording: Recording) -> None:
        """A profile has come whole and is kept."""
        self._recordings[recording.process.pid] = recording

    def came(self, pid: int) -> bool:
        """Whether a profile of the process was announced already."""
        return pid in self._recordings or pid in self._outcomes

    def failed(self, pid: int, stage: str, reason: str, remedy: str = "") -> None:
        self._line(pid, Status.FAILED, stage, reason, remedy)

    def outcome(self, outcome: ProcessOutcome) -> Optional[Outcome]:
        """Note what the agent says; gives the line back where it speaks of the whole host."""
        if outcome.pid is None:
            return Outcome(self._host, outcome.status, outcome.stage, outcome.reason, outcome.remedy)
        self._line(outcome.pid, outcome.status, outcome.stage, outcome.reason, outcome.remedy)
        return None

    def _line(self, pid: int, status: Status, stage: str, reason: str, remedy: str) -> None:
        earlier = self._outcomes.get(pid)
        if earlier and earlier.status is Status.FAILED:
            return  # the first failure is the one that explains
        label = self._processes[pid].label
        self._outcomes[pid] = Outcome(self._host, status, stage, reason, remedy, pid, label)

    def lines(self, host_failure: Optional[Outcome]) -> Tuple[Outcome, ...]:
        """One line a process; `host_failure` explains those that were never heard of again."""
        return tuple(self._closed(process, host_failure) for process in self._processes.values())

    def _closed(self, process: Process, host_failure: Optional[Outcome]) -> Outcome:
        said = self._outcomes.get(process.pid)
        if said and (said.status is Status.FAILED or process.pid in self._recordings):
            return said
        if process.pid in self._recordings:
            return self._made(process, Status.OK, "record", "")
        if host_failure:
            return self._made(
                process, Status.FAILED, host_failure.stage, f"lost with its host: {host_failure.reason}"
            )
        return self._made(process, Status.FAILED, "fetch", "the agent sent no profile of it")

    def _made(self, process: Process, status: Status, stage: str, reason: str) -> Outcome:
        return Outcome(self._host, status, stage, reason, "", process.pid, process.label)


def first_failure(outcomes: Sequence[Outcome]) -> Optional[Outcome]:
    """The line that says why a host failed as a whole."""
    failures: List[Outcome] = [line for line in outcomes if line.status is Status.FAILED and line.pid is None]
    return failures[0] if failures else None
