"""`hprofiler spark --json`: an application with the names of Spark's REST interface, and what is said of it.

Times are milliseconds, shares parts of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hprofiler.analysis.spark.account import Account
from hprofiler.analysis.spark.failures import Failures
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.findings import Judged
from hprofiler.analysis.spark.words import finding_text
from hprofiler.base.bounded_json import members
from hprofiler.report.spark.account import account_record, what_if_record
from hprofiler.report.spark.job import Recorded
from hprofiler.report.spark.operators import operator_records
from hprofiler.report.spark.queries import query_group_records
from hprofiler.report.spark.stages import stage_group_records
from hprofiler.report.spark.streaming import streaming_records
from hprofiler.report.spark.words import NEVER_ADD_UP, RESOURCES, note_text, verdict_text
from hprofiler.spark.causes import Cause
from hprofiler.spark.figures import (
    Figures,
    application_record,
    executor_records,
    job_records,
    stage_records,
)
from hprofiler.spark.log.sql import rest_execution
from hprofiler.spark.memory import Memory, application_memory
from hprofiler.spark.replay.blocked import BlockedTime, StageBlocked
from hprofiler.spark.replay.stragglers import Stragglers
from hprofiler.spark.timeline import timeline


def answer_record(judged: Judged, found: Figures, recorded: Recorded | None = None) -> dict[str, Any]:
    """The whole object. Lists that may be long are iterators."""
    gains = recorded.stages.gains if recorded and recorded.stages else None
    application = judged.application
    record = application_record(application)
    notes = ((one, note_text(one)) for one in application.notes)
    return {
        "application": {**record, "figures": found.record(), "properties": application.properties},
        "findings": findings_record(judged.findings),
        "failures": _failures_record(judged.failures),
        "stages": stage_records(found),
        "jobs": job_records(application, found),
        "account": account_record(judged.account),
        "whatIf": what_if_record(judged.what_if),
        "blocked": blocked_record(judged.blocked, judged.account),
        "byStacks": gains
        and {rule: {"upperBound": one.time, "upperBoundShare": one.share} for rule, one in gains.items()},
        "stragglers": stragglers_record(judged.stragglers),
        "executors": executor_records(application),
        "memory": _memory_record(application_memory(application, recorded.resident if recorded else None)),
        "groups": {
            "stages": stage_group_records(found, judged.plans.operations),
            "queries": query_group_records(application, found, judged.plans.summaries),
        },
        "operators": operator_records(judged.plans.slowest),
        "streaming": streaming_records(judged.streams),
        "sql": (rest_execution(one, application.until) for one in application.sql.values()),
        "timeline": timeline(application).record(),
        "notes": [{**members(one, "code", "count", "detail"), "text": text} for one, text in notes],
    }


def _failures_record(failures: Failures) -> dict[str, Any]:
    cut_off = failures.cut_off
    return {
        "exitCode": failures.exit_code,
        "jobIds": failures.jobs,
        "queryIds": failures.queries,
        "streams": failures.streams,
        "stages": failures.stages,
        "repeatedStages": failures.repeated,
        "endedWithApplication": failures.consequences,
        "cancelledJobs": failures.cancelled,
        "recoveredJobs": failures.recovered,
        "causes": [
            {
                **_cause_record(one.cause),
                "time": one.time,
                "stage": one.stage,
                "queryId": one.query,
                "jobIds": one.jobs,
                "queryIds": one.queries,
                "streams": one.streams,
            }
            for one in failures.causes
        ],
        "lossBeforeEnd": cut_off and _cause_record(cut_off),
    }


def _cause_record(cause: Cause) -> dict[str, Any]:
    executor = cause.executor or None
    return {"exception": cause.kind, "message": cause.message, "executorId": executor, "text": cause.text}


def findings_record(found: Sequence[SparkFinding]) -> list[dict[str, object]]:
    return [{**members(one, "code", "parameters", "seconds"), "text": finding_text(one)} for one in found]


def blocked_record(blocked: BlockedTime, made: Account) -> dict[str, Any]:
    """The section of `--json`, its stages an iterator. Times are milliseconds, shares parts of one."""
    replay, use = blocked.replay, blocked.use
    return {
        "measured": replay.measured,
        "replayed": replay.as_it_was,
        "replayError": replay.error,
        "slots": replay.slots,
        "taskTime": blocked.task_time,
        "leftOut": {
            kind: {"tasks": count, "time": replay.left_out.time[kind]}
            for kind, count in replay.left_out.count.items()
        },
        "resources": [
            {
                "name": one.resource.name,
                "taskTime": one.time,
                "upperBound": one.gain.time if one.gain else None,
                "upperBoundShare": one.gain.share if one.gain else None,
                **dict(zip(("contains", "lacks"), RESOURCES[one.resource.name], strict=True)),
            }
            for one in blocked.resources
        ],
        "neverAddUp": NEVER_ADD_UP,
        "stages": map(_stage_record, blocked.stages, map(made.share, made.of_stages)),
        "gcPauses": blocked.gc_pauses,
        "use": {
            "diskBytes": use.disk,
            "networkBytes": use.network,
            "cpuTime": use.cpu_time,
            "diskBytesPerCpuSecond": use.per_cpu_second(use.disk),
            "networkBytesPerCpuSecond": use.per_cpu_second(use.network),
            "diskBytesPerHostSecond": use.per_host_second(use.disk),
            "networkBytesPerHostSecond": use.per_host_second(use.network),
            "slotUse": use.slots,
            "cpuUse": use.cpu,
        },
    }


def _stage_record(stage: StageBlocked, share: float) -> dict[str, Any]:
    return {
        "stageId": stage.stage,
        "attemptIds": list(stage.attempts),
        "share": share,
        "taskTime": stage.task_time,
        "blocked": stage.waits,
    }


def stragglers_record(found: Stragglers) -> dict[str, Any]:
    """The section of `--json`. Times are milliseconds, shares parts of one."""
    return {
        "count": found.count,
        "upperBound": found.gain.time,
        "upperBoundShare": found.gain.share,
        "stages": [
            {
                "stageId": one.stage,
                "attemptIds": list(one.attempts),
                "numTasks": one.tasks,
                "rate": "duration / bytes read" if one.by_bytes else "duration",
                "tasksWithoutRate": one.without_rate,
                "stragglers": one.stragglers,
                "lost": one.lost,
                "upperBound": one.gain.time if one.gain else None,
                "causes": one.causes,
                "firstWave": {"tasks": one.waves.first, "medianRate": one.waves.first_rate},
                "laterWaves": {"tasks": one.waves.later, "medianRate": one.waves.later_rate},
            }
            for one in found.stages
        ],
        "tasks": [
            {
                "stageId": one.stage,
                "attemptId": one.attempt,
                "taskId": one.tid,
                "index": one.index,
                "executorId": one.executor,
                "host": one.host,
                "duration": one.duration,
                "timesMedianRate": one.times,
                "lost": one.lost,
                "upperBound": gain.time if gain else None,
                "causes": list(one.causes),
                "running": one.running,
            }
            for one, gain in found.worst
        ],
    }


def _memory_record(memory: Memory) -> dict[str, Any]:
    texts = ({"text": verdict_text(one)} for one in memory.verdicts)
    made = asdict(memory)
    return {**made, "verdicts": [one | text for one, text in zip(made["verdicts"], texts, strict=True)]}
