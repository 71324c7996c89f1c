"""The operators of a query: where its tasks' time went, and how many rows, bytes and files each had.

Spark measures the time of some operators alone: of scans, sorts, shuffles, Python. The others run as one
piece of generated code. What is left of the time of their stage's tasks is theirs, as one operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hprofiler.analysis.spark.plans import (
    BROADCAST,
    EXCHANGE,
    FILTER,
    SHUFFLED_JOIN,
    WRITE,
    PlanView,
    chain,
)
from hprofiler.spark.log.sql import Metric, PlanNode

_TOTAL = " total (min, med, max)"
"""Spark 2 wrote so behind names of metrics."""
_OWN_TIMES = (
    ("op time",),
    ("scan time",),
    ("sort time",),
    ("fetch wait time",),
    ("shuffle write time",),
    ("time to execute Python code", "time to run Python workers"),
    ("time to build", "time to build hash map"),
    ("time to broadcast",),
    ("metadata time",),
    ("time to update", "time to update rows"),
    ("time to remove", "time to remove rows"),
    ("time to commit changes",),
    ("task commit time",),
    ("job commit time",),
)
"""Times that no other operator's time contains; of each row the first that is there."""
_TIMES = frozenset(name for names in _OWN_TIMES for name in names)
_ROWS = ("number of output rows", "output rows", "rows output", "records read", "shuffle records written")
_SIZES = (
    "size of files read",
    "written output",
    "shuffle bytes written",
    "data size",
    "data size of build side",
    "data sent to Python workers",
)
_FILES = ("number of files read", "number of written files", "number of files")
_SPILLS = ("spill size", "num bytes spilled to disk")
_PARTLY_TIMED = (WRITE, SHUFFLED_JOIN)
"""Operators of which only a part is timed: the commit of a write, the build of a join."""
_MILLISECONDS = {"timing": 1.0, "nsTiming": 1e-6}


@dataclass(frozen=True, slots=True)
class Operator:
    """`node` is its number in the plan, -1 for several nodes whose time is not known one by one. `time` is
    the time of tasks in milliseconds, or that of the driver if no task measured it; `timed` says whether that
    is all of it. Rows, bytes and files are None where Spark does not count them."""

    text: str
    kind: str
    node: int
    stages: tuple[int, ...]
    time: float = 0.0
    on_driver: bool = False
    timed: bool = False
    rows_in: int | None = None
    rows_out: int | None = None
    size: int | None = None
    files: int | None = None
    spilled: int = 0


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return name.strip().removesuffix(_TOTAL)


class QueryOperators:
    """All operators of a query. `stages` are those of the query, `task_times` those of all tasks of each."""

    def __init__(self, view: PlanView, stages: Iterable[int], task_times: Mapping[int, float]) -> None:
        self.view = view
        self.stages = [stage for stage in stages if task_times.get(stage)]
        self.task_time = sum(task_times[stage] for stage in self.stages)
        self._totals = view.details.totals
        self._task_times = task_times
        self._remaining = {stage: float(task_times[stage]) for stage in self.stages}
        self._metrics = {node.id: self._known_metrics(node) for node in view.details.nodes}
        self._rows_in: dict[int, int | None] = {}
        self._rows_out: dict[int, int | None] = {}
        for node in view.children_first:
            counts = [self._rows_out.get(child) for child in view.children.get(node, ())]
            known = [rows for rows in counts if rows is not None]
            self._rows_in[node] = sum(known) if known and len(known) == len(counts) else None
            own = self.metric(node, *_ROWS)
            self._rows_out[node] = self._rows_in[node] if own is None else own
        self._times = {node.id: self._time(node) for node in view.details.nodes}
        self.all = self._operators()
        self.by_node = {operator.node: operator for operator in self.all if operator.node >= 0}

    def metric(self, node: int, *names: str) -> int | None:
        """The total of the first of these metrics that the node has."""
        metrics = self._metrics[node]
        for name in names:
            if name in metrics:
                return self._totals[metrics[name].accumulator]
        return None

    def _known_metrics(self, node: PlanNode) -> dict[str, Metric]:
        """Those that have a total, by their names without what versions of Spark add."""
        totals = self._totals
        return {_plain(metric.name): metric for metric in node.metrics if metric.accumulator in totals}

    def rows_out(self, node: int) -> int | None:
        """Rows that a node hands on; those of the nearest nodes below it where it does not count them."""
        return self._rows_out.get(node)

    def remaining_share(self, stage: int) -> float:
        """The part of the time of a stage's tasks that is not of an operator whose time is known."""
        return self._remaining[stage] / self._task_times[stage] if stage in self._remaining else 0.0

    def stages_of(self, node: int) -> tuple[int, ...]:
        stages = self.view.stages[node]
        if self.view.steps[node].kind == WRITE:  # its metrics are often the driver's
            stages = stages.union(stage for stage in self._remaining if self.view.runs(stage, node))
        return tuple(sorted(stages.intersection(self._remaining)))

    def _has_times(self, node: int) -> bool:
        return not _TIMES.isdisjoint(self._metrics[node])

    def _time(self, node: PlanNode) -> tuple[float, bool]:
        """The node's own time, and whether the driver measured it; what tasks took leaves less for others."""
        metrics = self._metrics[node.id]
        of_tasks = of_driver = 0.0
        for names in _OWN_TIMES if self._has_times(node.id) else ():
            metric = next((metrics[name] for name in names if name in metrics), None)
            total = self._totals.get(metric.accumulator) if metric else None
            if not metric or not total:
                continue
            time = total * _MILLISECONDS.get(metric.kind, 0.0)
            stages = [stage for stage in self.view.stages_of(metric.accumulator) if stage in self._remaining]
            if not stages:
                of_driver += time
                continue
            remaining = sum(self._remaining[stage] for stage in stages)
            time = min(time, remaining)  # Python works beside its task's thread
            for stage in stages:
                self._remaining[stage] -= time * self._remaining[stage] / remaining if remaining else 0.0
            of_tasks += time
            if names == ("op time",):
                break
        return (of_tasks, False) if of_tasks or not of_driver else (of_driver, True)

    def _operators(self) -> list[Operator]:
        """Leaves first."""
        kinds = {node: step.kind for node, step in self.view.steps.items() if step.kind}
        untimed: dict[int, list[int]] = {}
        for stage in self.stages:
            nodes = [node.id for node in self.view.nodes_of(stage) if node.id in kinds]
            nodes = [node for node in nodes if kinds[node] not in (EXCHANGE, BROADCAST)]
            untimed[stage] = [
                node for node in nodes if not self._times[node][0] or kinds[node] in _PARTLY_TIMED
            ] or nodes[-1:]
        remaining_times: dict[int, float] = {}
        operators = []
        for stage, nodes in untimed.items():
            working = [node for node in nodes if kinds[node] != FILTER] or nodes
            time = self._remaining[stage]
            if len(working) == 1:
                remaining_times[working[0]] = remaining_times.get(working[0], 0.0) + time
            elif time > 0:
                text = chain(self.view.steps[node] for node in nodes) or self.view.operation(stage)
                rows = self.rows_out(nodes[-1]) if nodes else None
                operators.append(Operator(text or "other code", "", -1, (stage,), time, rows_out=rows))
        ids = [node.id for node in reversed(self.view.details.nodes) if node.id in kinds]
        operators += [self._operator(node, remaining_times.get(node, 0.0)) for node in ids]
        return operators

    def _operator(self, node: int, remaining: float) -> Operator:
        step = self.view.steps[node]
        time, on_driver = self._times[node]
        return Operator(
            f"{step.text} {self.view.scanned(node)}".rstrip() if step.kind == BROADCAST else step.text,
            step.kind,
            node,
            self.stages_of(node),
            remaining if on_driver and remaining else time + remaining,
            on_driver and not remaining,
            remaining > 0 or (step.kind not in _PARTLY_TIMED and self._has_times(node)),
            self._rows_in[node],
            self._rows_out[node],
            self.metric(node, *_SIZES),
            self.metric(node, *_FILES),
            self.metric(node, *_SPILLS) or 0,
        )
