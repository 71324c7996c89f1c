"""Visits that clean up (`cleanup`): a dry one lists leftovers, another one removes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hprofiler.agent.messages import Leftover, Leftovers
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import Listener, Reach, VisitGroup, silent
from hprofiler.model import Host, Outcome, Status

CLEANING_SECONDS = 90.0
"""Longest time an agent takes if processes do not answer or do not end."""


@dataclass(frozen=True)
class HostLeft:
    """Leftovers of one host; `outcomes` are what could not be checked or removed.

    `out_of_reach`: number of JVMs by user that the connecting user may not check.
    """

    host: Host
    entries: tuple[Leftover, ...]
    outcomes: tuple[Outcome, ...]
    out_of_reach: Mapping[str, int] = field(default_factory=dict)


def sweep(
    hosts: Sequence[Host],
    reach: Reach,
    listener: Listener = silent,
    stop: Stop | None = None,
    dry: bool = False,
) -> list[HostLeft]:
    """Remove leftovers, or only list them (`dry`). One result per host, in order.

    If there was no cache before, none stays.
    """
    group = VisitGroup(reach, listener, stop)
    visits = [_SweepVisit(host, group, dry) for host in hosts]
    group.run(visits)
    return [visit.result() for visit in visits]


class _SweepVisit(Visit):
    def __init__(self, host: Host, group: VisitGroup, dry: bool) -> None:
        super().__init__(host, group)
        self._dry = dry
        self._found = Leftovers(())

    def work(self) -> None:
        session = self.open_session()
        self.enter("clean", self.reach.timeout + CLEANING_SECONDS)
        self._found = session.clean(dry=self._dry)
        for failure in self._found.failures:
            reason = f"cannot clean up {failure.what}: {failure.reason}"
            self.note(Status.FAILED, "clean", reason, code="clean-failed")
        self.finish(session)
        self.report("done")

    def result(self) -> HostLeft:
        out_of_reach = {one.user: one.jvms for one in self._found.out_of_reach}
        return HostLeft(self.host, self._found.entries, tuple(self.outcomes), out_of_reach)
