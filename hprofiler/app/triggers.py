"""Waits until the condition of a trigger is true, and records nothing meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from hprofiler.analysis.metrics import HostMetrics
from hprofiler.app.spark import asking
from hprofiler.base.background import TooLate, result_within, start
from hprofiler.base.errors import HprofilerError, NotFired
from hprofiler.base.text import some
from hprofiler.collect.following import ASK_SECONDS, QUIET_SECONDS, Following
from hprofiler.collect.stop import Stop, on_interrupt
from hprofiler.collect.visit_group import HostProgress, Listener, Reach
from hprofiler.collect.watching import HostReading, watch
from hprofiler.model import Selector, Status
from hprofiler.model.measures import duration
from hprofiler.model.trigger import MOST_VALUE, SECONDS, Fired, Trigger, beside
from hprofiler.resolve import Located, SparkDriver
from hprofiler.spark.replay.stragglers import FEWEST
from hprofiler.spark.rest.running import ActiveStage, LongTask, Running

_ASK_EVERY = 2.0
_TICK = 0.1
_STAGES_SHOWN = 5
# Readings are not exactly a second apart.
_ENOUGH = 0.9 * SECONDS

R = TypeVar("R")

_Recent = dict[tuple[int, int], list[tuple[float, float]]]
"""By pid and start time: values of the last seconds, and how long each was one."""


class Waiting:
    """Watches a target until `fired` is what made the trigger's condition true, or `stop` ends it.

    With `until_over` it also ends when all processes of fixed hosts have. `listener` hears what is known now
    (stage `trigger`), and of hosts that cannot be watched, on several threads. `why_not` is why it cannot be
    known any more; `is_lost`: because no host can be watched.
    """

    def __init__(
        self,
        trigger: Trigger,
        located: Located,
        selector: Selector,
        reach: Reach,
        driver: SparkDriver | None,
        most_hosts: int,
        listener: Listener,
        until_over: bool = False,
    ) -> None:
        self.fired: Fired | None = None
        self.why_not = ""
        self.is_lost = False
        self.stop = Stop()
        self._began = time.monotonic()
        self.is_ended = False
        self._trigger = trigger
        self._located = located
        self._selector = selector
        self._reach = reach
        self._driver = driver
        self._most_hosts = most_hosts
        self._listener = listener
        self._until_quiet = until_over and located.look is None
        self._last_there = 0.0
        self._shown = ""
        self._recent: dict[str, _Recent] = {}
        self._most: dict[str, float | None] = {}

    def run(self, seconds: float) -> None:
        """Wait for so long at most. Ctrl-C ends it, on the main thread."""
        if self._trigger.of_spark:
            assert self._driver is not None
            with on_interrupt(self.stop.request):
                self._ask(
                    Running(asking(self._driver), self._driver.application, self._driver.attempt), seconds
                )
        else:
            self._watch(seconds)

    def end(self) -> None:
        """Wait no longer. From any thread."""
        self.is_ended = True
        self.stop.finish()

    def the_fired(self) -> Fired:
        """What made the condition true. Raises NotFired if it was not until now."""
        if self.fired:
            return self.fired
        what = f"nothing was recorded: '{self._trigger}' was not true"
        if self.stop.signal:
            raise NotFired(f"{what} before the interrupt", signal=self.stop.signal)
        waited = duration(round(time.monotonic() - self._began, 1))
        last = f"last seen: {self._shown}" if self._shown else ""
        raise NotFired(f"{what}: {self.why_not or f'it was waited for {waited}'}", last)

    def _show(self, text: str) -> None:
        self._shown = text
        self._listener(HostProgress("", "trigger", text))

    def _fire(self, value: float, host: str = "", **where: Any) -> None:
        trigger, value = self._trigger, round(min(value, MOST_VALUE), 6)  # hosts and drivers may say anything
        about = str(trigger), trigger.kind, trigger.limit
        self.fired = self.fired or Fired(*about, time.time(), value, host, **where)
        self.stop.finish()

    # What hosts say

    def _watch(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self.stop.finish)
        timer.daemon = True
        timer.start()

        def listen(progress: HostProgress) -> None:
            if progress.stage == "failed":
                self._listener(progress)

        located = self._located
        following = Following(located.look, until_over=True, most_hosts=self._most_hosts)
        found = watch(
            located.hosts, self._selector, self._reach, self._read, listen, self.stop, following=following
        )
        failed = [one for host in found for one in host.outcomes if one.status is Status.FAILED]
        if timer.is_alive() and not self.is_ended:
            failures = [f"{one.where}: {one.reason}" for one in failed]
            self.is_lost = len(failed) >= len(found)
            self.why_not = some(failures, 1, "failures") if self.is_lost else "the job is over"
        timer.cancel()

    def _read(self, reading: HostReading) -> None:
        """Compare what each process of a host used in the last seconds. On the host's own thread."""
        trigger, host = self._trigger, reading.host.name
        of, name, per = ("jvm", "gc", 1.0) if trigger.kind == "gc" else ("process", "cpu", 100.0)
        metrics = HostMetrics(reading.metrics)
        before = self._recent.get(host, {})
        now: _Recent = {}
        most: float | None = None
        for process in reading.processes:
            values = metrics.column(of, str(process.pid), name).values
            known = [*before.get((process.pid, process.start_time), ())]
            pairs = zip(values, metrics.seconds, strict=True)
            known += [(value / per, passed) for value, passed in pairs if value is not None and passed]
            while sum(passed for _, passed in known[1:]) >= _ENOUGH:
                del known[0]
            now[process.pid, process.start_time] = known
            if not known:  # a JVM may not publish it
                continue
            seconds = sum(passed for _, passed in known)
            mean = sum(value * passed for value, passed in known) / seconds
            most = max(most or 0.0, mean)
            if seconds >= _ENOUGH and mean > trigger.limit:
                self._fire(mean, host, pid=process.pid, process=process.label)
        self._recent[host], self._most[host] = now, most
        highest = max((one for one in tuple(self._most.values()) if one is not None), default=None)
        if any(tuple(self._recent.values())):
            self._last_there = time.monotonic()
        elif self._until_quiet and 0 < self._last_there < time.monotonic() - QUIET_SECONDS:
            self.stop.finish()
        unit, digits = (" %", 0) if trigger.kind == "gc" else ("", 1)
        unknown = f"{trigger.kind} unknown" if any(tuple(self._recent.values())) else "no process matches"
        value = (
            unknown if highest is None else f"{trigger.kind} {beside(highest, trigger.limit, digits)}{unit}"
        )
        self._show(f"{value}, waiting for > {trigger.limit:g}{unit}")

    # What the driver says

    def _ask(self, running: Running, seconds: float) -> None:
        until, next_look = time.monotonic() + seconds, time.monotonic() + ASK_SECONDS
        while not self.stop.level and time.monotonic() < until:
            self._unless_stopped(partial(self._ask_driver, running))
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + ASK_SECONDS
                if self._unless_stopped(self._is_over):
                    self.why_not = "the application is over"
                    return
            pause = time.monotonic() + _ASK_EVERY
            while not self.stop.level and time.monotonic() < pause:
                time.sleep(_TICK)

    def _unless_stopped(self, question: Callable[[], R]) -> R | None:
        """Its answer, which may take minutes; None once nobody waits for it any more."""
        answer = start(question)
        while not self.stop.level:
            with suppress(TooLate):
                return result_within(answer, _TICK)
        return None

    def _ask_driver(self, running: Running) -> None:
        try:
            stages = running.stages()
            if self._trigger.kind == "stage":
                self._look_for_stage(stages)
            else:
                self._look_at_task(running.longest_task(stages))
        except HprofilerError as error:  # it may be busy
            self._show(f"the driver does not answer: {error.reason}")

    def _look_for_stage(self, stages: Sequence[ActiveStage]) -> None:
        for one in stages:
            if one.id == self._trigger.limit:
                self._fire(0.0, stage=one.id, attempt=one.attempt)
        active = some([str(one.id) for one in stages], _STAGES_SHOWN, "stages") or "none"
        self._show(f"active stages: {active}; waiting for {self._trigger}")

    def _look_at_task(self, longest: LongTask | None) -> None:
        limit = self._trigger.limit
        if longest is None:
            self._show(f"no stage with {FEWEST} finished tasks, waiting for {self._trigger}")
            return
        if longest.times > limit:
            stage = longest.stage
            where = {"stage": stage.id, "attempt": stage.attempt, "task": longest.task}
            self._fire(longest.times, longest.host, **where)
        times = beside(longest.times, limit, 1)
        took = f"the slowest task has taken {duration(longest.task.seconds)}, {times} x its median"
        self._show(f"{took}; waiting for > {limit:g} x")

    def _is_over(self) -> bool:
        with suppress(HprofilerError):
            return self._located.look is not None and self._located.look().over
        return False
