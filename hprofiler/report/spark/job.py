"""What pages say of a Spark application: the parts of the answer, and curves above the heat map of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.spark.findings import Judged
from hprofiler.analysis.stages import StageShares
from hprofiler.report.blocks import MOST_ROWS, Part
from hprofiler.report.spark.account import account_part, what_if_part
from hprofiler.report.spark.blocked import blocked_part, straggler_part
from hprofiler.report.spark.cells import executor_key, query_key
from hprofiler.report.spark.operators import operator_part
from hprofiler.report.spark.queries import sql_part
from hprofiler.report.spark.stages import Belongs, stage_part
from hprofiler.report.spark.streaming import streaming_part
from hprofiler.report.spark.text import (
    application_part,
    executor_part,
    failure_part,
    locality_part,
    memory_part,
    note_part,
    page_headline,
)
from hprofiler.report.spark.timeline import timeline_part
from hprofiler.report.stages import gain_lines
from hprofiler.spark.application import Application
from hprofiler.spark.facts import SparkFacts
from hprofiler.spark.figures import Figures, figures
from hprofiler.spark.memory import application_memory
from hprofiler.spark.timeline import SPREAD, timeline
from hprofiler.spark.windows import stage_name

WALL = "wall"
_BUCKETS = 400
_MOST_PAIRS = 20_000
_CURVES = ("cpu", "gc", "shuffle read", "shuffle write")


class Recorded(NamedTuple):
    """What a run's recordings say of its application: the memory of executors' processes by executor, as its
    agents measured it, and samples of wall-clock stacks by stage; `wall` says whether these were recorded."""

    resident: Mapping[str, int]
    wall: bool
    stages: StageShares | None

    @property
    def by_stacks(self) -> list[str] | None:
        """What the job would gain by wall-clock stacks."""
        if not self.wall:
            return None
        return gain_lines(self.stages) if self.stages else []


def recorded(facts: RunFacts, stages: Mapping[str, StageShares | None]) -> Recorded:
    """`stages` are by event."""
    return Recorded(_resident_memory(facts), WALL in stages, stages.get(WALL))


def job_record(judged: Judged, recorded: Recorded | None = None) -> dict[str, object]:
    """Ready for JSON."""
    found = figures(judged.application)
    head, findings = page_headline(judged.application, found, judged.findings)
    return {
        "headline": head,
        "findings": findings,
        "sections": [part.record() for part in page_parts(judged, found, recorded)],
    }


def page_parts(judged: Judged, found: Figures, recorded: Recorded | None = None) -> list[Part]:
    """The parts below the headline of a page."""
    application = judged.application
    stages = stage_part(found, judged.plans.operations, _belongs(application, found))
    first = account_part(judged.account, judged.findings, judged.application.properties)
    what_if = what_if_part(judged.what_if)
    over_time = timeline_part(application, judged.plans.operations)
    parts = [first, what_if, over_time, stages, *answer_parts(judged, found, recorded)]
    return [part for part in parts if part.title]


def _belongs(application: Application, found: Figures) -> Belongs:
    """Queries and executors of each stage that is shown, up to a number of pairs."""
    queries: dict[int, list[str]] = {}
    for one in application.sql.values():
        for id_ in one.stages:
            keys_of = dict.fromkeys(query_key(id_) for id_ in (one.id, one.root))
            queries.setdefault(id_, []).extend(keys_of)
    belongs: dict[str, list[str]] = {}
    left = _MOST_PAIRS
    for figure in found.by_task_time[:MOST_ROWS]:
        stage = figure.stage
        keys = list(queries.get(stage.id, ()))
        used = set(stage.tasks.column("executor"))
        keys += [executor_key(id_) for at, id_ in enumerate(application.executor_ids) if at in used]
        left -= len(keys)
        if left < 0:
            break
        belongs[stage_name(*stage.key)] = keys
    return belongs


def answer_parts(judged: Judged, found: Figures, recorded: Recorded | None = None) -> list[Part]:
    """The parts of the answer below its headline, its account and its table of stages."""
    application = judged.application
    parts = [
        application_part(application, found),
        blocked_part(judged.blocked, recorded.by_stacks if recorded else None),
        straggler_part(judged.stragglers),
        failure_part(judged.failures, found, application.streams),
        locality_part(found),
        executor_part(application, judged.failures.losses),
        memory_part(application_memory(application, recorded.resident if recorded else None)),
        sql_part(application, found, judged.plans.summaries),
        operator_part(judged.plans.slowest, _stage_keys(application)),
        streaming_part(judged.streams),
        note_part(application),
    ]
    return [part for part in parts if part.title]


def _stage_keys(application: Application) -> dict[int, list[str]]:
    keys: dict[int, list[str]] = {}
    for stage in application.stages.values():
        keys.setdefault(stage.id, []).append(stage_name(*stage.key))
    return keys


def _resident_memory(facts: RunFacts) -> dict[str, int]:
    """The most memory that the JVM of each executor had, by its id."""
    found: dict[str, int] = {}
    for one in facts.recordings:
        executor = one.process.labels.get("executor")
        if executor:
            found[executor] = max(found.get(executor, 0), one.resident_bytes)
    return found


def curves_record(
    application: Application, spark: SparkFacts, start: int, seconds: float
) -> dict[str, object]:
    """Active tasks, and what tasks did in cores, in the seconds since `start` (microseconds since 1970)."""
    ahead = spark.clock.offset if spark.clock else 0.0
    since = round(start / 1e3 + ahead * 1e3)
    line = timeline(application, _BUCKETS, since, since + round(seconds * 1e3))
    curves: list[tuple[str, Sequence[float]]] = [("active tasks", line.active)]
    curves += [(name, line.parts[name]) for name in _CURVES if any(line.parts[name])]
    return {
        "width": line.width / 1e3,
        "curves": [
            {"name": name, "values": [round(value, 3) for value in values]} for name, values in curves
        ],
        "note": f"Spark: active tasks (area, exact), and cores of what tasks did ({SPREAD}).",
    }
