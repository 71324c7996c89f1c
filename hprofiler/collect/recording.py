"""Recording: connect, push, find, prepare, wait for the others, start, record, fetch, clean."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from math import inf

from hprofiler.agent import (
    CANARY_SECONDS,
    AgentSession,
    Done,
    Interrupted,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
)
from hprofiler.agent import Recording as Began
from hprofiler.base.errors import HostError
from hprofiler.collect import canaries, libraries
from hprofiler.collect.canaries import Canaries, Cleared
from hprofiler.collect.fetching import PART, SLOWEST, Fetching, ProfileSink, not_all_came
from hprofiler.collect.ledger import Ledger, doubts, first_failure
from hprofiler.collect.limits import USUAL, Care, first_processes, refuse_busy
from hprofiler.collect.reach import HostProgress, Listener, Reach, silent
from hprofiler.collect.reconnect import Reconnect
from hprofiler.collect.same_machine import left_to_others
from hprofiler.collect.start_gate import StartGate
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit import Visit, idle_reason
from hprofiler.collect.visit_group import VisitGroup
from hprofiler.model import Host, HostFacts, HostResult, Process, Sampling, Selector, Status

_LATE = 1.0
_CANARY_STEPS = 3  # prepare, start, record
_STOPPING = "stopping and fetching the recordings; press Ctrl-C again to end at once"
_FROM_THE_NODE = "use perf on the node over SSH: --via ssh"


def collect(
    hosts: Sequence[Host],
    selector: Selector,
    sampling: Sampling,
    reach: Reach,
    sink: ProfileSink,
    listener: Listener = silent,
    stop: Stop | None = None,
    care: Care = USUAL,
) -> list[HostResult]:
    """Record the selector's processes on all hosts at the same time; one result per host, in order.

    `listener` is called on this thread. The first `stop.request()` ends the recording and keeps the results,
    the second ends everything at once.
    """
    gate = StartGate(len(hosts), 2 * reach.timeout)
    group = VisitGroup(reach, listener, stop, gate.connecting)
    flock = Canaries() if care.canary else None
    visits = [_RecordingVisit(host, group, selector, sampling, sink, gate, care, flock) for host in hosts]

    def on_stop(level: int) -> None:
        gate.open()
        group.report(HostProgress("", "stop", _STOPPING if level < AT_ONCE else "ending at once"))

    group.run(visits, on_stop)
    return [visit.result() for visit in visits]


class _RecordingVisit(Visit):
    """The recording of one host."""

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
        flock: Canaries | None,
    ) -> None:
        super().__init__(host, group, selector)
        self._selector = selector
        self._sampling = sampling
        self._fetching = Fetching(host, sink, group.reach.timeout, self.limit, self.without_limits)
        self._gate = gate
        self._care = care
        self._canaries = flock
        self._ledger = Ledger(host.name, sampling.events)
        self._phase = "before"
        self._over = 0.0
        self._reconnecting = False
        self._reconnect = Reconnect(self, group)

    def work(self) -> None:
        session: AgentSession | None = None
        try:
            session = self._get_ready()
        finally:
            if session is None:
                self._gate.leave()
        if session is not None:
            self._start(session)
            self._record(session)
            self._end(session)
            self.report("done")

    def _get_ready(self) -> AgentSession | None:
        """A prepared session; None if there is nothing to record."""
        session = self.open_session()
        self._note_cpu_without_effect()
        found = self.find(session, self._selector)
        self.outcomes += doubts(self.host.name, found)
        if not found.processes:
            self._end(session)
            self.report("idle", idle_reason(found, self.host))
            return None
        self._ledger.found(found.processes)
        if self.facts and not self._care.busy and self._leaves_alone(session, self.facts):
            return None
        meant, too_many = first_processes(found.processes)
        for outcome in too_many:
            self._note(outcome)
        needed = self._put_libraries(session)
        hashes, versions = libraries.hashes(needed), libraries.versions(needed)
        cleared = self._cleared(session, hashes, versions, meant)
        processes, engines = cleared.processes, cleared.engines
        self.enter("prepare", self._care.attaching(self.reach.timeout, len(processes)))
        cores = self._care.agent_cpu
        ready, outcomes = session.prepare(self._sampling, hashes, processes, versions, cores, engines)
        for outcome in outcomes:
            self._note(outcome)
        self.processes = len(ready)
        if not ready:
            self._end(session)
            self.report("done", "nothing was recorded")
            return None
        return session

    def _note_cpu_without_effect(self) -> None:
        if self.facts and self._care.agent_cpu > self.facts.cpus > 0:
            asked = self._care.agent_cpu
            reason = f"--agent-cpu {asked:g} has no effect: the host has {self.facts.cpus} processors"
            self.note(Status.DEGRADED, "prepare", reason, "use a smaller number", "option-ignored")

    def _leaves_alone(self, session: AgentSession, facts: HostFacts) -> bool:
        """Whether the host is busy; then the session ends regularly."""
        try:
            refuse_busy(facts)
        except HostError as why:
            self.note(Status.FAILED, why.stage, why.reason, why.remedy, why.code)
            self._end(session)
            self.report("failed", why.reason)
            return True
        return False

    def _put_libraries(self, session: AgentSession) -> list[libraries.Library]:
        """Send the libraries that the host lacks; returns all."""
        needed = libraries.wanted(self.reach.binaries, self._sampling.engine, session.arch)
        for _, file_name, blob in needed:
            if blob.sha256 not in session.hello.blobs:
                self.enter("push", self.reach.timeout + blob.path.stat().st_size / SLOWEST)
                session.put(file_name, blob)
        return needed

    def _cleared(
        self,
        session: AgentSession,
        hashes: Mapping[str, str],
        versions: Mapping[str, str],
        processes: Sequence[Process],
    ) -> Cleared:
        """Processes that may be recorded, after their canaries."""
        if self._canaries is None:
            return Cleared(list(processes))
        self.enter("prepare", self.reach.timeout)
        cores = self._care.agent_cpu
        checked = session.check(self._sampling, hashes, versions, processes, cores).processes
        self.limit(None)  # each following step has its own time limit

        def record(process: Process, engine: str) -> ProcessOutcome:
            self.limit(_CANARY_STEPS * self.reach.timeout)
            outcome, left = session.record_briefly(self._sampling, hashes, versions, process, cores, engine)
            self.limit(None)
            self.note_left(left)
            return outcome

        place = canaries.Place(self.host.name, session.arch, record, self.check, self._canary_is_well)
        cleared = canaries.clear(self._canaries, place, list(zip(processes, checked, strict=False)))
        for line in cleared.refused:
            self._note(line)
        return cleared

    def _canary_is_well(self, process: Process, engine: str) -> None:
        who = f"process {process.pid}" + (f" ({process.label})" if process.label else "")
        text = f"canary: {who} was recorded for {CANARY_SECONDS:g} s by {engine}: fine"
        self.note(Status.OK, "prepare", text, code="canary-passed")
        self.report("canary", text)

    def _start(self, session: AgentSession) -> None:
        self.enter("wait")
        late = self._gate.wait()
        self.enter("start", self._care.attaching(self.reach.timeout, self.processes))
        self.check()
        session.on_loss(self._lost)
        with contextlib.suppress(HostError):  # reading fails too, and reconnects
            session.start()
        with self._lock:
            self._phase = "sampling"
        if late > _LATE:
            reason = f"began {late:.1f} s after the others"
            self.note(Status.DEGRADED, "start", reason, code="started-late")

    def _record(self, session: AgentSession) -> None:
        for event in session.events():
            if isinstance(event, Began):
                self._began(event.processes)
            elif isinstance(event, Interrupted):
                self._reconnect.interrupted(event)
            elif isinstance(event, (ProfileHeader, RawHeader)):
                self.check_aborted()
                self.enter("fetch", self._fetching.time_for(event.size))
                self._fetching.fetch(session, event, self._ledger)
                self._go_on()
            elif isinstance(event, ProcessOutcome):
                self._note(self._reconnect.explained(event))
            elif isinstance(event, Done):
                self.note_left(event.left)
                self.outcomes += self._reconnect.lines()

    def _lost(self, why: HostError) -> None:
        """The connection was lost: reconnect, or raise HostError."""
        assert self.session is not None
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
                seconds = self._care.fetching_after_stop(self.reach.timeout, self.processes)
                self.limit_all(seconds, not_all_came(seconds, "interrupted; "))
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
        self._over = time.monotonic() + self._sampling.duration
        seconds = self._care.fetching(self.reach.timeout, processes)
        self.limit_all(self._sampling.duration + seconds, not_all_came(seconds))
        self._go_on()

    def _go_on(self) -> None:
        """Record until the end; an earlier profile belongs to a process that ended."""
        left = self._over - time.monotonic()
        if left <= 0:
            self.limit(self._patience())
            return
        self.enter("record", left + self._patience())
        if self._group.stop.level:  # an early profile has the short time limit
            self.limit(self._patience())

    def _patience(self) -> float:
        """Seconds until the next result after the recording."""
        return self._care.folding(self.reach.timeout, self.processes)

    def result(self) -> HostResult:
        ledger, outcomes = self._ledger.as_it_is(), tuple(self.outcomes)
        lines = ledger.lines(first_failure(outcomes))
        left = left_to_others(self.host.name, self.left)
        return HostResult(
            host=self.host,
            facts=self.facts,
            recordings=ledger.recordings,
            outcomes=(*left, *outcomes, *lines),
            unseen=self.unseen(),
            timings=dict(self.timings),
            bytes_sent=self.moved[0],
            bytes_received=self.moved[1],
        )
