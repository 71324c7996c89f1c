"""What visits have in common that ask processes one or several times, and record nothing."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Collection, Sequence

from hprofiler.agent.messages import ProcessOutcome
from hprofiler.agent.session import AgentSession
from hprofiler.collect.ledger import doubts, first_failure
from hprofiler.collect.limits import first_processes
from hprofiler.collect.stop import AT_ONCE
from hprofiler.collect.visit import Visit, remedy_here
from hprofiler.collect.visit_group import VisitGroup
from hprofiler.model import Host, Outcome, Process, Selector, Status

_ENDED = "process-ended"


class AskingVisit(Visit):
    """Asks the selector's processes `times`, one look `every` so many seconds after the one before."""

    stage_of_looks = ""

    def __init__(self, host: Host, group: VisitGroup, selector: Selector, times: int, every: float) -> None:
        super().__init__(host, group, selector)
        self.times, self._every = times, every
        self.found: dict[int, Process] = {}
        self.over = threading.Event()
        """Set when the user has ended it: the look that goes on is the last one."""
        self._said: dict[int, Outcome] = {}
        self._ended: set[int] = set()
        self._looks = False

    def choose(self, session: AgentSession) -> Sequence[Process]:
        """The processes to ask. The others have outcomes."""
        found = self.find(session)
        self.outcomes += doubts(self.host.name, found)
        self.found = {one.pid: one for one in found.processes}
        meant, too_many = first_processes(found.processes)
        for outcome in too_many:
            self.note_process(outcome)
        return meant

    def look_often(self, session: AgentSession, meant: Sequence[Process]) -> None:
        """Ask them as often as asked for, without those that have ended."""
        self._looks = True
        began = time.monotonic()
        for look in range(1, self.times + 1):
            due = began + (look - 1) * self._every
            self.limit(None)
            if self.over.wait(max(0.0, due - time.monotonic())) and look > 1:
                break
            alive = [one for one in meant if one.pid not in self._ended]
            if not alive:
                break
            self.processes = len(alive)
            self.look(session, alive, look)

    @abstractmethod
    def look(self, session: AgentSession, processes: Sequence[Process], look: int) -> None:
        """Ask them once."""

    def detail(self, look: int) -> str:
        return f"look {look} of {self.times}" if self.times > 1 else ""

    def note_process(self, outcome: ProcessOutcome, look: int = 1) -> None:
        """The first problem of a process counts."""
        assert outcome.pid is not None
        process = self.found[outcome.pid]
        if outcome.code == _ENDED:
            self._ended.add(outcome.pid)
        if outcome.status is Status.OK or outcome.pid in self._said:
            return
        when = f"{self.detail(look)}: " if look > 1 else ""
        self._said[outcome.pid] = Outcome(
            self.host.name,
            Status.DEGRADED if look > 1 else outcome.status,
            outcome.stage,
            f"{when}{outcome.reason}",
            remedy_here(self.host, self.facts, outcome.code, process.user) or outcome.remedy,
            outcome.pid,
            process.label,
            code=outcome.code,
            parameters=outcome.parameters,
            notes=outcome.notes,
        )

    def stop(self, level: int) -> None:
        """First request: keep what there is. Second: let go."""
        self.over.set()
        if level >= AT_ONCE or not self._looks:
            super().stop(level)
        else:
            self.end_look()

    def end_look(self) -> None:
        """The user does not wait for the look that goes on. On the group's thread, which must not wait."""

    def all_outcomes(self, answered: Collection[int]) -> tuple[Outcome, ...]:
        """Those of the host and of processes; those too that were not asked."""
        lost = first_failure(tuple(self.outcomes))
        without = self.found.keys() - set(answered) - self._said.keys()
        lines = [self._lost(self.found[pid], lost) for pid in sorted(without)]
        return (*self.left_to_others(), *self.outcomes, *self._said.values(), *lines)

    def _lost(self, process: Process, why: Outcome | None) -> Outcome:
        reason = f"its host was lost: {why.reason}" if why else "not asked: it was ended before"
        return Outcome(
            self.host.name,
            Status.FAILED,
            why.stage if why else self.stage_of_looks,
            reason,
            pid=process.pid,
            label=process.label,
            lost=why is not None,
            code=why.code if why else "cancelled",
        )
