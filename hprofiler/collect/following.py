"""Follows a target while its hosts are visited: visits its new hosts, and decides when all is over."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from hprofiler.base.background import start
from hprofiler.base.errors import HprofilerError
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import StartGate, VisitGroup
from hprofiler.model import Host, Present

if TYPE_CHECKING:
    from hprofiler.collect.recording_visit import RecordingVisit

ASK_SECONDS = 5.0
"""How often a target is asked what it has now."""
QUIET_SECONDS = 10.0
"""Where nobody else knows, a job is over when none of its processes has been there for so long."""
WITHOUT_JOINING = ("pids", "pipe")
"""Kinds of selectors that name what is there when the recording begins."""
_TICK = 0.2
# In less time a host would be visited for nothing.
_WORTH_A_VISIT = 3.0

V = TypeVar("V", bound=Visit)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Following:
    """How a target is followed while it is recorded, or watched.

    `look` asks what the target has now, and may raise HprofilerError; None: its hosts are fixed. With
    `until_over` the recording ends with the job, without it only if the job is over for good. If there is no
    process yet, it waits `wait` seconds for the first one, from which its time counts. At most `most_hosts`
    are visited. `containers` is filled with the ids of those that were visited.
    """

    look: Callable[[], Present] | None = None
    until_over: bool = False
    wait: float = 0.0
    most_hosts: int = 1000
    containers: set[str] = field(default_factory=set)


class Follower(Generic[V]):
    """Asks the target what it has now, and visits its new hosts, on a thread of its own."""

    def __init__(
        self,
        following: Following,
        group: VisitGroup,
        visits: Sequence[V],
        visit_of: Callable[[Host], V],
    ) -> None:
        self.visits = list(visits)
        self._following = following
        self._group = group
        self._visit_of = visit_of
        self._by_name = {visit.host.name: visit for visit in visits}
        self._question: Future[Present] | None = None
        self._next_question = 0.0
        self._over_since = 0.0
        for visit in visits:
            following.containers.update(visit.host.containers)

    def begin(self) -> None:
        if self._following.look:
            self._group.hold()
        threading.Thread(target=self._run, name="hprofiler-follower", daemon=True).start()

    def _run(self) -> None:
        try:
            while not self._group.wait(_TICK) and not self._group.stop.level and self._is_awaited():
                if self._has_begun():
                    self._ask()
                    if self._is_over():
                        self._group.stop.finish()
        finally:
            if self._following.look:
                self._group.visit_ended()

    def _is_awaited(self) -> bool:
        """Whether others may be visited once all visits have ended."""
        return not all(visit.ended for visit in self.visits)

    def _has_begun(self) -> bool:
        """Whether the target is to be asked by now."""
        return True

    def _is_over(self) -> bool:
        """Whether the visits are to end, because the job has."""
        over = self._over_since > 0 and time.monotonic() > self._over_since + ASK_SECONDS
        return self._following.until_over and over

    def _is_worth_a_visit(self) -> bool:
        """Whether there is time for another host."""
        return True

    def _ask(self) -> None:
        """Ask the target every few seconds, without waiting for the answer."""
        look, now = self._following.look, time.monotonic()
        if look is None:
            return
        if self._question is None:
            if now >= self._next_question:
                self._next_question = now + ASK_SECONDS
                self._question = start(look)
        elif self._question.done():
            answer, self._question = self._question, None
            try:
                self._take(answer.result())
            except HprofilerError as error:  # the next answer may be there
                _log.info("asking the target again: %s", error)
            except Exception:  # a bug must not end the recording
                _log.exception("asking the target again")

    def _take(self, present: Present) -> None:
        is_over = present.over if self._following.until_over else present.for_good
        self._over_since = (self._over_since or time.monotonic()) if is_over else 0.0
        for host in present.hosts:
            visit = self._by_name.get(host.name)
            if visit is None or (visit.ended and host.inside and host.containers != visit.host.containers):
                self._visit(host, visit)
            else:
                visit.learn(host)
                self._following.containers.update(host.containers)

    def _visit(self, host: Host, former: V | None) -> None:
        """Visit a new host; one that has the name of a `former` one is another container."""
        if not self._is_worth_a_visit() or len(self.visits) >= self._following.most_hosts:
            return
        times = sum(visit.host.address == host.address for visit in self.visits) + 1
        visit = self._visit_of(host if former is None else replace(host, name=f"{host.name} ({times})"))
        if self._group.add(visit):
            self.visits.append(visit)
            self._by_name[host.name] = visit
            self._following.containers.update(host.containers)


class RecordingFollower(Follower["RecordingVisit"]):
    """Ends a recording of so many `seconds` with its job, or after its time."""

    def __init__(
        self,
        following: Following,
        seconds: float,
        gate: StartGate,
        group: VisitGroup,
        visits: Sequence[RecordingVisit],
        visit_of: Callable[[Host], RecordingVisit],
    ) -> None:
        super().__init__(following, group, visits, visit_of)
        self._seconds = seconds
        self._gate = gate
        self._first = self._last = 0.0

    def _has_begun(self) -> bool:
        return self._gate.seconds > 0

    def _is_awaited(self) -> bool:
        """Others may come also once all containers have ended, but not where nothing began."""
        began = self._following.wait or any(visit.joining.began for visit in self.visits)
        left = self._seconds + self._following.wait - self._gate.seconds
        return super()._is_awaited() or (bool(began) and left > 0)

    def _is_worth_a_visit(self) -> bool:
        return self._seconds + self._following.wait - self._gate.seconds >= _WORTH_A_VISIT

    def _is_over(self) -> bool:
        """Whether the job is over, or the time after a wait."""
        now = self._gate.seconds
        if not self._first and any(visit.joining.began for visit in self.visits):
            self._first = self._last = now
        running = any(visit.joining.running and not visit.ended for visit in self.visits)
        if running:
            self._last = now
        following = self._following
        since = self._over_since
        over = since > 0 and (not running or time.monotonic() > since + ASK_SECONDS)
        if following.wait:
            over = over or now > (self._first + self._seconds if self._first else following.wait)
        if following.until_over and following.look is None and (self._first or not following.wait):
            over = over or now > self._last + QUIET_SECONDS
        return over
