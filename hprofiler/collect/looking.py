"""Visits that record nothing: what would be profiled (`ps`), and cleaning up (`cleanup`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Mapping, Optional, Sequence, Tuple

from hprofiler.agent import Cleaned, Found, Ignored
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Crew, Listener, Reach, Visit, idle_reason, silent, visit_all
from hprofiler.model import Host, HostFacts, Outcome, Process, Selector, Status


@dataclass(frozen=True)
class HostFound:
    """What a selector means on one host. `outcomes` says idle or failed; empty where there are processes."""

    host: Host
    facts: Optional[HostFacts]
    searched: int
    processes: Tuple[Process, ...]
    ignored: Tuple[Ignored, ...]
    outcomes: Tuple[Outcome, ...]
    timings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class HostCleaned:
    """What was removed (paths) and stopped (pids) on one host, and in `outcomes` what could not be."""

    host: Host
    removed: Tuple[str, ...]
    stopped: Tuple[int, ...]
    outcomes: Tuple[Outcome, ...]


def find_only(
    hosts: Sequence[Host],
    selector: Selector,
    reach: Reach,
    listener: Listener = silent,
    stop: Optional[Stop] = None,
) -> List[HostFound]:
    """Look, and touch nothing; one result a host, in their order."""
    crew = Crew(reach, listener, stop or Stop())
    visits = [_FindingVisit(host, crew, selector) for host in hosts]
    visit_all(visits, crew, lambda level: _interrupt(visits))
    return [visit.result() for visit in visits]


def clean(
    hosts: Sequence[Host],
    reach: Reach,
    listener: Listener = silent,
    stop: Optional[Stop] = None,
    kept: bool = False,
) -> List[HostCleaned]:
    """Remove what earlier runs left, with the agent and its private folder unless they are to be `kept`."""
    crew = Crew(reach, listener, stop or Stop())
    visits = [_CleaningVisit(host, crew, kept) for host in hosts]
    visit_all(visits, crew, lambda level: _interrupt(visits))
    return [visit.result() for visit in visits]


def _interrupt(visits: Sequence[Visit]) -> None:
    for visit in visits:
        visit.interrupt("interrupted")


class _FindingVisit(Visit):
    def __init__(self, host: Host, crew: Crew, selector: Selector) -> None:
        super().__init__(host, crew, selector)
        self._selector = selector
        self._found = Found(0, (), ())

    def work(self) -> None:
        session = self.open_session()
        self._found = self.find(session, self._selector)
        if not self._found.processes:
            self.outcomes.append(
                Outcome(self.host.name, Status.IDLE, "find", idle_reason(self._found, self.host))
            )
        self.finish(session)
        self.tell("done" if self._found.processes else "idle")

    def result(self) -> HostFound:
        found = self._found
        return HostFound(
            host=self.host,
            facts=self.facts,
            searched=found.searched,
            processes=found.processes,
            ignored=found.ignored,
            outcomes=tuple(self.outcomes),
            timings=dict(self.timings),
        )


class _CleaningVisit(Visit):
    def __init__(self, host: Host, crew: Crew, kept: bool) -> None:
        super().__init__(host, crew)
        self._kept = kept
        self._cleaned = Cleaned((), (), ())

    def work(self) -> None:
        session = self.open_session()
        self.enter("clean", self.reach.timeout)
        self._cleaned = session.clean(self._kept)
        for failure in self._cleaned.failed:
            reason = f"cannot clean up {failure.what}: {failure.reason}"
            self.outcomes.append(Outcome(self.host.name, Status.FAILED, "clean", reason))
        self.finish(session)
        self.tell("done")

    def result(self) -> HostCleaned:
        return HostCleaned(self.host, self._cleaned.removed, self._cleaned.stopped, tuple(self.outcomes))
