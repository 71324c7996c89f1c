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


_Evidence = tuple[str, dict[str, Any], dict[int, float]]


@dataclass(slots=True)
class _Advised:
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
        self._advised: dict[tuple[str, str], _Advised] = {}

    def add(self, query: int, operators: QueryOperators) -> None:
        for operator in operators.all:
            for code, parameters, cost in self._of(operator, operators):
                key = code, f"{operator.text} {parameters.get('table', '')}"
                seconds = sum(cost.values()) / 1e3
                finding = SparkFinding(
                    code, {"query": query, "operator": operator.text, **parameters}, seconds
                )
                advised = self._advised.setdefault(key, _Advised(finding))
                advised.queries.add(query)
                for stage, time in cost.items():
                    advised.costs[stage] = min(self._costs[stage].time, advised.costs.get(stage, 0.0) + time)
                advised.stages.update(operator.stages or operators.stages)
                advised.worst = max(advised.worst, finding, key=lambda finding: finding.seconds)

    @property
    def findings(self) -> list[SparkFinding]:
        """Those whose stages take a second, or a hundredth of the application's time, the most expensive
        first. `queries` counts where each was found."""
        worth = (
            advised
            for advised in self._advised.values()
            if sum(self._whole(advised.stages).values()) >= self._least * 1e3
        )
        findings = [
            replace(
                advised.worst,
                parameters={**advised.worst.parameters, "queries": len(advised.queries)},
                seconds=round(sum(advised.costs.values()) / 1e3, 3),
            )
            for advised in worth
        ]
        return sorted(findings, key=lambda finding: -finding.seconds)

    def _of(self, operator: Operator, query: QueryOperators) -> Iterator[_Evidence]:
        """Codes with parameters, and the milliseconds that each costs at most, by stage."""
        if operator.node < 0:
            return
        if (
            operator.files
            and operator.size
            and operator.files >= _MANY_FILES
            and operator.size / operator.files < _SMALL_FILE
        ):
            evidence = {"files": operator.files, "bytes": operator.size, "threshold": _SMALL_FILE}
            code = "small-files-written" if operator.kind == WRITE else "small-files-read"
            yield code, evidence, self._part(query, [operator])
        if operator.kind in JOINS:
            yield from self._of_join(operator, query)
        if operator.kind == FILTER:
            yield from self._of_filter(operator, query)
        if operator.kind == EXCHANGE:
            yield from self._of_exchange(operator, query)
        if operator.spilled >= _SPILLED:
            yield (
                "operator-spills",
                {"bytes": operator.spilled, "threshold": _SPILLED},
                self._part(query, [operator]),
            )

    def _of_join(self, operator: Operator, query: QueryOperators) -> Iterator[_Evidence]:
        sides = query.view.children.get(operator.node, [])
        rows = [query.rows_out(side) or 0 for side in sides]
        out = operator.rows_out or 0
        if len(sides) != 2:
            return
        evidence: dict[str, Any] = {"left": rows[0], "right": rows[1], "rows": out}
        whole = self._whole(operator.stages)
        if operator.kind in (NESTED_LOOP, CROSS_JOIN):
            if rows[0] * rows[1] >= _MANY_PAIRS:
                yield "compares-all-rows", {**evidence, "threshold": _MANY_PAIRS}, whole
        elif out >= _MANY_ROWS and out >= _MULTIPLIES * max(rows):
            yield "join-multiplies", {**evidence, "threshold": _MULTIPLIES}, whole
        if operator.kind in (MERGE_JOIN, SHUFFLED_JOIN):
            yield from self._broadcast_instead(operator, query, sides)

    def _broadcast_instead(
        self, operator: Operator, query: QueryOperators, sides: list[int]
    ) -> Iterator[_Evidence]:
        below = [self._down_to_exchange(query, side) for side in sides]
        if not all(below):
            return
        exchanges = [nodes[-1] for nodes in below]
        sizes = [query.metric(node, "data size", "shuffle bytes written") for node in exchanges]
        text = query.view.nodes[operator.node].text
        may = [0, 1]
        if "FullOuter" in text:
            may = []
        elif any(kind in text for kind in _LEFT_ONLY):
            may = [1]
        elif "RightOuter" in text:
            may = [0]
        known = [(bytes_, side) for side, bytes_ in enumerate(sizes) if bytes_ and side in may]
        if not known or None in sizes:
            return
        small, side = min(known)
        large = sizes[1 - side] or 0
        limit = max(_BROADCAST, self._threshold)
        if small > limit and not (small <= _MOST_BROADCAST and large >= _MUCH_LARGER * small):
            return
        passed = [query.by_node[node] for nodes in below for node in nodes if node in query.by_node]
        spared = [operator for operator in passed if operator.kind in (EXCHANGE, "sort")]
        table = query.view.scanned(exchanges[side])
        parameters = {"table": table, "bytes": small, "other": large, "threshold": limit}
        yield "broadcast-fits", parameters, self._part(query, spared)

    @staticmethod
    def _down_to_exchange(query: QueryOperators, side: int) -> list[int]:
        """The nodes from a side of a join to the shuffle that it reads; none if it joins something else
        before."""
        nodes = [side]
        while query.view.steps[nodes[-1]].kind != EXCHANGE:
            children = query.view.children.get(nodes[-1], ())
            if len(children) != 1:
                return []
            nodes.append(children[0])
        return nodes

    def _of_filter(self, operator: Operator, query: QueryOperators) -> Iterator[_Evidence]:
        """A filter that keeps little of a scan that reads all partitions."""
        node = operator.node
        children = query.view.children.get(node, ())
        while len(children) == 1 and not query.view.steps[children[0]].kind:
            children = query.view.children.get(children[0], ())
        if len(children) != 1 or query.view.steps[children[0]].kind != SCAN:
            return
        scan = query.by_node[children[0]]
        read, kept = scan.rows_out or 0, operator.rows_out
        text = query.view.nodes[scan.node].text
        pruned = "PartitionFilters: [" in text and "PartitionFilters: []" not in text
        if kept is None or read < _MANY_ROWS or kept > _KEPT * read or pruned:
            return
        evidence = {"scan": scan.text, "read": read, "rows": kept, "threshold": _KEPT}
        yield "filter-keeps-little", evidence, self._part(query, [scan, operator])

    def _of_exchange(self, operator: Operator, query: QueryOperators) -> Iterator[_Evidence]:
        for stage in self._readers(operator, query):
            # A stage may read several shuffles: it is spoken of once.
            read = {
                one.node: query.metric(one.node, "shuffle bytes written", "data size") or 0
                for one in query.all
                if one.kind == EXCHANGE and stage in self._readers(one, query)
            }
            if operator.node != min(read):
                continue
            written = sum(read.values())
            cost = self._costs.get(stage, StageCost())
            good = max(self._slots, written // _GOOD_PARTITION)
            if cost.tasks < _MANY_TASKS or cost.tasks <= 2 * good or written / cost.tasks >= _SMALL_PARTITION:
                continue
            evidence = {"stage": stage, "attempts": (), "tasks": cost.tasks, "bytes": written}
            evidence |= {"good": good, "threshold": _SMALL_PARTITION}
            yield "tiny-partitions", evidence, {stage: cost.time * cost.overhead * (1 - good / cost.tasks)}

    @staticmethod
    def _readers(operator: Operator, query: QueryOperators) -> list[int]:
        node = query.view.nodes[operator.node]
        reads = [metric.accumulator for metric in node.metrics if metric.name.strip() == "records read"]
        return [stage for accumulator in reads for stage in query.view.stages_of(accumulator)]

    def _whole(self, stages: Iterable[int]) -> dict[int, float]:
        return {stage: self._costs[stage].time for stage in stages if stage in self._costs}

    def _part(self, query: QueryOperators, operators: Iterable[Operator]) -> dict[int, float]:
        """The part of their stages' time that operators take, by their tasks' time; where that is not known,
        what others leave of it."""
        shares: dict[int, float] = {}
        rest: set[int] = set()
        for operator in operators:
            stages = [stage for stage in (operator.stages or query.stages) if stage in self._costs]
            task_time = sum(self._costs[stage].task_time for stage in stages)
            if operator.timed and operator.stages and task_time:
                for stage in stages:
                    shares[stage] = shares.get(stage, 0.0) + operator.time / task_time
            else:
                rest.update(stages)
        for stage in rest:
            shares[stage] = shares.get(stage, 0.0) + query.remaining_share(stage)
        return {stage: self._costs[stage].time * min(1.0, share) for stage, share in shares.items()}
