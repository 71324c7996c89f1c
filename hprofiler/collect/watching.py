"""Visits that read what hosts do, once a second, and record nothing (`top`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hprofiler.collect.checking import HostFound
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import Listener, Reach, VisitGroup, silent
from hprofiler.model import Host, Process, Selector
from hprofiler.model.metrics import Metrics

_EVERY = 1.0
_READINGS = 5
"""After so many readings the host is searched for new processes."""


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
) -> list[HostFound]:
    """Read all hosts and the selector's processes until the user stops it.

    `on_reading` is called on each host's own thread. Returns for each host, in order, the processes that
    matched last, and outcomes.
    """
    group = VisitGroup(reach, listener, stop)
    visits = [_WatchingVisit(host, group, selector, on_reading, counters) for host in hosts]
    group.run(visits)
    return [visit.found() for visit in visits]


class _WatchingVisit(Visit):
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
        self._over = threading.Event()
        self._matches: tuple[Process, ...] = ()

    def work(self) -> None:
        session = self.open_session()
        watched: set[tuple[int, int]] | None = None
        while not self._over.is_set():
            self.outcomes.clear()  # those of the last search count
            self._matches = self.find(session).processes
            keys = {(one.pid, one.start_time) for one in self._matches}
            if watched is None or not keys <= watched:
                session.watch(self._matches, self._counters)
                watched = keys
            for _ in range(_READINGS):
                self.limit(self.reach.timeout)
                if self._over.wait(_EVERY):
                    break
                self._on_reading(HostReading(self.host, self._matches, session.watch()))
        self.finish(session)
        self.report("done")

    def stop(self, level: int) -> None:
        """The end of a watch is no failure."""
        self._over.set()
        if level >= AT_ONCE or self.session is None:
            super().stop(level)

    def found(self) -> HostFound:
        return HostFound(self.host, self._matches, (), (*self.left_to_others(), *self.outcomes))
