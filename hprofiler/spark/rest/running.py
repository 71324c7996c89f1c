"""What runs now, by Spark's REST interface: active stages, and a task that takes long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from hprofiler.base.answers import MOST_MILLISECONDS, member, number, objects, text
from hprofiler.base.errors import HprofilerError
from hprofiler.model.trigger import SparkTask
from hprofiler.spark.replay.stragglers import FEWEST
from hprofiler.spark.rest.server import Ask, Server, find_application, moment

_MOST_STAGES = 50
"""Active stages that are looked at."""
_PAGE = 1000
_MOST_PAGES = 20
_MOST_SECONDS = 1e9
"""More than any task takes: a driver may say anything."""


@dataclass(frozen=True)
class ActiveStage:
    id: int
    attempt: int
    finished: int
    """How many of its tasks are finished."""


@dataclass(frozen=True)
class LongTask:
    """A running task on a host."""

    stage: ActiveStage
    task: SparkTask
    host: str

    @property
    def times(self) -> float:
        """How many times the median it has taken."""
        return self.task.seconds / self.task.median


class Running:
    """Asks a driver again and again. Its methods raise HprofilerError."""

    def __init__(self, ask: Ask, application: str | None, attempt: str = "") -> None:
        self._server = Server(ask, inf)
        self._application, self._attempt = application, attempt
        self._path = ""

    def stages(self) -> list[ActiveStage]:
        """Those that are active."""
        if not self._path:
            self._path = find_application(self._server, self._application, self._attempt).path
        try:
            answer = self._server.get(f"{self._path}/stages", {"status": "active"})
        except HprofilerError:
            self._path = ""  # a new attempt may have begun
            raise
        active = [one for one in objects(answer) if text(one, "status", limit=20) == "ACTIVE"]
        return [
            ActiveStage(*(number(one, name) for name in ("stageId", "attemptId", "numCompleteTasks")))
            for one in active[:_MOST_STAGES]
        ]

    def longest_task(self, stages: Sequence[ActiveStage]) -> LongTask | None:
        """The running task that has taken most of its stage's median; None where no stage has one yet."""
        found = [self._longest_of(stage) for stage in stages if stage.finished >= FEWEST]
        return max((one for one in found if one), key=lambda one: one.times, default=None)

    def _longest_of(self, stage: ActiveStage) -> LongTask | None:
        path = f"{self._path}/stages/{stage.id}/{stage.attempt}"
        try:
            summary = self._server.get(f"{path}/taskSummary", {"quantiles": "0.5"})
        except HprofilerError:  # so it answers while it knows no finished task, or once the stage is over
            return None
        median = _first(summary, "duration") or _first(summary, "executorRunTime")
        running = self._running(f"{path}/taskList")
        if median <= 0 or not running:
            return None
        now = self._server.clock.now() * 1000
        longest = min(running, key=lambda task: moment(task, "launchTime"))
        seconds = min(max(0.0, now - moment(longest, "launchTime")) / 1000, _MOST_SECONDS)
        executor = text(longest, "executorId", limit=64)
        known = SparkTask(
            number(longest, "taskId"), number(longest, "index"), executor, seconds, median / 1000
        )
        return LongTask(stage, known, text(longest, "host", limit=300))

    def _running(self, path: str) -> list[dict[str, object]]:
        """Running tasks. Before Spark 3.1 the server sends all, page by page."""
        found: list[dict[str, object]] = []
        for page in range(_MOST_PAGES):
            parameters = {"status": "running", "offset": str(page * _PAGE), "length": str(_PAGE)}
            tasks = objects(self._server.get(path, parameters))
            found += [one for one in tasks if text(one, "status", limit=20) == "RUNNING"]
            if len(tasks) < _PAGE:
                break
        return [one for one in found if moment(one, "launchTime")]


def _first(summary: object, name: str) -> float:
    """The only quantile of a summary, in milliseconds; 0 if it is less than one, or none."""
    values = member(summary, name)
    value = values[0] if isinstance(values, list) and values else 0
    return float(value) if isinstance(value, (int, float)) and 1 <= value <= MOST_MILLISECONDS else 0.0
