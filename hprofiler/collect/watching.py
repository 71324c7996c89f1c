"""Visits that look again and again, and record nothing: at processes (`ps --watch`), and at what they and
their hosts use (`top`, triggers)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hprofiler.agent.session import AgentSession
from hprofiler.collect.checking import HostFound
from hprofiler.collect.following import Follower, Following
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import Listener, Reach, VisitGroup, silent
from hprofiler.model import Host, Process, Selector
from hprofiler.model.metrics import Metrics

_EVERY = 1.0
_READINGS = 5
"""After so many readings the host is searched for new processes."""
_LOOK_EVERY = 2.0


@dataclass(frozen=True)
class HostReading:
    """What was read of a host in the last second, beside the reading before."""

    host: Host
    processes: tuple[Process, ...]
    metrics: Metrics


def watch(
    hosts: Sequence[Host],
    selector: Selector,
    reach: Reach,
    on_reading: Callable[[HostReading], None],
    listener: Listener = silent,
    stop: Stop | None = None,
    counters: Sequence[str] = (),
    following: Following | None = None,
) -> list[HostFound]:
    """Read all hosts and the selector's processes until `stop` ends it; new hosts too, with `following`.

    `on_reading` is called on each host's own thread. Returns for each host, in order, the processes that
    matched last, and outcomes; hosts that came later are last.
    """

    def visit_of(host: Host) -> _LookingVisit:
        return _WatchingVisit(host, group, selector, on_reading, counters)

    group = VisitGroup(reach, listener, stop)
    return _run(group, [visit_of(host) for host in hosts], visit_of, following)


def look(
    hosts: Sequence[Host],
    selector: Selector,
    reach: Reach,
    on_found: Callable[[HostFound], None],
    listener: Listener,
    stop: Stop,
    following: Following,
) -> list[HostFound]:
    """List the matches of all hosts every few seconds until `stop` ends it; of new hosts, too.

    `on_found` is called on each host's own thread. Returns what `watch` returns.
    """

    def visit_of(host: Host) -> _LookingVisit:
        return _LookingVisit(host, group, selector, on_found)

    group = VisitGroup(reach, listener, stop)
    return _run(group, [visit_of(host) for host in hosts], visit_of, following)


def _run(
    group: VisitGroup,
    visits: Sequence[_LookingVisit],
    visit_of: Callable[[Host], _LookingVisit],
    following: Following | None,
) -> list[HostFound]:
    follower = Follower(following or Following(), group, visits, visit_of)
    follower.begin()
    group.run(visits)
    return [visit.found() for visit in follower.visits]


class _LookingVisit(Visit):
    """Finds the selector's processes again and again."""

    def __init__(
        self,
        host: Host,
        group: VisitGroup,
        selector: Selector,
        on_found: Callable[[HostFound], None] = lambda found: None,
    ) -> None:
        super().__init__(host, group, selector)
        self._on_found = on_found
        self._over = threading.Event()
        self._matches: tuple[Process, ...] = ()

    def work(self) -> None:
        session = self.open_session()
        while not self._over.is_set():
            self.outcomes.clear()  # those of the last search count
            self._matches = self.find(session).processes
            self._on_found(self.found())
            self._look(session)
        self.finish(session)
        self.report("done")

    def _look(self, session: AgentSession) -> None:
        """What there is to do between two searches."""
        self.limit(None)
        self._over.wait(_LOOK_EVERY)

    def stop(self, level: int) -> None:
        """The end of a watch is no failure."""
        self._over.set()
        if level >= AT_ONCE or self.session is None:
            super().stop(level)

    def found(self) -> HostFound:
        return HostFound(self.host, self._matches, (), (*self.left_to_others(), *self.outcomes))


class _WatchingVisit(_LookingVisit):
    """Reads the host and the processes once a second, too."""

    def __init__(
        self,
        host: Host,
        group: VisitGroup,
        selector: Selector,
        on_reading: Callable[[HostReading], None],
        counters: Sequence[str],
    ) -> None:
        super().__init__(host, group, selector)
        self._on_reading, self._counters = on_reading, counters
        self._watched: set[tuple[int, int]] | None = None

    def _look(self, session: AgentSession) -> None:
        keys = {(one.pid, one.start_time) for one in self._matches}
        if self._watched is None or not keys <= self._watched:
            session.watch(self._matches, self._counters)
            self._watched = keys
        for _ in range(_READINGS):
            self.limit(self.reach.timeout)
            if self._over.wait(_EVERY):
                break
            self._on_reading(HostReading(self.host, self._matches, session.watch()))
