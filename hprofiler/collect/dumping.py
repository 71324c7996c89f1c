"""Visits that ask what the threads of processes do, and record nothing (`dump`)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hprofiler.agent.messages import Dumped, DumpHeader, ProcessOutcome
from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable
from hprofiler.collect.ledger import doubts, first_failure
from hprofiler.collect.limits import USUAL, Care, first_processes, refuse_busy
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit import Visit, remedy_here
from hprofiler.collect.visit_group import HostProgress, Listener, Reach, StartGate, VisitGroup, silent
from hprofiler.model import Host, Outcome, Process, Selector, Status
from hprofiler.model.dump import Dump, DumpedHost

_ANSWER, _ANSWER_WITH_OWNERS = 25.0, 55.0
"""Seconds that an agent gives a process."""
_ENDED, _FULL = "process-ended", "disk-full"
_STOPPING = "ending the dump; press Ctrl-C again to end at once"


@dataclass(frozen=True)
class Looks:
    """How often all processes are asked, one look `every` so many seconds after the one before.

    With `owners`, JVMs also say who owns locks of java.util.concurrent: they search their heap for it.
    """

    times: int = 1
    every: float = 2.0
    owners: bool = False


class DumpSink(Protocol):
    """Where texts go. Called on many threads."""

    def keep(self, host: str, dump: Dump, text: Iterator[bytes]) -> Dump:
        """Keep the text of a dump; returns it with the name of its file. Raises HostError if it cannot be
        written. The pieces raise HostError too: let it through, and keep nothing."""


def dump(
    hosts: Sequence[Host],
    selector: Selector,
    looks: Looks,
    reach: Reach,
    sink: DumpSink,
    listener: Listener = silent,
    stop: Stop | None = None,
    care: Care = USUAL,
) -> list[DumpedHost]:
    """Ask the selector's processes on all hosts at the same time; one result per host, in order.

    The first `stop.request()` ends it after the answers that are on their way, the second at once.
    """
    gate = StartGate(len(hosts), 2 * reach.timeout)
    group = VisitGroup(reach, listener, stop, gate.connecting)

    def on_stop(level: int) -> None:
        gate.open()
        group.report(HostProgress("", "stop", _STOPPING if level < AT_ONCE else "ending at once"))

    visits = [_DumpingVisit(host, group, selector, looks, sink, gate, care) for host in hosts]
    group.run(visits, on_stop)
    return [visit.dumped() for visit in visits]


class _DumpingVisit(Visit):
    interrupted = "interrupted before anything was dumped"

    def __init__(
        self,
        host: Host,
        group: VisitGroup,
        selector: Selector,
        looks: Looks,
        sink: DumpSink,
        gate: StartGate,
        care: Care,
    ) -> None:
        super().__init__(host, group, selector)
        self._looks, self._sink, self._gate, self._care = looks, sink, gate, care
        self._over = threading.Event()
        self._dumps: list[Dump] = []
        self._processes: dict[int, Process] = {}
        self._said: dict[int, Outcome] = {}
        self._ended: set[int] = set()
        self._asks = False

    def work(self) -> None:
        meant: Sequence[Process] = ()
        try:
            session = self.open_session()
            meant = self._find(session)
        finally:
            if not meant:
                self._gate.leave()
        if not meant:
            self.finish(session)
            self.report("done" if self._processes else "idle")
            return
        self.enter("wait")
        self._gate.wait()
        self.check()
        self._asks = True
        self._look_often(session, meant)
        self.finish(session)
        self.report("done")

    def _find(self, session: AgentSession) -> Sequence[Process]:
        found = self.find(session)
        self.outcomes += doubts(self.host.name, found)
        if found.processes and self.facts and not self._care.busy:
            refuse_busy(self.facts)
        meant, too_many = first_processes(found.processes)
        self._processes = {one.pid: one for one in found.processes}
        for outcome in too_many:
            self._note(outcome, 1)
        return meant

    def _look_often(self, session: AgentSession, meant: Sequence[Process]) -> None:
        began = time.monotonic()
        for look in range(1, self._looks.times + 1):
            due = began + (look - 1) * self._looks.every
            self.limit(None)
            if self._over.wait(max(0.0, due - time.monotonic())) and look > 1:
                break
            alive = [one for one in meant if one.pid not in self._ended]
            if not alive:
                break
            self.processes = len(alive)
            self._look(session, alive, look)

    def _look(self, session: AgentSession, processes: Sequence[Process], look: int) -> None:
        detail = f"look {look} of {self._looks.times}" if self._looks.times > 1 else ""
        patience = (_ANSWER_WITH_OWNERS if self._looks.owners else _ANSWER) + self.reach.timeout
        self.enter("dump", patience, detail)
        for event in session.dump(processes, self._looks.owners, self._care.agent_cpu):
            self.check_aborted()
            self.limit(patience)
            if isinstance(event, DumpHeader):
                self._keep(session, event, look)
            elif isinstance(event, ProcessOutcome):
                self._note(event, look)
            elif isinstance(event, Dumped):
                self.note_left(event.left)

    def _keep(self, session: AgentSession, header: DumpHeader, look: int) -> None:
        assert session.clock is not None
        dump = Dump(
            process=replace(self._processes[header.pid], command=""),  # which may have secrets
            look=look,
            time=max(0.0, header.time - session.clock.offset),
            kind=header.kind,
            seconds=header.seconds,
            cpu=dict(header.cpu),
        )
        text = session.text(header)
        try:
            self._dumps.append(self._sink.keep(self.host.name, dump, text))
        except HostError as error:
            if error.code != _FULL:
                raise
            for _ in text:  # unread bytes would be taken for the next event
                pass
            why = (printable(error.reason), error.remedy)
            self._note(ProcessOutcome(header.pid, Status.FAILED, "fetch", *why, code=_FULL), look)

    def _note(self, outcome: ProcessOutcome, look: int) -> None:
        """The first problem of a process counts."""
        assert outcome.pid is not None
        process = self._processes[outcome.pid]
        if outcome.code == _ENDED:
            self._ended.add(outcome.pid)
        if outcome.status is Status.OK or outcome.pid in self._said:
            return
        when = f"look {look} of {self._looks.times}: " if look > 1 else ""
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
        self._over.set()
        if level >= AT_ONCE or not self._asks:
            super().stop(level)
        elif self.session:
            self._group.in_background(self._end_look)

    def _end_look(self) -> None:
        with contextlib.suppress(HostError):  # reading fails too
            if self.session:
                self.session.stop()

    def leave_out(self, why: HostError) -> None:
        self._gate.leave()
        super().leave_out(why)

    def dumped(self) -> DumpedHost:
        dumps = tuple(self._dumps)
        lost = first_failure(tuple(self.outcomes))
        without = set(self._processes) - {one.pid for one in dumps} - set(self._said)
        lines = [self._lost(self._processes[pid], lost) for pid in sorted(without)]
        return DumpedHost(
            name=self.host.name,
            address=self.host.address,
            inside=self.host.inside,
            labels=self.host.labels,
            facts=self.facts,
            dumps=dumps,
            outcomes=(*self.left_to_others(), *self.outcomes, *self._said.values(), *lines),
            unseen=self.unseen(),
        )

    def _lost(self, process: Process, why: Outcome | None) -> Outcome:
        reason = f"its host was lost: {why.reason}" if why else "not asked: the dump was ended"
        return Outcome(
            self.host.name,
            Status.FAILED,
            why.stage if why else "dump",
            reason,
            pid=process.pid,
            label=process.label,
            lost=why is not None,
            code=why.code if why else "cancelled",
        )
