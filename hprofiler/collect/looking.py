"""Visits that only list what would be profiled (`ps`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hprofiler.agent import Found, Ignored
from hprofiler.collect.reach import Listener, Reach, silent
from hprofiler.collect.same_machine import left_to_others
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import VisitGroup
from hprofiler.model import Host, Outcome, Process, Selector


@dataclass(frozen=True)
class HostFound:
    """Matches of a selector on one host."""

    host: Host
    processes: tuple[Process, ...]
    ignored: tuple[Ignored, ...]
    outcomes: tuple[Outcome, ...]


def find_only(
    hosts: Sequence[Host],
    selector: Selector,
    reach: Reach,
    listener: Listener = silent,
    stop: Stop | None = None,
) -> list[HostFound]:
    """List the matches; one result per host, in order."""
    group = VisitGroup(reach, listener, stop)
    visits = [_FindingVisit(host, group, selector) for host in hosts]
    group.run(visits)
    return [visit.result() for visit in visits]


class _FindingVisit(Visit):
    def __init__(self, host: Host, group: VisitGroup, selector: Selector) -> None:
        super().__init__(host, group, selector)
        self._selector = selector
        self._found = Found(0, (), ())

    def work(self) -> None:
        session = self.open_session()
        self._found = self.find(session, self._selector)
        self.finish(session)
        self.report("done" if self._found.processes else "idle")

    def result(self) -> HostFound:
        found = self._found
        return HostFound(
            host=self.host,
            processes=found.processes,
            ignored=found.ignored,
            outcomes=(*left_to_others(self.host.name, self.left), *self.outcomes),
        )
