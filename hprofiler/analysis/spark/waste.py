"""What was wasted: work that failed, was killed or was done again, executors that were lost, spills, slow
hosts, and slots without a task.

Lost work costs an application the part of its stages' time that it has of their tasks' time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hprofiler.analysis.spark.account import Account
from hprofiler.analysis.spark.failures import Failures
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.spark.application import FAILED, KILLED, SUCCESS, Application, TaskTable
from hprofiler.spark.losses import EXPECTED
from hprofiler.spark.replay.schedule import Replay, ReplayStage
from hprofiler.spark.replay.stragglers import Stragglers

_LEAST = 0.01
"""Of the application's time: work that cost less is not worth a sentence."""
_LEAST_SECONDS = 1
_MUCH_SPILL = 1 << 30
_MUCH_OF_TASK = 64 << 20
_DISK = 100_000
"""Bytes a millisecond: a slow disk. Spilled bytes are written once and read once."""
_TOGETHER = 10_000
"""Milliseconds: a task failed with its executor if it ended so shortly before or after."""
_MOSTLY_IDLE = 0.5
_HOUR = 3_600_000
_NAMED = 2
_KINDS = ("failed", "killed", "speculative", "repeated")


@dataclass
class _Lost:
    """Lost work of one kind: tasks, those that ended with their executor, their time and what that cost, in
    milliseconds; and of each stage its cost, by its place in the replay."""

    tasks: int = 0
    with_executor: int = 0
    time: int = 0
    cost: float = 0.0
    by_stage: dict[int, float] = field(default_factory=dict)

    def add(self, place: int, tasks: int, time: int, cost: float) -> None:
        self.tasks += tasks
        self.time += time
        self.cost += cost
        self.by_stage[place] = cost


def waste_findings(
    application: Application, made: Account, replay: Replay, found: Stragglers, failures: Failures
) -> list[SparkFinding]:
    lost = _lost(application, made, replay.stages)
    whole = sum(sum(stage.duration) for stage in replay.stages) + sum(one.time for one in lost.values())
    return [
        *_lost_work(made, replay.stages, lost, whole, failures),
        *_spilled(made, replay.stages),
        *_slow_host(found),
        *_idle_slots(made),
    ]


def _lost(application: Application, made: Account, stages: Sequence[ReplayStage]) -> dict[str, _Lost]:
    found = {kind: _Lost() for kind in _KINDS}
    known = application.executors
    removed = [known[id_].removed if id_ in known else 0 for id_ in application.executor_ids]
    for place, stage in enumerate(stages):
        if not made.did(place).get("repeated"):
            continue
        tasks: Counter[str] = Counter()
        times: Counter[str] = Counter()
        for attempt in stage.attempts:
            for kind, time, executor, finish in _by_kind(attempt.tasks):
                tasks[kind] += 1
                times[kind] += max(0, time)
                if kind == "failed" and abs(removed[executor] - finish) <= _TOGETHER:
                    found[kind].with_executor += 1
        whole = max(1, times.total())
        tasks["repeated"] = max(0, tasks["good"] - len(stage))
        times["repeated"] = max(0, times["good"] - sum(stage.duration))
        for kind, one in found.items():
            if tasks[kind]:
                one.add(place, tasks[kind], times[kind], made.of_stages[place] * times[kind] / whole)
    return found


def _by_kind(tasks: TaskTable) -> Iterator[tuple[str, int, int, int]]:
    """Of each task its kind, duration, executor and end. One that was killed because its copy was faster is
    `replaced`: the copy was worth it."""
    copies = tasks.columns("index", "speculative", "status")
    won = {index for index, copy, status in copies if copy and status == SUCCESS}
    columns = tasks.columns("index", "speculative", "status", "duration", "executor", "finish")
    for index, copy, status, duration, executor, finish in columns:
        kind = _BY_STATUS.get(status, "running")
        if copy and status != SUCCESS:
            kind = "speculative"
        elif status == KILLED and index in won:
            kind = "replaced"
        yield kind, duration, executor, finish


_BY_STATUS = {FAILED: "failed", KILLED: "killed", SUCCESS: "good"}


def _lost_work(
    made: Account,
    stages: Sequence[ReplayStage],
    lost: dict[str, _Lost],
    whole: int,
    failures: Failures,
) -> Iterator[SparkFinding]:
    after = Counter(id_ for id_, _ in failures.repeated)
    executors = Counter(code for code in failures.losses.values() if code not in EXPECTED)
    of_executors = {"lost": dict(executors.most_common())} if executors else {}
    failed = lost["failed"]
    explain = executors and _is_worth(made, failed) and 2 * failed.with_executor >= failed.tasks
    for kind, one in lost.items():
        if _is_worth(made, one):
            place = max(one.by_stage, key=one.by_stage.__getitem__)
            parameters = {
                "tasks": one.tasks,
                "time": one.time / 1000,
                "share": one.time / max(1, whole),
                "stage": stages[place].id,
                "attempts": stages[place].attempt_numbers,
                **(of_executors if kind == "failed" and explain else {}),
            }
            if kind == "repeated" and after:
                parameters["after"] = dict(after.most_common(_NAMED))
            yield SparkFinding(f"{kind}-tasks", parameters, one.cost / 1000)
    if executors and not explain:
        yield SparkFinding("executors-lost", of_executors)


def _is_worth(made: Account, one: _Lost) -> bool:
    return one.cost >= _LEAST_SECONDS * 1000 and made.share(one.cost) >= _LEAST


def _spilled(made: Account, stages: Sequence[ReplayStage]) -> Iterator[SparkFinding]:
    """The stage that spilled most, if that is much for each of its tasks. It cost at most the time that Spark
    does not explain, and that which a slow disk takes for so much."""
    spilled = [
        sum(one.tasks.total("disk_spilled") for one in stage.attempts) if made.of_stages[place] else 0
        for place, stage in enumerate(stages)
    ]
    place = max(range(len(stages)), key=spilled.__getitem__, default=None)
    if place is None or spilled[place] < max(_MUCH_SPILL, _MUCH_OF_TASK * len(stages[place])):
        return
    stage, did = stages[place], made.did(place)
    parameters = {
        "stage": stage.id,
        "attempts": stage.attempt_numbers,
        "bytes": spilled[place],
        "total": sum(spilled),
        "tasks": len(stage),
        "cpu": did.get("cpu", 0.0),
    }
    not_timed = did.get("other", 0.0) if did.get("cpu") else 0.0
    on_disk = 2 * spilled[place] / _DISK / max(1, sum(stage.duration))
    yield SparkFinding("spill", parameters, min(not_timed, on_disk) * made.of_stages[place] / 1000)


def _slow_host(found: Stragglers) -> Iterator[SparkFinding]:
    slow = Counter(task.host for task, _ in found.worst if "host" in task.causes and task.host)
    for host, tasks in slow.most_common(1):
        of_host = {task.stage for task, _ in found.worst if task.host == host}
        gains = [one.gain.time for one in found.stages if one.gain and one.stage in of_host]
        cost = max(gains, default=0.0)
        if cost >= _LEAST_SECONDS * 1000:
            yield SparkFinding("slow-host", {"host": host, "tasks": tasks}, cost / 1000)


def _idle_slots(made: Account) -> Iterator[SparkFinding]:
    """Where most are idle beside tasks, that costs what more tasks at a time would gain; else other findings
    say why."""
    idle = sum(made.idle.values())
    if made.slot_time and idle / made.slot_time >= _MOSTLY_IDLE:
        groups = {group: time / made.slot_time for group, time in made.idle.items() if time}
        parameters = {"share": idle / made.slot_time, "hours": made.slot_time / _HOUR, "parts": groups}
        beside = made.idle["work"] if 2 * made.idle["work"] >= idle else 0
        yield SparkFinding("idle-slots", parameters, beside / made.slot_time * made.total / 1000)
