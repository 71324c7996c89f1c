"""Follows a target while it is recorded: visits its new hosts, and decides when the recording is over."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hprofiler.base.background import start
from hprofiler.base.errors import HprofilerError
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

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Following:
    """How a target is followed while it is recorded.

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


class Follower:
    """Runs on a thread of its own while visits record. `seconds` is the time of the recording."""

    def __init__(
        self,
        following: Following,
        seconds: float,
        gate: StartGate,
        group: VisitGroup,
        visits: Sequence[RecordingVisit],
        visit_of: Callable[[Host], RecordingVisit],
    ) -> None:
        self.visits = list(visits)
        self._following = following
        self._seconds = seconds
        self._gate = gate
        self._group = group
        self._visit_of = visit_of
        self._by_name = {visit.host.name: visit for visit in visits}
        self._question: Future[Present] | None = None
        self._next_question = 0.0
        self._over_since = 0.0
        self._first = self._last = 0.0
        for visit in visits:
            following.containers.update(visit.host.containers)

    @property
    def longest(self) -> float:
        """How long the recording may take with the wait for its first process."""
        return self._seconds + self._following.wait

    def begin(self) -> None:
        threading.Thread(target=self._run, name="hprofiler-follower", daemon=True).start()

    def _run(self) -> None:
        while not self._group.wait(_TICK) and not self._group.stop.level:
            if self._gate.seconds:
                self._ask()
                self._end_in_time()

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
        self._over_since = (self._over_since or self._gate.seconds) if is_over else 0.0
        for host in present.hosts:
            visit = self._by_name.get(host.name)
            if visit is None or (visit.ended and host.inside and host.containers != visit.host.containers):
                self._visit(host, visit)
            else:
                visit.joining.learn(host)
                self._following.containers.update(host.containers)

    def _visit(self, host: Host, former: RecordingVisit | None) -> None:
        """Visit a new host; one that has the name of a `former` one is another container."""
        left = self.longest - self._gate.seconds
        if left < _WORTH_A_VISIT or len(self.visits) >= self._following.most_hosts:
            return
        times = sum(visit.host.address == host.address for visit in self.visits) + 1
        visit = self._visit_of(host if former is None else replace(host, name=f"{host.name} ({times})"))
        if self._group.add(visit):
            self.visits.append(visit)
            self._by_name[host.name] = visit
            self._following.containers.update(host.containers)

    def _end_in_time(self) -> None:
        """End the recording when its job is over, or its time after a wait."""
        now = self._gate.seconds
        if not self._first and any(visit.joining.began for visit in self.visits):
            self._first = self._last = now
        running = any(visit.joining.running and not visit.ended for visit in self.visits)
        if running:
            self._last = now
        following = self._following
        over = self._over_since > 0 and (not running or now > self._over_since + ASK_SECONDS)
        if following.wait:
            over = over or now > (self._first + self._seconds if self._first else following.wait)
        if following.until_over and following.look is None and (self._first or not following.wait):
            over = over or now > self._last + QUIET_SECONDS
        if over:
            self._group.stop.finish()
