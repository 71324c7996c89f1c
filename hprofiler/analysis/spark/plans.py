"""What the nodes of a query's plan do, and which of them a stage runs.

A stage runs those nodes whose metrics its tasks measured, and nodes without metrics between the same
exchanges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hprofiler.base.text import printable
from hprofiler.spark.log.sql import CODEGEN, Details, PlanNode

SCAN, WRITE, FILTER, EXCHANGE, BROADCAST = "scan", "write", "filter", "exchange", "broadcast"
MERGE_JOIN, SHUFFLED_JOIN, BROADCAST_JOIN = "sort-merge join", "shuffled hash join", "broadcast hash join"
NESTED_LOOP, CROSS_JOIN = "nested-loop join", "cross join"
JOINS = frozenset({MERGE_JOIN, SHUFFLED_JOIN, BROADCAST_JOIN, NESTED_LOOP, CROSS_JOIN})
PYTHON = "Python"
ARROW = " → "
_LONGEST_SUBJECT = 40
_MOST_STEPS = 6
_ENGINES = re.compile(r"^(Photon|Gpu|Comet|Native|Velox)(?=[A-Z])")
_KINDS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^(WholeStageCodegen|InputAdapter|AdaptiveSparkPlan|ResultStage|ShuffleMapStage)", ""),
        (
            r"^(Project|ColumnarToRow|RowToColumnar|CoalesceBatches|BringBackToHost|HostColumnarToGpu|Adapter)",
            "",
        ),
        (r"^(AQEShuffleRead|CustomShuffleReader|ShuffleExchangeSource|.*CoalesceBatches)", ""),
        (r"^(SerializeFromObject|DeserializeToObject|CollectMetrics|EventTimeWatermark)", ""),
        (r"^(LocalLimit|GlobalLimit|CollectLimit|WriteFiles|CommandResult|Subquery|ReusedSubquery)", ""),
        (r"^Filter", FILTER),
        (r"^Broadcast(Exchange)?$|BroadcastExchange", BROADCAST),
        (r"Exchange", EXCHANGE),
        (r"^(InMemoryTableScan|Scan In-memory)", "scan cache"),
        (r"Scan\b", SCAN),
        (r"^Range$", "range"),
        (r"(Sort|Object|Hash|Grouping)?Agg(regate)?$|^HashAggregate", "aggregate"),
        (r"SortMergeJoin", MERGE_JOIN),
        (r"BroadcastHashJoin", BROADCAST_JOIN),
        (r"(ShuffledHash|Hash|SymmetricHash)Join", SHUFFLED_JOIN),
        (r"NestedLoopJoin", NESTED_LOOP),
        (r"^CartesianProduct", CROSS_JOIN),
        (r"EvalPython|InPandas|InArrow|PythonUDTF", PYTHON),
        (r"^TakeOrderedAndProject|TopK$", "top rows"),
        (r"^WindowGroupLimit", "window limit"),
        (r"^Window|WindowInPandas", "window"),
        (r"Sort$", "sort"),
        (r"^Generate", "explode"),
        (r"^StateStoreSave", "save state"),
        (r"^StateStoreRestore", "restore state"),
        (r"^(Execute )?.*(Insert|SaveInto|AppendData|Overwrite|WriteTo|WriteDelta|ReplaceData)", WRITE),
        (r"^Execute .*(AsSelect|Merge|SaveAs)", WRITE),
    )
)
_TABLE = re.compile(r"(?:^|[\s/.`])([^\s/.`\[\](){},]+)`?$")
_PLACE = re.compile(r"Location: \w+(?: ?\(\d+ paths?\))? ?\[([^\],]*)")
_JDBC = re.compile(r"JDBCRelation\(([^)]*)\)")
_PATH = re.compile(r"Command\s+([a-z][a-z0-9+.-]*:[^\s,]+)")
_WRITTEN = re.compile(r"(?:Command|InsertIntoHiveTable)\s+\[?(`[^,\s]+`)")
_FUNCTION = re.compile(r"\[\s*([\w.]+|<lambda>)\(")
_LISTING = re.compile(r"Listing leaf files and directories for \d+ paths:<br/>([^,]*)")
_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro", "delta", "hive", "jdbc"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class Step:
    """What a node does: `kind` is a constant of this module or Spark's own name in words, "" if it only
    hands rows on; `subject` is the table, path or function."""

    kind: str
    subject: str = ""

    @property
    def text(self) -> str:
        if self.kind == PYTHON:
            return f"{self.kind} {self.subject or 'function'}"
        return f"{self.kind} {self.subject}".rstrip()


_PARTIAL = Step("partial aggregate")


@lru_cache(maxsize=4096)
def _step(name: str) -> tuple[str, Step]:
    """A node's name without its engine's, and what it does; without its subject."""
    name = _ENGINES.sub("", name.strip()).removesuffix("Transformer").removesuffix("Exec")
    kind = next((kind for pattern, kind in _KINDS if pattern.search(name)), None)
    if kind is None:
        words = _WORD.findall(name.removeprefix("Execute "))
        kind = printable(" ".join(one if one.isupper() else one.lower() for one in words[:6]))
    return name, Step(kind)


def step_of(node: PlanNode) -> Step:
    name, step = _step(node.name)
    kind = step.kind
    if kind == "aggregate" and "partial_" in node.text:
        return _PARTIAL
    if kind in (SCAN, "scan cache"):
        subject = _scanned(name, node.text)
    elif kind == WRITE:
        subject = _written(node.text)
    elif kind == PYTHON:
        found = _FUNCTION.search(node.text)
        subject = found.group(1) if found else ""
    else:
        return step
    return Step(kind, printable(subject[:_LONGEST_SUBJECT]))


def _scanned(name: str, text: str) -> str:
    """A table's name without its database, else the last folder of its path, else its format."""
    jdbc = _JDBC.search(name)
    if jdbc:
        return _last_part(jdbc.group(1))
    if "MicroBatch" in name or "Continuous" in name:
        return "stream"
    after = name.partition("Scan")[2].removeprefix(" In-memory table").strip().partition("[")[0].strip()
    if after == "ExistingRDD":
        return "RDD"
    if " " in after or (after and after not in _FORMATS):
        return _last_part(after)
    place = _PLACE.search(text)
    path = place.group(1) if place else ""
    folder = _last_part(path.rstrip("./"))
    cut = path.endswith("...") and "/part-" not in path
    return (f"{folder}…" if cut else folder) or after


def _written(text: str) -> str:
    found = _PATH.search(text) or _WRITTEN.search(text)
    return _last_part(found.group(1).rstrip("/")) if found else ""


def listing_of(description: str) -> str:
    """What a job of Spark's own does that lists the files of a table; "" for others."""
    found = _LISTING.match(description)
    if not found:
        return ""
    folders = [one for one in found.group(1).rstrip("./ ").split("/") if "=" not in one]
    return Step("list files", printable(folders[-1][:_LONGEST_SUBJECT])).text


def _last_part(name: str) -> str:
    if "/" in name:
        folder, _, last = name.rpartition("/")
        return folder.rpartition("/")[2] if last.startswith("part-") else last
    found = _TABLE.search(name)
    return found.group(1) if found else name


class PlanView:
    """A plan, with what each node does and the part of the plan between exchanges that it is in. `stages` are
    those whose tasks measured something of a node.

    Plans can be deeper than Python's stack: nothing here calls itself.
    """

    def __init__(self, details: Details) -> None:
        self.details = details
        self.nodes = {node.id: node for node in details.nodes}
        self.steps = {node.id: step_of(node) for node in details.nodes}
        self.children: dict[int, list[int]] = {}
        self.parents: dict[int, list[int]] = {}
        for child, parent in details.edges:
            self.children.setdefault(parent, []).append(child)
            self.parents.setdefault(child, []).append(parent)
        self._measured = {stage: frozenset(ones) for stage, ones in details.measured.items()}
        self._stages: dict[int, list[int]] = {}
        for stage, accumulators in self._measured.items():
            for accumulator in accumulators:
                self._stages.setdefault(accumulator, []).append(stage)
        borders = (EXCHANGE, BROADCAST)
        self._borders = {node for node, step in self.steps.items() if step.kind in borders}
        self._part: dict[int, int] = {}
        for node in details.nodes:  # parents have smaller numbers than their children
            above = () if node.id in self._borders else self.parents.get(node.id, ())
            same = [parent for parent in above if parent not in self._borders]
            self._part[node.id] = self._part.get(same[0], same[0]) if same else node.id
        self.stages: dict[int, set[int]] = {}
        self._own: dict[int, list[PlanNode]] = {}
        self._with_part: dict[int, set[int]] = {}
        for node in details.nodes:
            self.stages[node.id] = {
                stage for metric in node.metrics for stage in self.stages_of(metric.accumulator)
            }
            for stage in self.stages[node.id]:
                self._own.setdefault(stage, []).append(node)
            if not node.metrics or self.steps[node.id].kind == WRITE:
                self._with_part.setdefault(self._part[node.id], set()).add(node.id)
            if self.steps[node.id].kind == BROADCAST:
                for child in self.children.get(node.id, ()):
                    self._with_part.setdefault(self._part[child], set()).add(node.id)
        self._ids_of: dict[int, frozenset[int]] = {}

    @cached_property
    def children_first(self) -> list[int]:
        """The numbers of all nodes, each behind its children."""
        if all(child > parent for child, parent in self.details.edges):  # nothing is used again
            return [node.id for node in reversed(self.details.nodes)]
        order: list[int] = []
        seen: set[int] = set()
        to_visit = [(node.id, False) for node in reversed(self.details.nodes)]
        while to_visit:
            node, has_children = to_visit.pop()
            if has_children:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                to_visit += [(node, True), *((child, False) for child in self.children.get(node, ()))]
        return order

    @cached_property
    def _tables(self) -> dict[int, set[str]]:
        """Two of the tables below each node, or all if there are fewer."""
        tables: dict[int, set[str]] = {}
        for node in self.children_first:
            step = self.steps[node]
            below = {step.subject} if step.kind == SCAN else set()
            below.update(*(tables.get(child, ()) for child in self.children.get(node, ())))
            tables[node] = set(sorted(below)[:2])
        return tables

    def scanned(self, node: int) -> str:
        """The table below a node, if there is one only."""
        tables = self._tables[node]
        return next(iter(tables)) if len(tables) == 1 else ""

    def stages_of(self, accumulator: int) -> list[int]:
        """The stages whose tasks measured it; none for what the driver measured."""
        return self._stages.get(accumulator, [])

    def runs(self, stage: int, node: int) -> bool:
        return node in self._nodes_of(stage)

    def nodes_of(self, stage: int) -> list[PlanNode]:
        """The nodes that a stage runs, leaves first; of exchanges only those that it writes."""
        return [self.nodes[node] for node in sorted(self._nodes_of(stage), reverse=True)]

    def _nodes_of(self, stage: int) -> frozenset[int]:
        if stage not in self._ids_of:
            measured = self._measured.get(stage, frozenset())
            own = self._own.get(stage, [])
            parts = {self._part[node.id] for node in own if node.id not in self._borders}
            written = (one for one in own if one.id not in self._borders or self._writes(one, measured))
            ids = frozenset(one.id for one in written)
            self._ids_of[stage] = ids.union(*(self._with_part.get(part, ()) for part in parts))
        return self._ids_of[stage]

    @staticmethod
    def _writes(node: PlanNode, measured: frozenset[int]) -> bool:
        return any(metric.accumulator in measured and "written" in metric.name for metric in node.metrics)

    def operation(self, stage: int) -> str:
        """What a stage does: "scan item → broadcast"; "" if no node of the plan is known to be its own."""
        return chain(self.steps[node.id] for node in self.nodes_of(stage))

    def scoped(self, scopes: Iterable[str]) -> str:
        """What a stage does that measured nothing, by the names of the operators that its RDDs are of."""
        names = set(scopes)
        if not names:
            return ""
        own = [
            node
            for node in reversed(self.details.nodes)
            if node.name.strip() in names or f"{CODEGEN} ({node.codegen})" in names
        ]
        own = [node for node in own if node.id not in self._borders]
        parts = {self._part[node.id] for node in own if self.steps[node.id].kind}
        ids = {node.id for node in own}
        written = [
            node
            for node in reversed(self.details.nodes)
            if self.steps[node.id].kind == WRITE and self._part[node.id] in parts and node.id not in ids
        ]
        return chain(self.steps[node.id] for node in (*own, *written))

    def summary(self) -> tuple[str, ...]:
        """What the whole plan reads and writes."""
        kinds = (SCAN, WRITE)
        steps = [self.steps[node.id] for node in reversed(self.details.nodes)]
        return tuple(dict.fromkeys(one.text for one in steps if one.kind in kinds and one.subject))


def chain(steps: Iterable[Step]) -> str:
    """Steps in a row; those that are not worth a word are left out, unless there are no others."""
    known = [one for one in steps if one.kind]
    shown = [one for one in known if one.kind not in (FILTER, EXCHANGE)] or known
    counted: list[tuple[str, int]] = []
    for text in (one.text for one in shown):
        if counted and counted[-1][0] == text:
            counted[-1] = text, counted[-1][1] + 1
        else:
            counted.append((text, 1))
    texts = [text if count == 1 else f"{text} ×{count}" for text, count in counted]
    if len(texts) > _MOST_STEPS:
        texts = [*texts[: _MOST_STEPS // 2], "…", *texts[-(_MOST_STEPS // 2 - 1) :]]
    return ARROW.join(texts)
