"""Visits that record nothing: what would be profiled (`ps`), and whether a run would succeed (`doctor`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hprofiler.agent.messages import Checked, CheckedProcess, Finding, Ignored
from hprofiler.agent.session import AgentSession, Found
from hprofiler.base.errors import HostError
from hprofiler.collect import libraries
from hprofiler.collect.canaries import Kind, kind_of
from hprofiler.collect.limits import USUAL, Care, first_processes, refuse_busy
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Visit, remedy_here
from hprofiler.collect.visit_group import Reach, VisitGroup, silent
from hprofiler.model import Host, HostFacts, Outcome, Process, Sampling, Selector, Status
from hprofiler.model.event_names import caution_of
from hprofiler.model.measures import counted

SKEW = 1.0
"""Difference of clocks, in seconds, that is not reported."""


@dataclass(frozen=True)
class HostFound:
    """Matches of a selector on one host."""

    host: Host
    processes: tuple[Process, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class HostChecked(HostFound):
    """The check of one host; `outcomes` are those of the host itself.

    `processes` and `verdicts` go together. A `needless` host was not named and has no shell, so nothing is
    missing without it. `clock` is how many seconds the host's clock is ahead, at least.
    """

    facts: HostFacts | None = None
    verdicts: tuple[CheckedProcess, ...] = ()
    findings: tuple[Finding, ...] = ()
    clock: float = 0.0
    needless: bool = False


def find_only(
    hosts: Sequence[Host], selector: Selector, reach: Reach, stop: Stop | None = None
) -> list[HostFound]:
    """List the matches; one result per host, in order."""
    group = VisitGroup(reach, silent, stop)
    visits = [_FindingVisit(host, group, selector) for host in hosts]
    group.run(visits)
    return [visit.found() for visit in visits]


def check_only(
    hosts: Sequence[Host],
    selector: Selector,
    sampling: Sampling,
    reach: Reach,
    stop: Stop | None = None,
    care: Care = USUAL,
) -> list[HostChecked]:
    """Check every host as in a run, and touch no process; one result per host, in order."""
    group = VisitGroup(reach, silent, stop)
    visits = [_CheckingVisit(host, group, selector, sampling, care) for host in hosts]
    group.run(visits)
    return [visit.checked() for visit in visits]


def kinds(checked: Sequence[HostChecked]) -> Counter[Kind]:
    """JVMs that would be recorded, by kind; each kind would have a canary."""
    found: Counter[Kind] = Counter()
    for host in checked:
        for process, verdict in zip(host.processes, host.verdicts, strict=False):
            kind = kind_of(host.facts.arch if host.facts else "", process, verdict.engine)
            if kind and verdict.status is not Status.FAILED:
                found[kind] += 1
    return found


class _FindingVisit(Visit):
    _found = Found(0, (), ())

    def work(self) -> None:
        session = self.open_session()
        found = self.find(session)
        self._look(session, found)
        self._found = found
        self.finish(session)
        self.report("done" if found.processes else "idle")

    def _look(self, session: AgentSession, found: Found) -> None:
        """More to learn about the processes: whose they are."""
        user = self.facts.user if self.facts else "root"
        others = [one for one in found.processes if user not in ("root", one.user)]
        if others:
            code = "not-permitted"
            remedy = remedy_here(self.host, self.facts, code, others[0].user) or "use --become sudo"
            number = counted(len(others), "processes")
            reason = f"{number} of other users than {user}: a run could not attach to them"
            self.note(Status.DEGRADED, "find", reason, remedy, code)

    def found(self) -> HostFound:
        found = self._found
        outcomes = (*self.left_to_others(), *self.outcomes)
        return HostFound(self.host, found.processes, found.ignored, outcomes)


class _CheckingVisit(_FindingVisit):
    def __init__(
        self, host: Host, group: VisitGroup, selector: Selector, sampling: Sampling, care: Care
    ) -> None:
        super().__init__(host, group, selector)
        self._sampling = sampling
        self._care = care
        self._checked: Checked | None = None
        self._clock_ahead = 0.0

    def _look(self, session: AgentSession, found: Found) -> None:
        meant, too_many = first_processes(found.processes)
        needed: list[libraries.Library] = []
        if found.processes:
            needed = libraries.wanted(
                self.reach.binaries, self._sampling.engine, session.arch, self.search.selector
            )
        self.enter("prepare", self.reach.timeout)
        asked = time.time()
        checked = session.check(
            libraries.plan(self._sampling, needed, self._care.agent_cpu, self.search.selector), meant
        )
        self._clock_ahead = ahead(checked.time, asked, time.time())
        users = {one.pid: one.user for one in meant}
        own = (
            one.replace(
                remedy=remedy_here(self.host, self.facts, one.code, users.get(one.pid or 0, "")) or one.remedy
            )
            for one in checked.processes
        )
        processes = (*map(_cautioned, own), *map(CheckedProcess.of, too_many))
        if found.processes and not self._care.busy and self.facts:
            try:
                refuse_busy(self.facts)
            except HostError as why:  # a run skips a busy host, but it is checked anyway
                self.note(Status.FAILED, why.stage, why.reason, why.remedy, why.code, why.parameters)
                processes = tuple(_failed(one, why) for one in processes)
        self._checked = checked.replace(processes=processes)

    def checked(self) -> HostChecked:
        checked = self._checked
        clock: tuple[Finding, ...] = ()
        if abs(self._clock_ahead) >= SKEW:
            where = "ahead of" if self._clock_ahead > 0 else "behind"
            text = f"the clock is {abs(self._clock_ahead):.0f} s {where} this machine's"
            remedy = "synchronise it with NTP; times in its files are its own"
            clock = (Finding("warning", "clock", text, remedy),)
        notes = (Finding("info", "host", line.reason, line.remedy) for line in self.left_to_others())
        return HostChecked(
            host=self.host,
            processes=self._found.processes,
            ignored=self._found.ignored,
            outcomes=tuple(self.outcomes),
            facts=self.facts,
            verdicts=checked.processes if checked else (),
            findings=(*(checked.findings if checked else ()), *clock, *notes),
            clock=self._clock_ahead,
            needless=self.needless,
        )


def _failed(one: CheckedProcess, why: HostError) -> CheckedProcess:
    return CheckedProcess(
        one.pid,
        Status.FAILED,
        why.stage,
        why.reason,
        why.remedy,
        code=why.code,
        parameters=why.parameters,
        findings=one.findings,
    )


def _cautioned(one: CheckedProcess) -> CheckedProcess:
    """Adds warnings about async-profiler's events; perf has tested its events."""
    if one.engine != "async-profiler":
        return one
    cautions = [caution for caution in map(caution_of, one.sources) if caution]
    findings = (Finding("warning", "event", *caution) for caution in cautions)
    return one.replace(findings=(*one.findings, *findings))


def ahead(there: float, asked: float, answered: float) -> float:
    """How many seconds a clock that read `there` between two local times is ahead, at least."""
    return there - min(max(there, asked), answered)
