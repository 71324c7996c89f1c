"""What stands out in an application, most important first: codes with parameters, and what each costs.

First whether it failed, and why; then the largest part of its time; then what was wasted, and its stages. A
finding of a group stands behind those of the groups before it, whatever it costs."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.base.text import printable
from hprofiler.spark.application import READ_COLUMNS, Application
from hprofiler.spark.log.reading import reason_of
from hprofiler.spark.replay.blocked import BlockedTime, StageBlocked, blocked_time
from hprofiler.spark.replay.schedule import Replay
from hprofiler.spark.replay.stragglers import Stragglers, stragglers

_STAGE = 0.2
"""A stage that takes a smaller part of the job is not worth a sentence."""
_WAIT = 0.1
_STRAGGLER = 0.02
_LEAST_COST = 1000  # milliseconds
_SKEWED = 5
_REPLAY = 0.1
_LONGEST_REASON = 100


@dataclass(frozen=True)
class Judged:
    """What an application would gain without waits and stragglers, and what stands out of that."""

    application: Application
    blocked: BlockedTime
    stragglers: Stragglers
    findings: tuple[SparkFinding, ...]


def judge(application: Application, replay: Replay) -> Judged:
    """What stands out, by the application's replay, of which nothing large is kept."""
    blocked, found = blocked_time(application, replay), stragglers(application, replay)
    of_failures = failure_findings(application)
    return Judged(application, blocked, found, (*of_failures, *spark_findings(blocked, found, replay)))


def failure_findings(application: Application) -> list[SparkFinding]:
    """Whether jobs failed, and why the last one of them did."""
    failed = {job.id for job in application.jobs.values() if job.status == "FAILED"}
    if not failed:
        return []
    parameters: dict[str, Any] = {"failed": len(failed), "jobs": len(application.jobs)}
    stages = [one for one in application.stages.values() if one.failure and not failed.isdisjoint(one.jobs)]
    if stages:
        last = max(stages, key=lambda one: one.end)
        reason = printable(reason_of(last.failure)[:_LONGEST_REASON])
        parameters.update(stage=last.id, attempts=(last.attempt,), reason=reason)
    return [SparkFinding("job-failed", parameters)]


def spark_findings(blocked: BlockedTime, found: Stragglers, replay: Replay) -> list[SparkFinding]:
    """The stage that takes most of the job, what its tasks wait for, and the straggler that costs most."""
    most = max(blocked.stages, key=lambda one: one.share, default=None)
    stands_out: list[SparkFinding] = []
    if most is not None and most.share >= _STAGE:
        parameters: dict[str, Any] = {"stage": most.stage, "attempts": most.attempts, "share": most.share}
        stands_out.append(SparkFinding("stage-share", parameters))
        what, share = _wait(most)
        if share >= _WAIT:
            stands_out.append(SparkFinding("stage-wait", {"what": what, "share": share}))
        stands_out += _data_skew(replay, most)
    costs = ((gain, task) for task, gain in found.worst if gain is not None)
    cost, task = max(costs, key=lambda pair: pair[0].time, default=(None, None))
    if cost is not None and task is not None and cost.share >= _STRAGGLER and cost.time >= _LEAST_COST:
        same = most is not None and stands_out and task.stage == most.stage
        parameters = {
            "stage": task.stage,
            "attempts": (task.attempt,),
            "host": task.host,
            "executor": task.executor,
            "causes": task.causes,
            "running": task.running,
        }
        code = "straggler" if same else "other-straggler"
        stands_out.append(SparkFinding(code, parameters, round(cost.time) / 1000))
    if abs(blocked.replay.error) > _REPLAY:
        stands_out.append(SparkFinding("replay-error", {"share": abs(blocked.replay.error)}))
    return stands_out


def _data_skew(replay: Replay, most: StageBlocked) -> list[SparkFinding]:
    """The task that read far more than the median of its stage."""
    stage = next(one for one in replay.stages if one.id == most.stage)
    read = list(map(sum, zip(*map(stage.column, READ_COLUMNS), strict=True)))
    usual = median(read) if read else 0
    if not usual or max(read) <= _SKEWED * usual:
        return []
    tid = stage.column("tid")[read.index(max(read))]
    return [SparkFinding("data-skew", {"task": tid, "times": max(read) / usual})]


def _wait(stage: StageBlocked) -> tuple[str, float]:
    """What a stage's tasks wait for most, and its part of their time."""
    waits = {
        "fetch": stage.share_of("network"),
        "shuffle-write": stage.share_of("disk") - stage.share_of("network"),
        "gc": stage.share_of("gc"),
        "scheduler": stage.share_of("scheduler"),
        "python": stage.share_of("python"),
    }
    return max(waits.items(), key=lambda pair: pair[1])
