"""What stands out in an application, most important first: codes with parameters, and what each costs.

First whether it failed, and why; of a streaming application whether it keeps up. Then the largest part of
the account of its time, unless that is plain work; then what was wasted, if it is much; then the stage that
takes most, and what its tasks wait for. The rest follows by cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from hprofiler.analysis.spark.account import GROUPS, Account, Part, account
from hprofiler.analysis.spark.failures import Failures, failure_findings, find_failures
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.queries import QueryPlans, query_plans
from hprofiler.analysis.spark.streaming import StreamFigures, stream_figures, stream_findings
from hprofiler.analysis.spark.waste import waste_findings
from hprofiler.analysis.spark.what_if import WhatIf, what_if
from hprofiler.spark.application import READ_COLUMNS, Application
from hprofiler.spark.replay.blocked import BlockedTime, blocked_time
from hprofiler.spark.replay.schedule import Replay, ReplayStage
from hprofiler.spark.replay.stragglers import Stragglers, stragglers

_IDLE_GROUPS = ("no-stage", "no-executor", "narrow")
_OF_ALL_TIME = {"no-stage", "idle-slots"}
"""Findings that need all jobs of the application."""
_STAGE = 0.2
"""A stage that takes a smaller part of the time is not worth a sentence."""
_PART = 0.1
_WAIT = 0.1
_NOT_TIMED = 0.25
"""A smaller part that Spark does not time is usual."""
_STRAGGLER = 0.02
_LEAST_COST = 1000  # milliseconds
_USUAL_RAMP = 10_000
"""Milliseconds that executors usually need to come, one after the other."""
_SKEWED = 5
_FEWEST = 3
_MOST_DATA = 0.5
_RECORD_COLUMNS = ("input_records", "shuffle_read_records")
_MOSTLY = 0.5
"""Of the time: a streaming query that ran for so long is what the application is about."""
ROUGH = 0.1
"""Where the replay is further off, its bounds are rough."""


@dataclass(frozen=True)
class Judged:
    """Where an application's time went, what it would gain without waits and stragglers, what failed, how
    long it would take with other slots, and what stands out of all that."""

    application: Application
    account: Account
    blocked: BlockedTime
    stragglers: Stragglers
    failures: Failures
    plans: QueryPlans
    streams: Sequence[StreamFigures]
    what_if: WhatIf | None
    findings: tuple[SparkFinding, ...]


def judge(application: Application, replay: Replay) -> Judged:
    """What stands out, by the application's replay, of which nothing large is kept."""
    made = account(application, replay)
    blocked, found = blocked_time(application, replay), stragglers(application, replay)
    failures = find_failures(application)
    caveats = compaction_findings(application)
    times = {stage.id: time for stage, time in zip(replay.stages, made.of_stages, strict=True)}
    plans, streams = query_plans(application, times), stream_figures(application)
    main = [one for one in streams if made.share(one.ran) >= _MOSTLY]
    findings = ranked(
        made,
        [*failure_findings(failures), *caveats],
        [*waste_findings(application, made, replay, found, failures), *late_executors(made, replay)],
        spark_findings(made, found, replay, plans.operations),
        stream_findings(main),
        [*plans.advice, *stream_findings([one for one in streams if one not in main])],
    )
    if caveats:
        findings = [one for one in findings if one.code not in _OF_ALL_TIME]
    what = what_if(made, replay)
    return Judged(application, made, blocked, found, failures, plans, streams, what, tuple(findings))


def compaction_findings(application: Application) -> list[SparkFinding]:
    """That ended jobs were removed from the log: times without a stage are then not what they seem."""
    removed = [note.count for note in application.notes if note.code == "compacted"]
    return [SparkFinding("compacted", {"removed": one, "kept": len(application.jobs)}) for one in removed]


def ranked(
    made: Account,
    failures: Sequence[SparkFinding],
    waste: Sequence[SparkFinding],
    stage: Sequence[SparkFinding],
    streams: Sequence[SparkFinding],
    advice: Sequence[SparkFinding],
) -> list[SparkFinding]:
    """All findings in their order; those of a stage stay together, as they speak of one another."""
    # Of the time between the batches of streaming queries their own findings say more.
    parts = [
        one for one in account_findings(made) if not (streams and one.parameters["part"] == "between-stages")
    ]
    largest = [one for one in parts[:1] if one.seconds * 1000 >= made.group("work")]
    much = sorted(
        (one for one in waste if made.share(one.seconds * 1000) >= _PART), key=lambda one: -one.seconds
    )
    caveats = [one for one in stage if one.code == "replay-error"]
    own = [one for one in stage if one not in caveats]
    others = parts[len(largest) :]
    if own and own[0].parameters.get("few", 0.0) >= _MOSTLY:
        # That it mostly had few tasks is said with the stage.
        others = [one for one in others if not _names(one, own[0].parameters["stage"])]
    rest = [*others, *(one for one in waste if one not in much), *advice]
    first = [*much, *own]
    if largest and own and own[0].code == "stage-share" and _names(largest[0], own[0].parameters["stage"]):
        # It is that stage that the largest part is about.
        more = {"does": own[0].parameters["does"], "input": any(one.parameters.get("input") for one in own)}
        largest = [replace(largest[0], parameters={**largest[0].parameters, **more})]
        first = [*own[1:], *much]
    return [*failures, *streams, *largest, *first, *sorted(rest, key=lambda one: -one.seconds), *caveats]


def _names(part: SparkFinding, stage: int) -> bool:
    return part.parameters.get("named") == stage


def account_findings(made: Account) -> list[SparkFinding]:
    """The parts of the account that are no work and large enough, the largest first."""
    found = []
    for group in _IDLE_GROUPS:
        time = made.group(group)
        if time and made.share(time) >= _PART:
            parts = [made.part(code) for code in GROUPS[group]]
            most = max(parts, key=lambda part: part.time)
            times = {part.code: part.time / 1000 for part in parts if part.time}
            parameters = {"share": made.share(time), "total": made.total / 1000, "parts": times}
            found.append(SparkFinding(group, {**parameters, **_longest(most)}, time / 1000))
    return sorted(found, key=lambda one: -one.seconds)


def _longest(part: Part) -> dict[str, Any]:
    """What a part consists of: the gap or stage that takes most of it. `named` is the id of a stage that
    takes half of it or more."""
    found: dict[str, Any] = {"part": part.code, "count": part.count, "named": None}
    if part.gaps:
        gap = part.gaps[0]
        found.update(longest=gap.time / 1000, after=gap.before, before=gap.after, query=gap.query)
    elif part.stages:
        stage = part.stages[0]
        found.update(longest=stage.time / 1000, stage=stage.stage, attempts=stage.attempts)
        found.update(tasks=stage.tasks, slots=stage.slots)
        if part.code == "tail":
            found["even"] = stage.is_even
        if 2 * stage.time >= part.time:
            found["named"] = stage.stage
    return found


def late_executors(made: Account, replay: Replay) -> list[SparkFinding]:
    """That tasks waited for executors that came later. It costs what a replay gains if they come with the
    first one, and no more than they could have done meanwhile."""
    late = made.late
    if late.time <= _USUAL_RAMP or not replay.as_it_was:
        return []
    slots = late.slot_time / late.time
    gain = replay.measured * (1 - replay.run_with_early_slots() / replay.as_it_was)
    cost = min(gain, late.time * (1 - slots / late.most))
    if cost < _USUAL_RAMP:
        return []
    parameters = {"slots": slots, "most": late.most, "time": late.time / 1000}
    return [SparkFinding("executors-late", parameters, cost / 1000)]


def spark_findings(
    made: Account, found: Stragglers, replay: Replay, operations: Mapping[int, str]
) -> list[SparkFinding]:
    """The stage that takes most of the time, what its tasks wait for, and the straggler that costs most.
    `operations` are what stages do, by their ids."""
    places = range(len(replay.stages))
    place = max(places, key=made.of_stages.__getitem__, default=None)
    most = None if place is None else replay.stages[place]
    stands_out: list[SparkFinding] = []
    time = 0 if place is None else made.of_stages[place]
    idle = max(map(made.group, _IDLE_GROUPS))
    if made.group("work") > idle and (time < idle or made.share(time) < _STAGE):
        stands_out.append(_work(made, replay.stages))
    if place is not None and most is not None and made.share(time) >= _STAGE:
        does = operations.get(most.id) or most.name
        parameters = {
            **_stage(most),
            "does": does,
            "share": made.share(time),
            "cpu": made.did(place).get("cpu", 0.0),
            "few": 1 - made.work[place] / time,
        }
        stands_out.append(SparkFinding("stage-share", parameters, time / 1000))
        said = {one.parameters.get("what") for one in stands_out}
        waits = _stage_wait(made, most, place)
        stands_out += [one for one in waits if one.parameters["what"] not in said]
        stands_out += _data_skew(most)
    costs = ((gain, task) for task, gain in found.worst if gain is not None)
    cost, task = max(costs, key=lambda pair: pair[0].time, default=(None, None))
    if cost is not None and task is not None and cost.share >= _STRAGGLER and cost.time >= _LEAST_COST:
        same = any(one.parameters.get("stage") == task.stage for one in stands_out)
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
    error = replay.in_short().error
    if abs(error) > ROUGH:
        stands_out.append(SparkFinding("replay-error", {"share": abs(error)}))
    return stands_out


def _work(made: Account, stages: Sequence[ReplayStage]) -> SparkFinding:
    """The time with many tasks, where no stage stands for it; and what tasks mostly did besides the CPU."""
    work = made.group("work")
    shares = {code: made.part(code).time / work for code in GROUPS["work"]}
    parameters: dict[str, Any] = {"share": made.share(work), "cpu": shares["cpu"]}
    waits = _waits(shares)
    if waits:
        parameters["what"] = max(waits, key=waits.__getitem__)
        parameters["whatShare"] = waits[parameters["what"]]
        if parameters["what"] == "other":
            in_python = (
                time * made.did(place).get("other", 0.0)
                for place, time in enumerate(made.work)
                if _python_not_timed(made, stages[place], place)
            )
            parameters["python"] = sum(in_python) >= _MOSTLY * waits["other"] * work
    return SparkFinding("work", parameters, work / 1000)


def _waits(did: Mapping[str, float]) -> dict[str, float]:
    """What takes much of the time of tasks besides the CPU. What Spark does not time counts only where it
    counted the CPU at all."""
    waits = {what: share for what, share in did.items() if what not in ("cpu", "repeated", "other")}
    if did.get("cpu") and did.get("other", 0.0) >= _NOT_TIMED:
        waits["other"] = did["other"]
    return {what: share for what, share in waits.items() if share >= _WAIT}


def _stage_wait(made: Account, stage: ReplayStage, place: int) -> list[SparkFinding]:
    """What takes most of the time of a stage's tasks besides the CPU."""
    waits = _waits(made.did(place))
    if not waits:
        return []
    what = max(waits, key=waits.__getitem__)
    seconds = waits[what] * made.work[place] / 1000
    parameters = {**_stage(stage), "what": what, "share": waits[what]}
    if what == "other":
        parameters["python"] = _python_not_timed(made, stage, place)
    return [SparkFinding("stage-wait", parameters, seconds)]


def _python_not_timed(made: Account, stage: ReplayStage, place: int) -> bool:
    """Whether its tasks ran Python, and Spark has no time of that."""
    return any(one.python for one in stage.attempts) and not made.did(place).get("python")


def _stage(stage: ReplayStage) -> dict[str, Any]:
    return {"stage": stage.id, "attempts": stage.attempt_numbers}


def _data_skew(stage: ReplayStage) -> list[SparkFinding]:
    """The task that read far more than the median of its stage, bytes or records, or most of what all read,
    where most read nothing. `input` is whether that was not of a shuffle."""
    read = _sums(stage, READ_COLUMNS)
    records = not _is_skewed(read)
    read = _sums(stage, _RECORD_COLUMNS) if records else read
    if not _is_skewed(read):
        return []
    largest, usual, whole = max(read), median(read), sum(read)
    place = read.index(largest)
    column = "input_records" if records else "input_bytes"
    task = {**_stage(stage), "task": stage.column("tid")[place]}
    task["input"] = 2 * stage.column(column)[place] > largest
    if usual:
        return [SparkFinding("data-skew", {**task, "times": largest / usual, "records": records})]
    if largest < _MOST_DATA * whole:
        return []
    return [SparkFinding("one-partition", {**task, "tasks": len(read), "share": largest / whole})]


def _sums(stage: ReplayStage, columns: Sequence[str]) -> list[int]:
    return list(map(sum, zip(*map(stage.column, columns), strict=True)))


def _is_skewed(read: Sequence[int]) -> bool:
    return len(read) >= _FEWEST and max(read) > _SKEWED * median(read)
