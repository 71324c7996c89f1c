"""Tables of a run: rows of plain values, and pandas frames of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from hprofiler.analysis.result import AnalysisResult
from hprofiler.analysis.words import plain
from hprofiler.base.errors import HprofilerError
from hprofiler.model import Outcome
from hprofiler.model.measures import measure_of
from hprofiler.notebook.display import explained
from hprofiler.runfolder import RunRecord
from hprofiler.spark.facts import SparkFacts
from hprofiler.spark.windows import stage_name

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, object]


@dataclass(frozen=True)
class RunFinding:
    """A sentence on an event of the run; the method and the host that it speaks of, if any."""

    event: str
    code: str
    text: str
    method: str | None = None
    host: str | None = None

    def __str__(self) -> str:
        return f"{self.event}: {self.text}"


PROCESSES = (
    *(
        "host",
        "pid",
        "process",
        "role",
        "executor",
        "user",
        "main_class",
        "jvm",
        "event",
        "engine",
        "started",
    ),
    *("seconds", "samples", "expected", "total", "unit", "status", "reason"),
)
METHODS = ("event", "method", "self", "total", "self_share", "total_share", "unit")
STAGES = (
    *("stage", "attempt", "name", "submitted", "completed", "tasks", "event", "samples", "share", "certain"),
    *("cpu_seconds", "spark_cpu_seconds"),
)
TASKS = ("task", "stage", "attempt", "executor", "launched", "finished", "seconds", "cpu_seconds")
JOBS = ("job", "description", "submitted", "completed", "stages")
OUTCOMES = ("host", "pid", "process", "status", "stage", "code", "reason", "remedy")


@explained()
def frame(columns: Sequence[str], rows: Iterable[Row]) -> DataFrame:
    """A pandas frame with these columns. Raises HprofilerError without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise HprofilerError("tables need pandas, which is not installed", "pip install pandas") from error
    return pandas.DataFrame(list(rows), columns=list(columns))


def processes(record: RunRecord) -> Iterator[Row]:
    """A row for each recording, and for each process without one."""
    for host in record.hosts:
        outcomes = {one.pid: one for one in host.outcomes if one.pid is not None}
        for one in host.recordings:
            process, labels = one.process, {**host.labels, **one.process.labels}
            value, unit = measure_of(one.event).column
            yield {
                "host": host.name,
                "pid": process.pid,
                "process": process.label,
                "role": labels.get("role", ""),
                "executor": labels.get("executor", ""),
                "user": process.user,
                "main_class": process.main_class,
                "jvm": process.jvm_version,
                "event": one.event,
                "engine": one.engine,
                "started": _moment(one.times.start / 1000 if one.times else 0),
                "seconds": one.seconds,
                "samples": one.samples.taken,
                "expected": one.samples.expected,
                "total": one.totals.get(value, 0),
                "unit": unit,
                **_outcome(outcomes.get(process.pid)),
            }
        for pid, outcome in outcomes.items():
            if pid not in host.recorded:
                none = {"event": "", "samples": 0, "seconds": 0.0, **_outcome(outcome)}
                yield {"host": host.name, "pid": pid, "process": outcome.label, **none}


def _outcome(outcome: Outcome | None) -> dict[str, object]:
    return {"status": outcome.status.value, "reason": outcome.reason} if outcome else {}


def methods(analysis: AnalysisResult) -> Iterator[Row]:
    """A row for each method of each event, hottest by self first. Shares are of what is attributed."""
    for event in analysis.events:
        unit = measure_of(event.event).column[1]
        for method in event.methods:
            yield {
                "event": event.event,
                "method": method.name,
                "self": method.self_value,
                "total": method.total_value if method.known else None,
                "self_share": method.self_value / event.attributed,
                "total_share": method.total_value / event.attributed if method.known else None,
                "unit": unit,
            }


def findings(analysis: AnalysisResult) -> list[RunFinding]:
    return [
        RunFinding(event.event, one.code, plain(one.text), one.method, one.host)
        for event in analysis.events
        for one in event.findings
    ]


def stages(spark: SparkFacts, analysis: AnalysisResult) -> Iterator[Row]:
    """A row for each stage and event; samples are certain or likely of the stage."""
    for event in analysis.events:
        shares = event.stages.stages if event.stages else ()
        found = {one.name: one for one in shares}
        all_samples = sum(one.samples for one in shares) + (event.stages.several if event.stages else 0)
        for stage in spark.stages:
            share = found.get(stage_name(stage.id, stage.attempt))
            samples = share.samples if share else 0
            yield {
                "stage": stage.id,
                "attempt": stage.attempt,
                "name": stage.name,
                "submitted": _moment(stage.from_),
                "completed": _moment(stage.to),
                "tasks": stage.tasks,
                "event": event.event,
                "samples": samples,
                "share": samples / max(1, all_samples),
                "certain": share.certain if share else 0,
                "cpu_seconds": share.cpu if share else None,
                "spark_cpu_seconds": share.spark_cpu if share else None,
            }


def tasks(spark: SparkFacts) -> Iterator[Row]:
    for executor, table in spark.tasks.items():
        for task, stage, attempt, launch, finish, cpu in table.rows():
            yield {
                "task": task,
                "stage": stage,
                "attempt": attempt,
                "executor": executor,
                "launched": _moment(launch),
                "finished": _moment(finish),
                "seconds": (finish - launch) / 1000 if finish else None,
                "cpu_seconds": cpu / 1e9 if cpu else None,
            }


def jobs(spark: SparkFacts) -> Iterator[Row]:
    for job in spark.jobs:
        yield {
            "job": job.id,
            "description": job.description,
            "submitted": _moment(job.from_),
            "completed": _moment(job.to),
            "stages": list(job.stages),
        }


def outcomes(record: RunRecord) -> Iterator[Row]:
    for host in record.hosts:
        for one in host.outcomes:
            known: dict[str, Any] = {
                name: getattr(one, name) for name in ("stage", "code", "reason", "remedy")
            }
            yield {
                "host": host.name,
                "pid": one.pid,
                "process": one.label,
                "status": one.status.value,
                **known,
            }


def _moment(milliseconds: float) -> datetime | None:
    """A moment by milliseconds since 1970; None for 0."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc) if milliseconds else None
