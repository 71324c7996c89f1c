"""Stages that do the same, and queries of the same kind, each as one group with its slowest member."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from hprofiler.spark.application import Application
from hprofiler.spark.figures import Figures, StageFigures, Work
from hprofiler.spark.log.sql import SqlExecution

_BATCH = re.compile(
    r"(?P<name>.*)(?:\n|<br/>)(?P<ids>id = .*(?:\n|<br/>)runId = .*)(?:\n|<br/>)batch = .*", re.DOTALL
)
"""How Spark describes a micro-batch of a streaming query: Spark 2 for its page."""
_CONNECT = "Spark Connect"
"""Behind it is the session's id, and the plan as the client sent it."""


@dataclass
class StageGroup:
    """Stages of one operation and call site. Times are milliseconds; `elapsed` and `task_time` are sums."""

    operation: str
    name: str
    slowest: StageFigures
    work: Work = field(default_factory=Work)
    task_time: int = 0
    failed: int = 0
    killed: int = 0
    members: list[StageFigures] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def elapsed(self) -> int:
        return sum(one.duration for one in self.members)

    @property
    def median(self) -> float:
        return median(one.duration for one in self.members)

    def add(self, one: StageFigures) -> None:
        if one.duration > self.slowest.duration:
            self.slowest = one
        self.work.add(one.work["succeeded"])
        self.task_time += one.task_time
        self.failed += one.work["failed"].tasks + one.stage.resubmitted
        self.killed += one.work["killed"].tasks
        self.members.append(one)


def stage_groups(found: Figures, operations: Mapping[int, str]) -> list[StageGroup]:
    """All stages that had tasks, those with most task time first. `operations` are by stage id."""
    groups: dict[tuple[str, str], StageGroup] = {}
    for one in found.by_task_time:
        key = operations.get(one.stage.id, ""), kind_of(one.stage.name)
        group = groups.get(key)
        if group is None:
            group = groups[key] = StageGroup(*key, one)
        group.add(one)
    return sorted(groups.values(), key=lambda one: -one.task_time)


@dataclass(frozen=True)
class RootQuery:
    """A query with the queries that it ran, and what all of them took. `lasted` and `task_time` are
    milliseconds; `most` is the stage with most task time."""

    query: SqlExecution
    children: Sequence[SqlExecution]
    lasted: int
    jobs: int
    task_time: int
    most: StageFigures | None

    @property
    def all(self) -> Iterator[SqlExecution]:
        yield self.query
        yield from self.children


@dataclass(frozen=True)
class QueryGroup:
    """Queries with the same description that read and write the same, the slowest first."""

    summary: Sequence[str]
    members: Sequence[RootQuery]

    @property
    def slowest(self) -> RootQuery:
        return self.members[0]

    @property
    def lasted(self) -> int:
        return sum(one.lasted for one in self.members)

    @property
    def median(self) -> float:
        return median(one.lasted for one in self.members)


def query_groups(
    application: Application, found: Figures, summaries: Mapping[int, Sequence[str]]
) -> list[QueryGroup]:
    """All queries, grouped; those that took longest first. `summaries` are by query."""
    groups: dict[tuple[str, tuple[str, ...]], list[RootQuery]] = {}
    for one in root_queries(application, found):
        summary = tuple(dict.fromkeys(text for query in one.all for text in summaries.get(query.id, ())))
        groups.setdefault((kind_of(one.query.description), summary), []).append(one)
    made = [
        QueryGroup(summary, sorted(members, key=lambda one: -one.lasted))
        for (_, summary), members in groups.items()
    ]
    return sorted(made, key=lambda one: -one.lasted)


def root_queries(application: Application, found: Figures) -> list[RootQuery]:
    """Queries that no other one ran, with those that they ran; the slowest first."""
    attempts: dict[int, list[StageFigures]] = {}
    for stage in found.stages:
        if stage.task_time:
            attempts.setdefault(stage.stage.id, []).append(stage)
    families: dict[int, list[SqlExecution]] = {}
    for query in application.sql.values():
        root = query.root if query.root in application.sql else query.id
        families.setdefault(root, []).append(query)
    made = [
        _root_query(application.sql[root], family, application, attempts) for root, family in families.items()
    ]
    return sorted(made, key=lambda one: -one.lasted)


def _root_query(
    root: SqlExecution,
    family: Sequence[SqlExecution],
    application: Application,
    attempts: Mapping[int, Sequence[StageFigures]],
) -> RootQuery:
    own = _stages(family, attempts)
    return RootQuery(
        root,
        [one for one in family if one.id != root.id],
        lasted(root, application),
        len({job for one in family for job in one.jobs}),
        sum(one.task_time for one in own),
        max(own, key=lambda one: one.task_time, default=None),
    )


def _stages(
    queries: Iterable[SqlExecution], attempts: Mapping[int, Sequence[StageFigures]]
) -> list[StageFigures]:
    ids = dict.fromkeys(id_ for query in queries for id_ in query.stages)
    return [stage for id_ in ids for stage in attempts.get(id_, ())]


def lasted(query: SqlExecution, application: Application) -> int:
    """Milliseconds from its start to its end, or to the end of what is known."""
    return max(0, (query.end or application.until) - query.start)


def kind_of(description: str) -> str:
    """A query's description, or a call site, without what differs from one to the next of its kind."""
    if description.startswith(f"{_CONNECT} - session_id"):
        return _CONNECT
    found = _BATCH.fullmatch(description)
    return f"{found['name']}\n{found['ids']}".replace("<br/>", "\n") if found else description


def batches_of(description: str) -> str | None:
    """The name of the streaming query whose micro-batch this is, "" if it has none; None for others."""
    found = _BATCH.fullmatch(description)
    return found["name"].strip() if found else None
