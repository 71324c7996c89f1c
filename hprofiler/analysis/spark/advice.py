"""What could be better in queries: findings with their evidence and thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.operators import Operator, QueryOperators
from hprofiler.analysis.spark.plans import (
    CROSS_JOIN,
    EXCHANGE,
    FILTER,
    JOINS,
    MERGE_JOIN,
    NESTED_LOOP,
    SCAN,
    SHUFFLED_JOIN,
    WRITE,
)
from hprofiler.spark.application import Application
from hprofiler.spark.memory import size

_MANY_FILES = 100
_SMALL_FILE = 4 << 20
"""Spark counts opening a file like reading so many bytes (spark.sql.files.openCostInBytes)."""
_MULTIPLIES = 10
_MANY_ROWS = 1_000_000
_MANY_PAIRS = 100_000_000
_KEPT = 0.01
_BROADCAST = 10 << 20
"""The default of spark.sql.autoBroadcastJoinThreshold."""
_MOST_BROADCAST = 100 << 20
_MUCH_LARGER = 100
_MANY_TASKS = 100
_SMALL_PARTITION = 1 << 20
"""The default of spark.sql.adaptive.coalescePartitions.minPartitionSize."""
_GOOD_PARTITION = 64 << 20
"""The default of spark.sql.adaptive.advisoryPartitionSizeInBytes."""
_SPILLED = 100 << 20
_LEAST_SECONDS = 1.0
_LEAST_SHARE = 0.01
_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_LEFT_ONLY = ("LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
"""Joins whose right side alone can be broadcast."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """What a stage took, all its attempts together, in milliseconds: `task_time` is the time of its tasks,
    `time` its part of the application's time by the account, so that stages never take more than there is.
    `overhead` is the part of the tasks' time in which they did not run."""

    task_time: float = 0.0
    time: float = 0.0
    overhead: float = 0.0
    tasks: int = 0


_Advised = tuple[str, dict[str, Any], dict[int, float]]


@dataclass(slots=True)
class _Found:
    """A finding in several queries: that which costs most, and what all of them cost by stage, in
    milliseconds."""

    worst: SparkFinding
    costs: dict[int, float] = field(default_factory=dict)
    queries: set[int] = field(default_factory=set)
    stages: set[int] = field(default_factory=set)


class Advice:
    """Findings of all queries; the same one of many queries is one, named after the query it costs most."""

    def __init__(self, application: Application, costs: Mapping[int, StageCost]) -> None:
        self._costs = costs
        whole = max(0, application.until - application.start) if application.start else 0
        self._least = min(_LEAST_SECONDS, _LEAST_SHARE * whole / 1e3 or _LEAST_SECONDS)
        self._slots = max(1, application.most_cores)
        self._threshold = size(application.properties.get(_THRESHOLD, ""), "")
        self._found: dict[tuple[str, str], _Found] = {}

    def add(self, query: int, operators: QueryOperators) -> None:
        for one in operators.all:
            for code, parameters, cost in self._of(one, operators):
                key = code, f"{one.text} {parameters.get('table', '')}"
                seconds = sum(cost.values()) / 1e3
                finding = SparkFinding(code, {"query": query, "operator": one.text, **parameters}, seconds)
                found = self._found.setdefault(key, _Found(finding))
                found.queries.add(query)
                for stage, time in cost.items():
                    found.costs[stage] = min(self._costs[stage].time, found.costs.get(stage, 0.0) + time)
                found.stages.update(one.stages or operators.stages)
                found.worst = max(found.worst, finding, key=lambda known: known.seconds)

    @property
    def findings(self) -> list[SparkFinding]:
        """Those whose stages take a second, or a hundredth of the application's time, the most expensive
        first. `queries` counts where each was found."""
        worth = (
            one for one in self._found.values() if sum(self._whole(one.stages).values()) >= self._least * 1e3
        )
        found = [
            replace(
                one.worst,
                parameters={**one.worst.parameters, "queries": len(one.queries)},
                seconds=round(sum(one.costs.values()) / 1e3, 3),
            )
            for one in worth
        ]
        return sorted(found, key=lambda one: -one.seconds)

    def _of(self, one: Operator, of: QueryOperators) -> Iterator[_Advised]:
        """Codes with parameters, and the milliseconds that each costs at most, by stage."""
        if one.node < 0:
            return
        if one.files and one.files >= _MANY_FILES and (one.size or 0) / one.files < _SMALL_FILE:
            evidence = {"files": one.files, "bytes": one.size or 0, "threshold": _SMALL_FILE}
            code = "small-files-written" if one.kind == WRITE else "small-files-read"
            yield code, evidence, self._part(of, [one])
        if one.kind in JOINS:
            yield from self._of_join(one, of)
        if one.kind == FILTER:
            yield from self._of_filter(one, of)
        if one.kind == EXCHANGE:
            yield from self._of_exchange(one, of)
        if one.spilled >= _SPILLED:
            yield "operator-spills", {"bytes": one.spilled, "threshold": _SPILLED}, self._part(of, [one])

    def _of_join(self, one: Operator, of: QueryOperators) -> Iterator[_Advised]:
        sides = of.view.children.get(one.node, [])
        rows = [of.rows_out(side) or 0 for side in sides]
        out = one.rows_out or 0
        if len(sides) != 2:
            return
        evidence: dict[str, Any] = {"left": rows[0], "right": rows[1], "rows": out}
        whole = self._whole(one.stages)
        if one.kind in (NESTED_LOOP, CROSS_JOIN):
            if rows[0] * rows[1] >= _MANY_PAIRS:
                yield "compares-all-rows", {**evidence, "threshold": _MANY_PAIRS}, whole
        elif out >= _MANY_ROWS and out >= _MULTIPLIES * max(rows):
            yield "join-multiplies", {**evidence, "threshold": _MULTIPLIES}, whole
        if one.kind in (MERGE_JOIN, SHUFFLED_JOIN):
            yield from self._broadcast_instead(one, of, sides)

    def _broadcast_instead(self, one: Operator, of: QueryOperators, sides: list[int]) -> Iterator[_Advised]:
        below = [self._down_to_exchange(of, side) for side in sides]
        if not all(below):
            return
        exchanges = [nodes[-1] for nodes in below]
        sizes = [of.metric(node, "data size", "shuffle bytes written") for node in exchanges]
        text = of.view.nodes[one.node].text
        may = [0, 1]
        if "FullOuter" in text:
            may = []
        elif any(kind in text for kind in _LEFT_ONLY):
            may = [1]
        elif "RightOuter" in text:
            may = [0]
        known = [(size, side) for side, size in enumerate(sizes) if size and side in may]
        if not known or None in sizes:
            return
        small, side = min(known)
        large = sizes[1 - side] or 0
        limit = max(_BROADCAST, self._threshold)
        if small > limit and not (small <= _MOST_BROADCAST and large >= _MUCH_LARGER * small):
            return
        passed = [of.by_node[node] for nodes in below for node in nodes if node in of.by_node]
        spared = [operator for operator in passed if operator.kind in (EXCHANGE, "sort")]
        table = of.view.scanned(exchanges[side])
        parameters = {"table": table, "bytes": small, "other": large, "threshold": limit}
        yield "broadcast-fits", parameters, self._part(of, spared)

    @staticmethod
    def _down_to_exchange(of: QueryOperators, side: int) -> list[int]:
        """The nodes from a side of a join to the shuffle that it reads; none if it joins something else
        before."""
        nodes = [side]
        while of.view.steps[nodes[-1]].kind != EXCHANGE:
            children = of.view.children.get(nodes[-1], ())
            if len(children) != 1:
                return []
            nodes.append(children[0])
        return nodes

    def _of_filter(self, one: Operator, of: QueryOperators) -> Iterator[_Advised]:
        """A filter that keeps little of a scan that reads all partitions."""
        node = one.node
        children = of.view.children.get(node, ())
        while len(children) == 1 and not of.view.steps[children[0]].kind:
            children = of.view.children.get(children[0], ())
        if len(children) != 1 or of.view.steps[children[0]].kind != SCAN:
            return
        scan = of.by_node[children[0]]
        read, kept = scan.rows_out or 0, one.rows_out
        text = of.view.nodes[scan.node].text
        pruned = "PartitionFilters: [" in text and "PartitionFilters: []" not in text
        if kept is None or read < _MANY_ROWS or kept > _KEPT * read or pruned:
            return
        evidence = {"scan": scan.text, "read": read, "rows": kept, "threshold": _KEPT}
        yield "filter-keeps-little", evidence, self._part(of, [scan, one])

    def _of_exchange(self, one: Operator, of: QueryOperators) -> Iterator[_Advised]:
        written = of.metric(one.node, "shuffle bytes written", "data size") or 0
        for stage in self._readers(one, of):
            cost = self._costs.get(stage, StageCost())
            good = max(self._slots, written // _GOOD_PARTITION)
            if cost.tasks < _MANY_TASKS or cost.tasks <= 2 * good or written / cost.tasks >= _SMALL_PARTITION:
                continue
            evidence = {"stage": stage, "attempts": (), "tasks": cost.tasks, "bytes": written}
            evidence |= {"good": good, "threshold": _SMALL_PARTITION}
            yield "tiny-partitions", evidence, {stage: cost.time * cost.overhead * (1 - good / cost.tasks)}

    @staticmethod
    def _readers(one: Operator, of: QueryOperators) -> list[int]:
        node = of.view.nodes[one.node]
        reads = [metric.accumulator for metric in node.metrics if metric.name.strip() == "records read"]
        return [stage for accumulator in reads for stage in of.view.stages_of(accumulator)]

    def _whole(self, stages: Iterable[int]) -> dict[int, float]:
        return {stage: self._costs[stage].time for stage in stages if stage in self._costs}

    def _part(self, of: QueryOperators, operators: Iterable[Operator]) -> dict[int, float]:
        """The part of their stages' time that operators take, by their tasks' time; where that is not known,
        what others leave of it."""
        shares: dict[int, float] = {}
        rest: set[int] = set()
        for one in operators:
            stages = [stage for stage in (one.stages or of.stages) if stage in self._costs]
            task_time = sum(self._costs[stage].task_time for stage in stages)
            if one.timed and one.stages and task_time:
                for stage in stages:
                    shares[stage] = shares.get(stage, 0.0) + one.time / task_time
            else:
                rest.update(stages)
        for stage in rest:
            shares[stage] = shares.get(stage, 0.0) + of.remaining_share(stage)
        return {stage: self._costs[stage].time * min(1.0, share) for stage, share in shares.items()}
