"""Visits that ask what the threads of processes do, and record nothing (`dump`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hprofiler.agent.messages import Dumped, DumpHeader, ProcessOutcome
from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable
from hprofiler.collect.asking import AskingVisit
from hprofiler.collect.limits import USUAL, Care, refuse_busy
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit_group import HostProgress, Listener, Reach, StartGate, VisitGroup, silent
from hprofiler.model import Host, Process, Selector, Status
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


class _DumpingVisit(AskingVisit):
    interrupted = "interrupted before anything was dumped"
    stage_of_looks = "dump"

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
        super().__init__(host, group, selector, looks.times, looks.every)
        self._owners, self._sink, self._gate, self._care = looks.owners, sink, gate, care
        self._dumps: list[Dump] = []

    def work(self) -> None:
        meant: Sequence[Process] = ()
        try:
            session = self.open_session()
            meant = self.choose(session)
            if self.found and self.facts and not self._care.busy:
                refuse_busy(self.facts)
        except HostError:
            meant = ()
            raise
        finally:
            if not meant:
                self._gate.leave()
        if not meant:
            self.finish(session)
            self.report("done" if self.found else "idle")
            return
        self.enter("wait")
        self._gate.wait()
        self.check()
        self.look_often(session, meant)
        self.finish(session)
        self.report("done")

    def look(self, session: AgentSession, processes: Sequence[Process], look: int) -> None:
        patience = (_ANSWER_WITH_OWNERS if self._owners else _ANSWER) + self.reach.timeout
        self.enter("dump", patience, self.detail(look))
        for event in session.dump(processes, self._owners, self._care.agent_cpu):
            self.check_aborted()
            self.limit(patience)
            if isinstance(event, DumpHeader):
                self._keep(session, event, look)
            elif isinstance(event, ProcessOutcome):
                self.note_process(event, look)
            elif isinstance(event, Dumped):
                self.note_left(event.left)

    def _keep(self, session: AgentSession, header: DumpHeader, look: int) -> None:
        assert session.clock is not None
        dump = Dump(
            process=replace(self.found[header.pid], command=""),  # which may have secrets
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
            self.note_process(ProcessOutcome(header.pid, Status.FAILED, "fetch", *why, code=_FULL), look)

    def end_look(self) -> None:
        self._group.in_background(self._ask_to_end)

    def _ask_to_end(self) -> None:
        with contextlib.suppress(HostError):  # reading fails too
            if self.session:
                self.session.stop()

    def leave_out(self, why: HostError) -> None:
        self._gate.leave()
        super().leave_out(why)

    def dumped(self) -> DumpedHost:
        return DumpedHost(
            name=self.host.name,
            address=self.host.address,
            inside=self.host.inside,
            labels=self.host.labels,
            facts=self.facts,
            dumps=tuple(self._dumps),
            outcomes=self.all_outcomes({one.pid for one in self._dumps}),
            unseen=self.unseen(),
        )
