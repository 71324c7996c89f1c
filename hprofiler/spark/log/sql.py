"""SQL executions of an application: plan, metrics of each plan node, jobs and stages.

Metrics are texts as Spark's own pages have them, such as `1.2 s (3 ms, 10 ms, 90 ms (stage 3.0: task 17))`:
total, least, median and most by task.
"""

from __future__ import annotations

import re
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from types import MethodType
from typing import Any

import msgspec
from msgspec import field

from hprofiler.spark.figures import moment
from hprofiler.spark.log.events import SQL_PREFIX
from hprofiler.spark.log.texts import Texts

MOST_EXECUTIONS = 20_000
"""Executions that are kept, the first ones. A server of queries may run more."""
MOST_TASKS = 1_000_000
"""Tasks of a stage whose metrics are kept one by one."""
MOST_PACKED = 64 << 20
"""Bytes of all plans and metrics together; and as many of plans of executions that have not ended."""
MOST_STAGES = 200_000
"""Stages of executions, each counted once for each execution that has it."""
MOST_VALUES = 5_000_000
"""Values of metrics that are kept one by one, of all stages and executions that have not ended."""
MOST_AGGREGATED = 500_000_000
"""Values that texts of metrics are made of: several executions may have the same stage."""
_MOST_EARLY = 10_000
"""Jobs that wait for the start of their execution."""
_LARGEST_DETAILS = 256 << 20
_ENTRY = 16
"""A dictionary's entry takes the memory of so many values in an array."""
_LONGEST_PLAN = 1 << 20
_LONGEST_TEXT = 4000
_MOST_UNPLANNED = 1000
_LONGEST_KIND = 40
_LONGEST_NUMBER = 20
CODEGEN = "WholeStageCodegen"
_PASSED_BY = {"InputAdapter", "TableCacheQueryStage", "ResultQueryStage"}
_EXCHANGE_STAGES = {"BroadcastQueryStage", "ShuffleQueryStage"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast"}
_DRIVER = "(driver)"
_SQL_METRIC = b'"Metadata":"sql"'
_PYTHON_TIME = "time to run Python workers"


class Metric(msgspec.Struct):
    name: str = ""
    accumulator: int = field(default=-1, name="accumulatorId")
    kind: str = field(default="", name="metricType")


class Plan(msgspec.Struct):
    """A node of the plan's tree, as in the event log."""

    name: str = field(default="", name="nodeName")
    text: str = field(default="", name="simpleString")
    children: list[Plan] = []
    metrics: list[Metric] = []


class _Start(msgspec.Struct):
    """SQLExecutionStart, and SQLAdaptiveExecutionUpdate, which has the identity and the new plan only."""

    id: int = field(default=-1, name="executionId")
    root: int | None = field(default=None, name="rootExecutionId")
    description: str = ""
    plan_text: str = field(default="", name="physicalPlanDescription")
    plan: Plan = field(default_factory=Plan, name="sparkPlanInfo")
    time: int = 0
    query: str | None = field(default=None, name="queryId")


class _MetricUpdates(msgspec.Struct):
    id: int = field(default=-1, name="executionId")
    metrics: list[Metric] = field(default_factory=list, name="sqlPlanMetrics")


class _DriverUpdates(msgspec.Struct):
    id: int = field(default=-1, name="executionId")
    updates: list[tuple[int, int]] = field(default_factory=list, name="accumUpdates")


class _End(msgspec.Struct):
    id: int = field(default=-1, name="executionId")
    time: int = 0
    error: str | None = field(default=None, name="errorMessage")


class _Update(msgspec.Struct):
    id: int = field(default=-1, name="ID")
    value: Any = field(default=None, name="Update")


class _NamedUpdate(_Update):
    name: Any = field(default=None, name="Name")


class PlanNode(msgspec.Struct, array_like=True):
    """A node of a plan. `codegen` is the number of the generated code that the node is part of."""

    id: int
    name: str
    text: str
    metrics: list[Metric]
    codegen: int | None = None


class Details(msgspec.Struct, array_like=True):
    """The plan of an execution, its last one where it was adapted.

    `edges` lead from child to parent, `metrics` are texts by accumulator, `text` is the plan as Spark
    prints it. `totals` are sums of what `metrics` show: rows, bytes, or times by `metricType`. `measured` are
    the accumulators that tasks of each stage had. Spark's REST interface knows neither.
    """

    nodes: list[PlanNode] = []
    edges: list[tuple[int, int]] = []
    metrics: dict[int, str] = {}
    text: str = ""
    totals: dict[int, int] = {}
    measured: dict[int, list[int]] = {}


class SqlExecution(msgspec.Struct):
    """A query or command. Times are milliseconds since 1970 on the driver's clock; `end` is 0 while it runs.

    `error` is None if the log does not say how it ended, and empty if it ended well. `jobs` are statuses by
    number; `stages` are in the order in which jobs named them. `query` is Spark 4's id of the query.
    """

    id: int
    root: int
    description: str = ""
    start: int = 0
    end: int = 0
    error: str | None = None
    jobs: dict[int, str] = {}
    stages: dict[int, None] = {}
    query: str = ""
    packed: bytes = b""

    @property
    def status(self) -> str:
        if self.error is not None:
            return "FAILED" if self.error else "COMPLETED"
        if not self.end:
            return "RUNNING"
        return "FAILED" if "FAILED" in self.jobs.values() else "COMPLETED"

    def details(self) -> Details:
        """Its plan and metrics; none if they are not kept, or damaged in a run folder."""
        try:
            content = zlib.decompressobj().decompress(self.packed, _LARGEST_DETAILS)
            return _DETAILS.decode(content) if content else Details()
        except (zlib.error, msgspec.MsgspecError):
            return Details()


class SqlLog:
    """Executions in the making, event by event, in the order of the log.

    `unplanned` are queries that failed before they had a plan, by id: when, and their error. `left_out` are
    executions that are not kept, `without_details` those that are kept without their plans.
    `left_out_stages` and `left_out_metrics` are those of executions that are kept.
    """

    def __init__(self) -> None:
        self.executions: dict[int, SqlExecution] = {}
        self.unplanned: dict[int, tuple[int, str]] = {}
        self.left_out = 0
        self.without_details = 0
        self.left_out_stages = 0
        self.left_out_metrics = 0
        self._errors = Texts()
        self._packed = 0
        self._open_plans = 0
        self._linked_stages = 0
        self._to_aggregate = MOST_AGGREGATED
        self._room = _Room()
        self._open: dict[int, _Open] = {}
        self._of_job: dict[int, int] = {}
        self._early: dict[int, _EarlyJob] = {}
        self._of_stage: dict[int, set[int]] = {}
        self._stages: dict[int, _StageMetrics] = {}

    def takers(self) -> dict[bytes, tuple[Callable[[bytes], Any], Callable[[Any], None]]]:
        """What decodes and what takes each event of SQL, by the name that stands in the log."""
        return {
            SQL_PREFIX + name: (decode, MethodType(take, self)) for name, (decode, take) in _TAKERS.items()
        }

    def job_started(self, job: int, execution: int, stages: Iterable[tuple[int, int]]) -> None:
        """`stages` are all stages of the job, each with its number of tasks."""
        found = self.executions.get(execution)
        if found is None:
            if len(self._early) < _MOST_EARLY:
                self._early[job] = _EarlyJob(execution, list(stages))
            return
        one = self._open.get(execution)
        if one is None:  # it is over, but for this job
            one = self._open[execution] = _Open(found, ends=len(found.jobs) + 1)
        for stage, tasks in stages:
            if self._linked_stages >= MOST_STAGES:
                self.left_out_stages += 1
                continue
            self._linked_stages += 1
            if one.kinds:
                self._forget_values(stage)
                self._stages[stage] = _StageMetrics(stage, 0, tasks, one.kinds, self._room)
            self._of_stage.setdefault(stage, set()).add(execution)
            found.stages[stage] = None
        found.jobs[job] = "RUNNING"
        self._of_job[job] = execution

    def job_ended(self, job: int, succeeded: bool) -> None:
        if job in self._early:
            self._early[job].succeeded = succeeded
            return
        execution = self._open.get(self._of_job.pop(job, -1))
        if execution is not None:
            execution.made.jobs[job] = "SUCCEEDED" if succeeded else "FAILED"
            execution.ends += 1
            self._close(execution)

    def stage_submitted(self, stage: int, attempt: int) -> None:
        before = self._stages.get(stage)
        if before is not None and before.attempt != attempt:
            self._forget_values(stage)
            self._stages[stage] = _StageMetrics(stage, attempt, before.tasks, before.kinds, self._room)

    def task_ended(
        self, stage: int, attempt: int, task: int, index: int, succeeded: bool, accumulables: msgspec.Raw
    ) -> None:
        """`accumulables` are those of its Task Info; damaged ones do not count."""
        metrics = self._stages.get(stage)
        if metrics is None or metrics.attempt != attempt:
            return
        content = bytes(accumulables)
        try:
            updates = _UPDATES.decode(content) if _SQL_METRIC in content else []
        except (msgspec.MsgspecError, UnicodeDecodeError):
            updates = []
        metrics.add(task, index, succeeded, updates)

    def finish(self) -> dict[int, SqlExecution]:
        """All executions; those that have not ended with what is known by now."""
        for execution in self._open.values():
            self._aggregate(execution)
        self._open.clear()
        return self.executions

    def _start(self, event: _Start) -> None:
        if len(self.executions) >= MOST_EXECUTIONS:
            self.left_out += 1
            return
        root = event.id if event.root is None else event.root
        made = SqlExecution(event.id, root, event.description[:_LONGEST_TEXT], event.time)
        made.query = (event.query or "")[:_LONGEST_TEXT]
        before = self._open.pop(event.id, None)
        if before is not None:
            self._forget_plan(before)
        self.executions[event.id] = made
        self._open[event.id] = _Open(made)
        self._adapt(event)
        for job in [job for job, one in self._early.items() if one.execution == event.id]:
            early = self._early.pop(job)
            self.job_started(job, event.id, early.stages)
            if early.succeeded is not None:
                self.job_ended(job, early.succeeded)

    def _adapt(self, event: _Start) -> None:
        execution = self._open.get(event.id)
        if execution is None:
            return
        nodes, edges = plan_graph(event.plan)
        packed = msgspec.msgpack.encode(Details(nodes, edges, {}, event.plan_text[:_LONGEST_PLAN]))
        self._open_plans -= len(execution.plan)
        if self._open_plans + len(packed) > MOST_PACKED:
            self.without_details += 1
            packed = b""
        self._open_plans += len(packed)
        execution.plan = packed
        self._add_kinds(execution, (metric for node in nodes for metric in node.metrics))

    def _add_metrics(self, event: _MetricUpdates) -> None:
        execution = self._open.get(event.id)
        if execution is not None:
            self._add_kinds(execution, event.metrics)

    def _add_kinds(self, execution: _Open, metrics: Iterable[Metric]) -> None:
        for metric in metrics:
            if metric.accumulator in execution.kinds or self._room.take(_ENTRY):
                execution.kinds[metric.accumulator] = metric.kind[:_LONGEST_KIND]
            else:
                self.left_out_metrics += 1

    def _add_driver_updates(self, event: _DriverUpdates) -> None:
        execution = self._open.get(event.id)
        if execution is None:
            return
        if self._room.take(_ENTRY * len(event.updates)):
            execution.driver += event.updates
        else:
            self.left_out_metrics += len(event.updates)

    def _end(self, event: _End) -> None:
        execution = self._open.get(event.id)
        error = None if event.error is None else self._errors.keep(event.error)
        if execution is None:
            if error and event.id not in self.executions and len(self.unplanned) < _MOST_UNPLANNED:
                self.unplanned[event.id] = event.time, error
            return
        self._aggregate(execution)
        execution.made.end = event.time
        execution.made.error = error
        execution.ends += 1
        self._forget_stages(execution)
        self._close(execution)

    def _close(self, execution: _Open) -> None:
        if execution.ends > len(execution.made.jobs):
            self._open.pop(execution.made.id, None)
            self._forget_stages(execution)
            self._forget_plan(execution)

    def _forget_stages(self, execution: _Open) -> None:
        """Those of this execution that no other one has."""
        for stage in execution.made.stages:
            users = self._of_stage.get(stage, set())
            users.discard(execution.made.id)
            if not users:
                self._of_stage.pop(stage, None)
                self._forget_values(stage)

    def _forget_values(self, stage: int) -> None:
        metrics = self._stages.pop(stage, None)
        if metrics is not None:
            self._room.left += metrics.taken

    def _forget_plan(self, execution: _Open) -> None:
        self._open_plans -= len(execution.plan)
        self._room.left += _ENTRY * (len(execution.kinds) + len(execution.driver))

    def _aggregate(self, execution: _Open) -> None:
        if not execution.plan:
            return
        details = _DETAILS.decode(execution.plan)
        self._open_plans -= len(execution.plan)
        execution.plan = b""
        stages = [self._stages[stage] for stage in execution.made.stages if stage in self._stages]
        driver: dict[int, list[int]] = {}
        for accumulator, value in execution.driver:
            driver.setdefault(accumulator, []).append(value)
        measured: dict[int, list[_StageMetrics]] = {accumulator: [] for accumulator in driver}
        for stage in stages:
            for accumulator in stage.accumulators():
                measured.setdefault(accumulator, []).append(stage)
        left_out = {accumulator for stage in stages for accumulator in stage.left_out}
        self.left_out_metrics += len(left_out)
        for accumulator, users in measured.items():
            if accumulator in left_out or accumulator not in execution.kinds:
                continue
            kind, known = execution.kinds[accumulator], driver.get(accumulator, [])
            if kind == "sum":
                total = sum(known) + sum(stage.total(accumulator) for stage in users)
                details.metrics[accumulator] = f"{total:,}"
                details.totals[accumulator] = total
                continue
            self._to_aggregate -= sum(len(stage.values(accumulator)) for stage in users)
            if self._to_aggregate < 0:
                self.left_out_metrics += 1
                continue
            values = [value for stage in users for value in stage.values(accumulator)]
            found = [stage.most[accumulator] for stage in users if accumulator in stage.most]
            most, place = max(found, key=lambda one: one[0], default=(0, _DRIVER))
            if any(value > most for value in known):
                place = _DRIVER
            details.metrics[accumulator] = metric_text(kind, values + known, place)
            if kind in _SHOWN:
                details.totals[accumulator] = sum(value for value in values + known if value > 0)
        own = {stage.id: [one for one in stage.accumulators() if one in execution.kinds] for stage in stages}
        details.measured = {stage: accumulators for stage, accumulators in own.items() if accumulators}
        packed = pack_details(details)
        if self._packed + len(packed) > MOST_PACKED:
            self.without_details += 1
            return
        self._packed += len(packed)
        execution.made.packed = packed


class _Open:
    """An execution that has not ended, with its jobs. `ends` counts its own end and those of its jobs; `plan`
    are its packed Details, without metrics."""

    def __init__(self, made: SqlExecution, ends: int = 0) -> None:
        self.made = made
        self.ends = ends
        self.plan = b""
        self.driver: list[tuple[int, int]] = []
        self.kinds: dict[int, str] = {}


class _EarlyJob(msgspec.Struct):
    """A job that the log has before the start of its execution; Spark writes them from several threads."""

    execution: int
    stages: list[tuple[int, int]]
    succeeded: bool | None = None


class _Room:
    """How many values may still be kept."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def take(self, count: int) -> bool:
        if count > self.left:
            return False
        self.left -= count
        return True


class _StageMetrics:
    """The metrics of one attempt of a stage, by accumulator: sums, or one value for each task index.

    `most` are the largest values, with the tasks that had them. `left_out` are accumulators without room;
    `taken` is the room of the others.
    """

    def __init__(self, stage: int, attempt: int, tasks: int, kinds: dict[int, str], room: _Room) -> None:
        self.id = stage
        self.attempt = attempt
        self.tasks = min(tasks, MOST_TASKS)
        self.kinds = kinds
        self.most: dict[int, tuple[int, str]] = {}
        self.left_out: set[int] = set()
        self.taken = 0
        self._room = room
        self._place = f"stage {stage}.{attempt}"
        self._done: set[int] = set()
        self._totals: dict[int, int] = {}
        self._unfinished: dict[int, dict[int, int]] = {}
        self._values: dict[int, array[int]] = {}

    def add(self, task: int, index: int, succeeded: bool, updates: Iterable[_Update]) -> None:
        """What an attempt of a task measured. Once one has succeeded, later ones of the same index do not
        count; one that failed counts until then."""
        if index in self._done or not 0 <= index < self.tasks:
            return
        for update in updates:
            accumulator = update.id
            kind = self.kinds.get(accumulator)
            if kind is None or accumulator in self.left_out:  # most are not metrics of SQL
                continue
            value = _number(update.value)
            if value is None:
                continue
            if kind == "sum" and succeeded:
                self._totals[accumulator] = self._totals.get(accumulator, 0) + value
                self._unfinished.get(accumulator, {}).pop(index, None)
                continue
            if kind == "sum":
                started = self._unfinished.setdefault(accumulator, {})
                if index not in started and not self._take(_ENTRY):
                    self.left_out.add(accumulator)
                    continue
                self._totals.setdefault(accumulator, 0)
                started[index] = value
                continue
            values = self._values.get(accumulator)
            if values is None:
                # For all tasks at once: an index may be the last one of a million.
                if not self._take(2 * _ENTRY + self.tasks):
                    self.left_out.add(accumulator)
                    continue
                values = self._values[accumulator] = array("q", bytes(8 * self.tasks))
            values[index] = value
            if accumulator not in self.most or value > self.most[accumulator][0]:
                self.most[accumulator] = value, f"({self._place}: task {task})"
        if succeeded:
            self._done.add(index)
            for accumulator, started in self._unfinished.items():  # of tasks that failed before
                self._totals[accumulator] += started.pop(index, 0)

    def _take(self, count: int) -> bool:
        if not self._room.take(count):
            return False
        self.taken += count
        return True

    def accumulators(self) -> Iterator[int]:
        yield from self._totals
        yield from self._values

    def total(self, accumulator: int) -> int:
        """Also of tasks that have not succeeded."""
        return self._totals.get(accumulator, 0) + sum(self._unfinished.get(accumulator, {}).values())

    def values(self, accumulator: int) -> Sequence[int]:
        """Of all task indices, 0 where nothing is known; empty if no task has it."""
        return self._values.get(accumulator, ())


def _number(value: object) -> int | None:
    """A value that is a number. Event logs write those of SQL as text."""
    if isinstance(value, str):
        try:
            value = int(value) if len(value) <= _LONGEST_NUMBER else None
        except ValueError:
            return None
    return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None


def python_time(accumulables: msgspec.Raw) -> int:
    """Milliseconds that Python workers ran for a task, from their start to their end; 0 before Spark 4.
    Workers of several operators run at the same time, and are added up."""
    content = bytes(accumulables)
    if _PYTHON_TIME.encode() not in content:
        return 0
    try:
        updates = _NAMED_UPDATES.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return 0
    return max(0, sum(_number(update.value) or 0 for update in updates if update.name == _PYTHON_TIME))


def rest_execution(execution: SqlExecution, until: int) -> dict[str, Any]:
    """As `/sql?details=true&planDescription=true` has it. `until` is the end of what is known."""
    details = execution.details()
    jobs = execution.jobs.items()
    found: dict[str, Any] = {
        "id": execution.id,
        "status": execution.status,
        "description": execution.description,
        "planDescription": details.text,
        "submissionTime": moment(execution.start),
        "duration": max(0, (execution.end or until) - execution.start),
        "runningJobIds": [job for job, status in jobs if status == "RUNNING"],
        "successJobIds": [job for job, status in jobs if status == "SUCCEEDED"],
        "failedJobIds": [job for job, status in jobs if status == "FAILED"],
        "nodes": [_rest_node(node, details.metrics) for node in reversed(details.nodes)],
        "edges": [{"fromId": child, "toId": parent} for child, parent in details.edges],
        "rootExecutionId": execution.root,
        "stageIds": sorted(execution.stages),
    }
    later = {"queryId": execution.query or None, "errorMessage": execution.error}
    return found | {name: value for name, value in later.items() if value is not None}


def _rest_node(node: PlanNode, metrics: dict[int, str]) -> dict[str, Any]:
    values = [
        {"name": metric.name.strip(), "value": metrics[metric.accumulator].removeprefix("\n")}
        for metric in node.metrics
        if metric.accumulator in metrics
    ]
    codegen = {} if node.codegen is None else {"wholeStageCodegenId": node.codegen}
    names = {"nodeId": node.id, "nodeName": node.name.strip(), "desc": node.text}
    return {**names, **codegen, "metrics": values}


def plan_graph(root: Plan) -> tuple[list[PlanNode], list[tuple[int, int]]]:
    """Nodes in the order of their numbers, and edges from child to parent.

    As Spark draws it: nodes that only hold others are passed by, and an exchange or a subquery that is used
    again is one node.
    """
    nodes: list[PlanNode] = []
    edges: list[tuple[int, int]] = []
    shared = _Shared()
    to_visit: list[tuple[Plan, int | None, str | None]] = [(root, None, None)]
    while to_visit:
        plan, parent, codegen = to_visit.pop()
        name = plan.name
        first = plan.children[0] if plan.children else None
        if name in _SUBQUERIES:
            codegen = None
        if name.startswith(CODEGEN):
            nodes.append(PlanNode(len(nodes), name, plan.text[:_LONGEST_TEXT], plan.metrics))
            to_visit += [(first, parent, name)] if first else []
            continue
        if first is not None and name in _PASSED_BY:
            to_visit.append((first, parent, None))
            continue
        if first is not None and name == "ReusedSubquery":
            to_visit.append((first, parent, codegen))
            continue
        again = plan if name in _SUBQUERIES else first
        if again is not None and name in _SUBQUERIES | _EXCHANGE_STAGES | {"ReusedExchange"}:
            node = shared.find(again)
            if node is not None:
                edges += [(node, parent)] if parent is not None else []
                continue
            if name in _EXCHANGE_STAGES:
                to_visit.append((again, parent, None))
                continue
        node = len(nodes)
        nodes.append(PlanNode(node, name, plan.text[:_LONGEST_TEXT], plan.metrics, _codegen_number(codegen)))
        if "Exchange" in name or "Subquery" in name:
            shared.add(plan, node)
        if parent is not None:
            edges.append((node, parent))
        to_visit += [(child, node, codegen) for child in reversed(plan.children)]
    return nodes, edges


class _Shared:
    """The nodes of plans that may be used again, by plans that are equal."""

    def __init__(self) -> None:
        self._nodes: dict[int, int] = {}
        self._unnumbered: list[tuple[Plan, int]] = []
        self._numbers: dict[tuple[str, str, tuple[int, ...]], int] = {}
        self._known: dict[int, int] = {}

    def add(self, plan: Plan, node: int) -> None:
        self._unnumbered.append((plan, node))

    def find(self, plan: Plan) -> int | None:
        for one, node in self._unnumbered:
            self._nodes[self._number(one)] = node
        self._unnumbered = []
        return self._nodes.get(self._number(plan))

    def _number(self, plan: Plan) -> int:
        """Equal plans have the same number."""
        to_visit = [(plan, False)]
        while to_visit:
            one, has_children = to_visit.pop()
            if id(one) in self._known:
                continue
            if not has_children:
                to_visit += [(one, True), *((child, False) for child in one.children)]
                continue
            key = (one.name, one.text, tuple(self._known[id(child)] for child in one.children))
            self._known[id(one)] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[id(plan)]


def _codegen_number(name: str | None) -> int | None:
    found = re.fullmatch(rf"{CODEGEN} \((\d{{1,9}})\)", name.strip()) if name else None
    return int(found.group(1)) if found else None


def pack_details(details: Details) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(details), 1)


def metric_text(kind: str, values: list[int], place: str) -> str:
    """The text of a metric from the values of its tasks; `place` is the task with the largest."""
    if kind == "average":
        valid = sorted(value for value in values if value > 0)
        if len(valid) <= 1:
            return _tenths(valid[0] if valid else 0)
        least, middle, most = (_tenths(valid[at]) for at in (0, len(valid) // 2, -1))
        return f"(min, med, max (stageId: taskId)):\n({least}, {middle}, {most} {place})"
    show = _SHOWN.get(kind)
    if show is None:  # a data source's own kind, whose code is not here
        return "N/A"
    valid = sorted(value for value in values if value >= 0)
    if len(valid) <= 1:
        return show(valid[0] if valid else 0)
    least, middle, most = (show(valid[at]) for at in (0, len(valid) // 2, -1))
    total = show(sum(valid))
    return f"total (min, med, max (stageId: taskId))\n{total} ({least}, {middle}, {most} {place})"


def _tenths(value: int) -> str:
    return f"{value / 10:,.1f}".removesuffix(".0")


def bytes_text(size: int) -> str:
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    step = next((step for step in range(6, 0, -1) if size >= 2 << 10 * step), 0)
    return f"{_rounded(size / (1 << 10 * step), '0.1')} {units[step]}"


def duration_text(milliseconds: int) -> str:
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    for limit, unit, digits in ((60_000, "s", "0.1"), (3_600_000, "m", "0.1"), (1 << 64, "h", "0.01")):
        if milliseconds < limit:
            whole = {"s": 1000, "m": 60_000, "h": 3_600_000}[unit]
            return f"{_rounded(_single(_single(milliseconds) / whole), digits)} {unit}"
    return f"{milliseconds} ms"


def _single(value: float) -> float:
    """The nearest number of single precision, which Spark computes with."""
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def _rounded(value: float, digits: str) -> Decimal:
    """As Java rounds: half up, from the shortest decimal form."""
    return Decimal(repr(float(value))).quantize(Decimal(digits), ROUND_HALF_UP)


_SHOWN: dict[str, Callable[[int], str]] = {
    "size": bytes_text,
    "timing": duration_text,
    "nsTiming": lambda nanoseconds: duration_text(nanoseconds // 1_000_000),
}
_DETAILS = msgspec.msgpack.Decoder(Details)
_UPDATES = msgspec.json.Decoder(list[_Update])
_NAMED_UPDATES = msgspec.json.Decoder(list[_NamedUpdate])
_TAKERS: dict[bytes, tuple[Callable[[bytes], Any], Callable[[SqlLog, Any], None]]] = {
    b"SQLExecutionStart": (msgspec.json.Decoder(_Start).decode, SqlLog._start),
    b"SQLAdaptiveExecutionUpdate": (msgspec.json.Decoder(_Start).decode, SqlLog._adapt),
    b"SQLAdaptiveSQLMetricUpdates": (msgspec.json.Decoder(_MetricUpdates).decode, SqlLog._add_metrics),
    b"DriverAccumUpdates": (msgspec.json.Decoder(_DriverUpdates).decode, SqlLog._add_driver_updates),
    b"SQLExecutionEnd": (msgspec.json.Decoder(_End).decode, SqlLog._end),
}
