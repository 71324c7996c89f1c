"""What the plans of all queries say: what stages do, and what could be better. Each is unpacked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hprofiler.analysis.spark.advice import Advice, StageCost
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.groups import kind_of, lasted
from hprofiler.analysis.spark.operators import Operator, QueryOperators
from hprofiler.analysis.spark.plans import PlanView, listing_of
from hprofiler.spark.application import Application, Stage
from hprofiler.spark.log.sql import SqlExecution

_SLOWEST = 10


@dataclass(frozen=True)
class QueryPlan:
    """A query with its operators; `task_time` is that of its stages, in milliseconds."""

    query: SqlExecution
    operators: Sequence[Operator]
    task_time: float


@dataclass(frozen=True)
class QueryPlans:
    """`operations` are what stages do, by their ids, and `summaries` what queries read and write, where plans
    say it. `slowest` are those of the slowest queries, one of each kind. `advice` has the most expensive
    first."""

    operations: Mapping[int, str]
    summaries: Mapping[int, Sequence[str]]
    slowest: Sequence[QueryPlan]
    advice: Sequence[SparkFinding]


def query_plans(application: Application, times: Mapping[int, int]) -> QueryPlans:
    """`times` are those of stages, by their ids, of the account of the application's time."""
    costs = _stage_costs(application, times)
    task_times = {stage: one.task_time for stage, one in costs.items()}
    wanted = _slowest(application, task_times)
    advice = Advice(application, costs)
    operations: dict[int, str] = {}
    summaries: dict[int, Sequence[str]] = {}
    slowest: dict[int, QueryPlan] = {}
    same: dict[str, str] = {}
    scopes = {one.id: one.scopes for one in application.stages.values() if one.scopes}
    alike: dict[tuple[str, ...], tuple[str, ...]] = {}
    for query in application.sql.values():
        details = query.details()
        if not details.nodes:
            continue
        view = PlanView(details)
        summary = view.summary()
        if summary:
            summaries[query.id] = alike.setdefault(summary, summary)
        for stage in query.stages:
            operation = view.operation(stage) if stage in details.measured else ""
            operation = operation or view.scoped(scopes.get(stage, ()))
            if operation:
                operations[stage] = same.setdefault(operation, operation)
        operators = QueryOperators(view, query.stages, task_times)
        if operators.task_time:
            advice.add(query.id, operators)
            if query.id in wanted and details.measured:
                slowest[query.id] = QueryPlan(query, operators.all, operators.task_time)
    for stage in application.stages.values():
        if stage.id not in operations and (listing := listing_of(stage.description)):
            operations[stage.id] = same.setdefault(listing, listing)
    kept = [slowest[id_] for id_ in wanted if id_ in slowest]
    return QueryPlans(operations, summaries, kept, advice.findings)


def _slowest(application: Application, task_times: Mapping[int, float]) -> list[int]:
    """The slowest queries that have tasks, one of each kind."""
    ran = [one for one in application.sql.values() if any(task_times.get(stage) for stage in one.stages)]
    kinds: dict[str, int] = {}
    for one in sorted(ran, key=lambda one: -lasted(one, application)):
        kinds.setdefault(kind_of(one.description), one.id)
        if len(kinds) >= _SLOWEST:
            break
    return list(kinds.values())


def _stage_costs(application: Application, times: Mapping[int, int]) -> dict[int, StageCost]:
    """Of the stages of queries, all attempts together."""
    wanted = {stage for query in application.sql.values() for stage in query.stages}
    attempts: dict[int, list[Stage]] = {}
    for stage in application.stages.values():
        if stage.id in wanted and len(stage.tasks):
            attempts.setdefault(stage.id, []).append(stage)
    return {id_: _cost(ones, times.get(id_, 0)) for id_, ones in attempts.items()}


def _cost(attempts: Iterable[Stage], time: int) -> StageCost:
    task_time = running = tasks = 0
    for one in attempts:
        for durations, run_times in one.tasks.parts("duration", "run_time"):
            task_time += sum(durations)
            running += sum(run_times)
        tasks = max(tasks, len(one.tasks))
    overhead = max(0.0, 1 - running / task_time) if task_time else 0.0
    return StageCost(task_time, time, overhead, tasks)
