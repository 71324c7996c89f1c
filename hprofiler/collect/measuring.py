"""Visits that ask where the memory of processes is, and record nothing (`memory`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hprofiler.agent.messages import MemoryOutcome
from hprofiler.agent.session import AgentSession
from hprofiler.collect.asking import AskingVisit
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Listener, Reach, VisitGroup, silent
from hprofiler.model import Host, HostFacts, Outcome, Process, Selector
from hprofiler.model.memory import MeasuredProcess, Memory

_ASKED = 8
"""Processes of one request: an agent asks four at a time, and has the time for them even if no JVM answers,
8 s each. With a histogram it is one, so that one JVM of a host stands still at a time."""
_ANSWER, _HISTOGRAM = 25.0, 125.0
"""Seconds that an agent takes at most for a request."""


@dataclass(frozen=True)
class Looks:
    """How often the processes are read, one look `every` so many seconds after the one before.

    With `heap`, JVMs count their objects at the last look: they stand still meanwhile.
    """

    times: int = 1
    every: float = 10.0
    heap: bool = False


@dataclass(frozen=True)
class HostMeasured:
    """The processes of a host that were read, and outcomes of the host and of others."""

    host: Host
    facts: HostFacts | None = None
    processes: tuple[MeasuredProcess, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


def measure(
    hosts: Sequence[Host],
    selector: Selector,
    looks: Looks,
    reach: Reach,
    listener: Listener = silent,
    stop: Stop | None = None,
) -> list[HostMeasured]:
    """Read the selector's processes on all hosts; one result per host, in order.

    The first `stop.request()` ends it after the answer that is on its way, the second at once.
    """
    group = VisitGroup(reach, listener, stop)
    visits = [_MeasuringVisit(host, group, selector, looks) for host in hosts]
    group.run(visits)
    return [visit.measured() for visit in visits]


class _MeasuringVisit(AskingVisit):
    interrupted = "interrupted before anything was read"
    stage_of_looks = "measure"

    def __init__(self, host: Host, group: VisitGroup, selector: Selector, looks: Looks) -> None:
        super().__init__(host, group, selector, looks.times, looks.every)
        self._heap = looks.heap
        self._seen: dict[int, list[tuple[float, Memory]]] = {}

    def work(self) -> None:
        session = self.open_session()
        self.look_often(session, self.choose(session))
        self.finish(session)
        self.report("done" if self.found else "idle")

    def look(self, session: AgentSession, processes: Sequence[Process], look: int) -> None:
        heap = self._heap and look == self.times
        step = 1 if heap else _ASKED
        self.enter("measure", detail=self.detail(look))
        for place in range(0, len(processes), step):
            self.limit((_HISTOGRAM if heap else _ANSWER) + self.reach.timeout)
            measured = session.memory(processes[place : place + step], heap)
            for one in measured.processes:
                self._keep(measured.time, one, look)
            if self.over.is_set():
                break

    def _keep(self, when: float, one: MemoryOutcome, look: int) -> None:
        assert one.pid is not None
        self.note_process(one, look)
        if one.memory:
            seen = self._seen.setdefault(one.pid, [])
            if seen:  # names of files are most of a look
                time, memory = seen[-1]
                seen[-1] = (time, replace(memory, files=()))
            seen.append((when, one.memory))

    def measured(self) -> HostMeasured:
        seen = (
            MeasuredProcess(replace(self.found[pid], command=""), tuple(looks))  # which may have secrets
            for pid, looks in sorted(self._seen.items())
        )
        return HostMeasured(self.host, self.facts, tuple(seen), self.all_outcomes(self._seen))
