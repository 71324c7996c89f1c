"""The visit of a host that is recorded: find, prepare, wait for the others, start, record, fetch, clean."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from hprofiler.agent.messages import (
    MAX_RECORDED,
    Done,
    Ended,
    Interrupted,
    MetricsMessage,
    PausesMessage,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    Started,
)
from hprofiler.agent.messages import Recording as Began
from hprofiler.agent.requests import Plan
from hprofiler.agent.session import AgentSession, Appeared
from hprofiler.base.errors import ContainerEnded, HostError
from hprofiler.collect import libraries
from hprofiler.collect.canaries import Canaries
from hprofiler.collect.clearing import Clearing
from hprofiler.collect.fetching import PART, SLOWEST, Fetching, ProfileSink, not_all_came
from hprofiler.collect.finding import idle_reason
from hprofiler.collect.joining import Joining
from hprofiler.collect.ledger import Ledger, doubts, first_failure
from hprofiler.collect.limits import Care, first_processes, refuse_busy
from hprofiler.collect.reconnect import Reconnect
from hprofiler.collect.stop import AT_ONCE
from hprofiler.collect.visit import Visit, remedy_here
from hprofiler.collect.visit_group import StartGate, VisitGroup
from hprofiler.model import PART_INSIDE, Host, HostRecord, Process, Sampling, Selector, Status

_LATE = 1.0
_SHORTEST = 0.1
_AT_ITS_END = "cut-short"
"""The code of a process that ended by itself. Where processes come and go, that is no problem."""
_FROM_THE_NODE = "use perf on the node over SSH: --via ssh"


class RecordingVisit(Visit):
    """The visit of a host whose processes are recorded. With `follows`, those that start later join."""

    interrupted = "interrupted before anything was recorded"

    def __init__(
        self,
        host: Host,
        group: VisitGroup,
        selector: Selector,
        sampling: Sampling,
        sink: ProfileSink,
        gate: StartGate,
        care: Care,
        canaries: Canaries | None,
        follows: bool,
    ) -> None:
        super().__init__(host, group, selector)
        self._sampling = sampling
        self._fetching = Fetching(self, sink)
        self._gate = gate
        self._care = care
        self._clearing = Clearing(self, canaries) if canaries else None
        self._follows = follows
        self._is_late = gate.seconds > 0
        self._why_idle = ""
        self._ledger = Ledger(host.name, sampling.events)
        self.joining = Joining(self, self._ledger, self._clearing)
        self._phase = "before"
        self._over = 0.0
        self._lost_at = 0.0
        self._reconnecting = False
        self._reconnect = Reconnect(self, group)

    def work(self) -> None:
        session: AgentSession | None = None
        try:
            session = self._get_ready()
        finally:
            if session is None:
                self._gate.leave()
        if session is not None and self._start(session):
            try:
                self._record(session)
            except ContainerEnded:
                if not self._follows:
                    raise
                self._ended_with_the_container()
                self.report("done", "its container ended")
            else:
                self._end(session)
                self.report("done")

    def _get_ready(self) -> AgentSession | None:
        """A prepared session; None if there is nothing to record, and nothing to wait for."""
        session = self.open_session()
        self._note_cpu_without_effect()
        found = self.find(session)
        self.outcomes += doubts(self.host.name, found)
        self._why_idle = idle_reason(found, self.host, self.search.selector)
        if not found.processes and not self._follows:
            self._give_up(session)
            return None
        self._ledger.found(found.processes)
        try:
            if self.facts and not self._care.busy:
                refuse_busy(self.facts)
        except HostError as why:
            self.note(Status.FAILED, why.stage, why.reason, why.remedy, why.code, why.parameters)
            self._end(session)
            self.report("failed", why.reason)
            return None
        meant, too_many = first_processes(found.processes)
        for outcome in too_many:
            self._note(outcome)
        sampling = self._sampling
        if self._is_late:
            sampling = replace(sampling, duration=max(_SHORTEST, sampling.duration - self._gate.seconds))
        if self.host.inside:
            sampling = replace(sampling, part=PART_INSIDE)
        plan = libraries.plan(
            sampling, self._put_libraries(session), self._care.agent_cpu, self.search.selector
        )
        processes, engines = self._cleared(session, plan, meant)
        self.enter("prepare", self._care.attaching(self.reach.timeout, len(processes)))
        ready, outcomes = session.prepare(plan, processes, engines)
        for outcome in outcomes:
            self._note(outcome)
        self.processes = len(ready)
        if not ready and not self._follows:
            self._give_up(session)
            return None
        return session

    def _cleared(
        self, session: AgentSession, plan: Plan, processes: Sequence[Process]
    ) -> tuple[Sequence[Process], Mapping[int, str]]:
        """Processes that may be recorded after their canaries, and their engines by pid."""
        if self._clearing is None:
            return processes, {}
        cleared, engines, refused = self._clearing.before(session, plan, processes)
        for outcome in refused:
            self._note(outcome)
        return cleared, engines

    def _give_up(self, session: AgentSession) -> None:
        """End without a recording."""
        self._end(session)
        if self._ledger.processes:
            self.report("done", "nothing was recorded")
        else:
            self.report("idle", self._why_idle)

    def _note_cpu_without_effect(self) -> None:
        if self.facts and self._care.agent_cpu > self.facts.cpus > 0:
            asked = self._care.agent_cpu
            reason = f"--agent-cpu {asked:g} has no effect: the host has {self.facts.cpus} processors"
            self.note(Status.DEGRADED, "prepare", reason, "use a smaller number", "option-ignored")

    def _put_libraries(self, session: AgentSession) -> list[libraries.Library]:
        """Send the libraries that the host lacks; returns all."""
        needed = libraries.wanted(
            self.reach.binaries, self._sampling.engine, session.arch, self.search.selector
        )
        for _, file_name, blob in needed:
            if blob.sha256 not in session.hello.blobs:
                self.enter("push", self.reach.timeout + blob.path.stat().st_size / SLOWEST)
                session.put(file_name, blob)
        return needed

    def _start(self, session: AgentSession) -> bool:
        """Begin to record; False if there is nothing on any host."""
        self.enter("wait")
        late = self._gate.wait(self.processes > 0)
        if not self._gate.found:
            self._give_up(session)
            return False
        if self._follows:
            self.joining.follow(session)
        self.enter("start", self._care.attaching(self.reach.timeout, self.processes))
        self.check()
        session.on_loss(self._lost)
        with contextlib.suppress(HostError):  # reading fails too, and reconnects
            session.start()
        with self._lock:
            self._phase = "sampling"
        if late > _LATE and not self._is_late:
            reason = f"began {late:.1f} s after the others"
            self.note(Status.DEGRADED, "start", reason, code="started-late")
        return True

    def _record(self, session: AgentSession) -> None:
        for event in session.events():
            if isinstance(event, Began):
                self._began(event.processes)
            elif isinstance(event, Started):
                self._started(event)
            elif isinstance(event, Appeared):
                for outcome in self.joining.appeared(session, event):
                    self._note(outcome)
            elif isinstance(event, Interrupted):
                self._reconnect.interrupted(event)
            elif isinstance(event, (ProfileHeader, RawHeader)):
                self.check_aborted()
                if isinstance(event, ProfileHeader) and event.more:
                    self.limit(self._fetching.time_for(event.size))
                else:
                    self.enter("fetch", self._fetching.time_for(event.size))
                self._fetching.fetch(session, event, self._ledger)
                self._go_on()
            elif isinstance(event, PausesMessage):
                self._fetching.pauses(event, self._ledger)
            elif isinstance(event, MetricsMessage):
                self._fetching.metrics(event)
            elif isinstance(event, ProcessOutcome):
                if self.joining.ended(event):
                    self._note(self._reconnect.explained(event))
            elif isinstance(event, Done):
                self.note_left(event.left)
                self.outcomes += self._reconnect.lines()

    def learn(self, host: Host) -> None:
        before = self.host
        super().learn(host)
        self.joining.learned(before)

    def _started(self, event: Started) -> None:
        joins = self.stage != "start"
        self.joining.started(event, self._gate.seconds if joins or self._is_late else 0.0)
        if joins:
            self.processes += 1
            self.report(self.stage)

    def _ended_with_the_container(self) -> None:
        """Where containers come and go, that is no failure: there is what was sent of their processes."""
        for process, recorded in self._ledger.going_on():
            lost = max(0.0, self._lost_at - self._ledger.began(process.pid).joined - recorded)
            reason = (
                f"its container ended: {recorded:.1f} s were recorded, and the last {lost:.1f} s are lost"
            )
            status = Status.DEGRADED if recorded else Status.FAILED
            ended = ProcessOutcome(
                process.pid, status, "record", reason, ended=Ended.PROCESS, code=_AT_ITS_END
            )
            self._note(ended)

    def _lost(self, why: HostError) -> None:
        """The connection was lost: reconnect, or raise HostError."""
        assert self.session is not None
        self._lost_at = self._gate.seconds
        with self._lock:
            self._reconnecting = True
            self.limit(None)
        self._reconnect.run(self.session, why, self._over)
        with self._lock:
            self._reconnecting = False
        self.limit(self._care.folding(self.reach.timeout, self.processes) + PART / SLOWEST)
        if self.stage == "record":
            self._go_on()
        if self._group.stop.level:
            self._ask_to_stop(self.session)

    def _note(self, outcome: ProcessOutcome) -> None:
        inside = self.transport.leaves_nothing and self._sampling.engine == "perf"
        if inside and outcome.status is Status.FAILED:  # images rarely have perf
            remedy = "; or ".join(filter(None, (outcome.remedy, _FROM_THE_NODE)))
            outcome = outcome.replace(remedy=remedy)
        if self._follows and outcome.ended is Ended.PROCESS and outcome.code == _AT_ITS_END:
            outcome = outcome.replace(status=Status.OK)
        if outcome.pid is not None:
            user = self._ledger.process(outcome.pid).user
            outcome = outcome.replace(
                remedy=remedy_here(self.host, self.facts, outcome.code, user) or outcome.remedy
            )
        line = self._ledger.outcome(outcome)
        if line:
            self.outcomes.append(line)

    def _end(self, session: AgentSession) -> None:
        with self._lock:
            self._phase = "after"
            self._last_deadline = inf
        self.finish(session)

    def leave_out(self, why: HostError) -> None:
        self._gate.leave()
        super().leave_out(why)

    def stop(self, level: int) -> None:
        """First request: keep the recording. Second: let go."""
        if level >= AT_ONCE:
            self._reconnect.give_up()
        with self._lock:
            phase = self._phase
            if phase == "sampling":
                if not self._reconnecting:  # as long as the agent keeps its results
                    self.limit(self._patience())
                finished = self._group.stop.finished
                fetching = self._care.fetching if finished else self._care.fetching_after_stop
                seconds = fetching(self.reach.timeout, self.processes)
                self.limit_all(seconds, not_all_came(seconds, "" if finished else "interrupted; "))
        if level >= AT_ONCE:
            self._abort_in_background(HostError(self.ledger_stage, "interrupted", code="interrupted"))
        elif phase == "sampling" and self.session:
            self._ask_to_stop(self.session)
        elif phase == "before":
            super().stop(level)

    def _ask_to_stop(self, session: AgentSession) -> None:
        def ask() -> None:
            with contextlib.suppress(HostError):  # reading fails too
                session.stop()

        self._group.in_background(ask)

    def _began(self, processes: int) -> None:
        if self.stage != "start":
            raise HostError("record", "the agent started recording twice")
        self.processes = processes
        left = self._sampling.duration - (self._gate.seconds if self._is_late else 0.0)
        self._over = time.monotonic() + left
        seconds = self._care.fetching(self.reach.timeout, MAX_RECORDED if self._follows else processes)
        self.limit_all(max(0.0, left) + seconds, not_all_came(seconds))
        self._go_on()

    def _go_on(self) -> None:
        """Record until the end; an earlier profile belongs to a process that ended."""
        left = self._over - time.monotonic()
        if left <= 0:
            self.limit(self._patience())
            return
        self.enter("record", left + self._patience(), "" if self.processes else "waiting for the first one")
        if self._group.stop.level:  # an early profile has the short time limit
            self.limit(self._patience())

    def _patience(self) -> float:
        """Seconds until the next result after the recording."""
        return self._care.folding(self.reach.timeout, self.processes)

    def result(self) -> HostRecord:
        ledger, outcomes = self._ledger.as_it_is(), tuple(self.outcomes)
        if ledger.processes and self._follows:  # what was missing at first may have come
            outcomes = (*(one for one in outcomes if one.code != "no-match"), *self.joining.missed())
        lines = ledger.lines(first_failure(outcomes))
        # Without command lines, which may contain secrets.
        kept = (replace(one, process=replace(one.process, command="")) for one in ledger.recordings)
        return HostRecord(
            name=self.host.name,
            address=self.host.address,
            inside=self.host.inside,
            labels=self.host.labels,
            facts=self.facts,
            recordings=tuple(kept),
            outcomes=(*self.left_to_others(), *outcomes, *lines),
            unseen=self.unseen(),
            timings={stage: round(seconds, 3) for stage, seconds in self.timings.items()},
            bytes_sent=self.transport.bytes_sent,
            bytes_received=self.transport.bytes_received,
            clock=self.session.clock if self.session else None,
            pauses=ledger.pauses,
        )
