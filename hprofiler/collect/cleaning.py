"""Visits that clean up (`cleanup`): the first lists what is left, the second removes it if it is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, List, Optional, Sequence, Tuple, Union

from hprofiler.agent import AgentSession, Cleaned, Leftover, Leftovers
from hprofiler.agent.leftovers import CLEANING_SECONDS
from hprofiler.collect.crew import Crew, Listener, Reach, silent
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Visit, visit_all
from hprofiler.model import Host, Outcome, Status


@dataclass(frozen=True)
class HostLeft:
    """What was found on one host, and in `outcomes` what could not be looked at."""

    host: Host
    entries: Tuple[Leftover, ...]
    outcomes: Tuple[Outcome, ...]


@dataclass(frozen=True)
class HostCleaned:
    """What was removed (paths), stopped and ended (pids) on one host, and in `outcomes` what could not be."""

    host: Host
    removed: Tuple[str, ...]
    stopped: Tuple[int, ...]
    ended: Tuple[int, ...]
    outcomes: Tuple[Outcome, ...]


def look_for_leftovers(
    hosts: Sequence[Host],
    reach: Reach,
    listener: Listener = silent,
    stop: Optional[Stop] = None,
) -> List[HostLeft]:
    """What earlier runs left, and what looks like it; nothing is removed. One result a host, in order."""
    crew = Crew(reach, listener, stop or Stop())
    visits = [_ListingVisit(host, crew) for host in hosts]
    _visit(visits, crew)
    return [visit.result() for visit in visits]


def clean(
    chosen: Sequence[Tuple[Host, AbstractSet[str]]],
    reach: Reach,
    listener: Listener = silent,
    stop: Optional[Stop] = None,
) -> List[HostCleaned]:
    """Remove what was listed, by its ids, where it is still the same and still left over."""
    crew = Crew(reach, listener, stop or Stop())
    visits = [_CleaningVisit(host, crew, ids) for host, ids in chosen]
    _visit(visits, crew)
    return [visit.result() for visit in visits]


def _visit(visits: Sequence[Visit], crew: Crew) -> None:
    def interrupt(_: int) -> None:
        for visit in visits:
            visit.interrupt("interrupted")

    visit_all(visits, crew, interrupt)


class _HostVisit(Visit):
    """What both have in common: where the agent was not before, it does not stay either."""

    def begin(self) -> AgentSession:
        session = self.open_session()
        self.enter("clean", self.reach.timeout + CLEANING_SECONDS)
        return session

    def without_own(self, session: AgentSession, found: Leftovers) -> Tuple[Leftover, ...]:
        """What was there before this visit: a folder with nothing but the agent just sent is removed."""
        if not session.pushed:
            return found.entries
        size = self.reach.binaries.agents[session.arch].path.stat().st_size
        brought = [one for one in found.entries if one.own and one.state == "left" and one.bytes == size]
        if brought:
            self.fail(session.clean(kept=False, only=[one.id for one in brought]))
        return tuple(one for one in found.entries if one not in brought)

    def fail(self, told: Union[Cleaned, Leftovers]) -> None:
        for failure in told.failed:
            reason = f"cannot clean up {failure.what}: {failure.reason}"
            self.outcomes.append(Outcome(self.host.name, Status.FAILED, "clean", reason))


class _ListingVisit(_HostVisit):
    def __init__(self, host: Host, crew: Crew) -> None:
        super().__init__(host, crew)
        self._entries: Tuple[Leftover, ...] = ()

    def work(self) -> None:
        session = self.begin()
        found = session.leftovers()
        self.fail(found)
        self._entries = self.without_own(session, found)
        self.finish(session)
        self.tell("done")

    def result(self) -> HostLeft:
        return HostLeft(self.host, self._entries, tuple(self.outcomes))


class _CleaningVisit(_HostVisit):
    def __init__(self, host: Host, crew: Crew, ids: AbstractSet[str]) -> None:
        super().__init__(host, crew)
        self._ids = ids
        self._cleaned = Cleaned((), (), (), ())

    def work(self) -> None:
        session = self.begin()
        self._cleaned = session.clean(kept=False, only=sorted(self._ids))
        self.fail(self._cleaned)
        if session.pushed:
            self.without_own(session, session.leftovers())
        self.finish(session)
        self.tell("done")

    def result(self) -> HostCleaned:
        done = self._cleaned
        return HostCleaned(self.host, done.removed, done.stopped, done.ended, tuple(self.outcomes))
