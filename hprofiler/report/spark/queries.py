"""Tables of SQL queries: those of the same kind as one row, and each alone with the queries that it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hprofiler.analysis.spark.groups import QueryGroup, RootQuery, batches_of, kind_of, query_groups
from hprofiler.base.text import printable
from hprofiler.report.blocks import MOST_ROWS, Cell, Column, Part, Row, Table
from hprofiler.report.spark.cells import count_cell, filled_heads, group_row, query_key, time_cell
from hprofiler.spark.application import Application
from hprofiler.spark.figures import Figures
from hprofiler.spark.log.sql import SqlExecution
from hprofiler.spark.windows import stage_name

_SHOWN = 10
_LONGEST = 90
_LONGEST_NAME = 60

Summaries = Mapping[int, Sequence[str]]
"""What queries read and write, by their ids."""
_GROUP_COLUMNS = (
    Column("took", name="elapsed", about="of all queries of a kind, added up"),
    Column("queries", about="queries with the same description that read and write the same"),
    Column("median", about="elapsed time of the median query"),
    Column("slowest", about="elapsed time of the slowest query"),
    Column("status", number=False),
    Column("jobs", about="those of the queries that it ran, too"),
    Column("task time", about="of all stages, those of the queries that it ran, too"),
    Column("most of it", number=False, about="the stage with most task time"),
    Column("query", name="slowest query", number=False, longest=_LONGEST),
)
_QUERY_COLUMNS = (
    Column("query", number=False, about="below it, with its number, what it ran"),
    Column("took", name="elapsed"),
    Column("status", number=False),
    Column("jobs", about="those of the queries that it ran, too"),
    Column("task time", about="of all stages, those of the queries that it ran, too"),
    Column("most of it", number=False, about="the stage with most task time"),
    Column("reads and writes", number=False, minor=True),
)


def sql_part(application: Application, found: Figures, summaries: Summaries) -> Part:
    """The SQL queries that took longest, with the queries that they ran."""
    groups = query_groups(application, found, summaries)
    if not groups:
        return Part()
    several = any(len(group.members) > 1 for group in groups)
    each = _query_table(groups, summaries)
    shown = {row.key for row in each.rows}
    rows = []
    for group in groups[:MOST_ROWS]:
        queries = [one for member in group.members for one in member.all] if len(group.members) > 1 else []
        members = [key for one in queries if (key := query_key(one.id)) in shown]
        rows.append(group_row(_group_cells(group), "queries", query_key(group.slowest.query.id), members))
    heads = filled_heads(_GROUP_COLUMNS, rows[:_SHOWN])
    left_out = len(groups) - len(rows)
    things = "groups of queries" if several else "queries"
    kinds = Table("kinds", _GROUP_COLUMNS, rows, things, _SHOWN, heads, left_out)
    title = "SQL queries by duration"
    if several:
        title += "; those of the same kind are one row with the name of the slowest"
    tables = [kinds if several else replace(kinds, only="terminal"), each]
    return Part(title, tables, "SQL queries")


def _query_table(groups: list[QueryGroup], summaries: Summaries) -> Table:
    roots = sorted((one for group in groups for one in group.members), key=lambda one: -one.lasted)
    rows, count = [], 0
    for root in roots:
        count += 1 + len(root.children)
        if count <= MOST_ROWS:
            rows.append(Row(_root_cells(root, summaries), query_key(root.query.id)))
            rows += [Row(_child_cells(one, summaries), query_key(one.id)) for one in root.children]
    return Table("queries", _QUERY_COLUMNS, rows, "queries", left_out=count - len(rows), only="page")


def _group_cells(group: QueryGroup) -> list[Cell]:
    """In the order of _GROUP_COLUMNS."""
    slowest, many = group.slowest, len(group.members) > 1
    statuses = [one.query.status.lower() for one in group.members]
    different = sorted(set(statuses), key=statuses.count, reverse=True)
    status = (
        different[0]
        if len(different) == 1
        else ", ".join(f"{statuses.count(one):,} {one}" for one in different)
    )
    name = query_name(slowest.query.description, ", ".join(group.summary))
    return [
        time_cell(group.lasted) or ("0 s", 0),
        count_cell(len(group.members)) if many else "",
        time_cell(group.median) if many else "",
        time_cell(slowest.lasted) if many else "",
        status,
        count_cell(sum(one.jobs for one in group.members)),
        time_cell(sum(one.task_time for one in group.members)),
        stage_name(*slowest.most.stage.key) if slowest.most else "",
        f"{slowest.query.id} {name}",
    ]


def _root_cells(root: RootQuery, summaries: Summaries) -> list[Cell]:
    """In the order of _QUERY_COLUMNS."""
    return [
        f"{root.query.id} {query_name(root.query.description)}",
        time_cell(root.lasted),
        root.query.status.lower(),
        count_cell(root.jobs),
        time_cell(root.task_time),
        stage_name(*root.most.stage.key) if root.most else "",
        ", ".join(summaries.get(root.query.id, ())),
    ]


def _child_cells(one: SqlExecution, summaries: Summaries) -> list[Cell]:
    lasted = max(0, one.end - one.start) if one.end else 0
    return [
        f"{one.root} › {one.id} {query_name(one.description)}",
        time_cell(lasted),
        one.status.lower(),
        count_cell(len(one.jobs)),
        "",
        "",
        ", ".join(summaries.get(one.id, ())),
    ]


def query_name(description: str, summary: str = "") -> str:
    """A query's description, and what it reads and writes."""
    batches = batches_of(description)
    shown = kind_of(description) if batches is None else f"micro-batches of {batches or 'a streaming query'}"
    shown = printable(shown[:_LONGEST_NAME])
    return f"{shown}: {summary}" if summary else shown


def query_group_records(
    application: Application, found: Figures, summaries: Summaries
) -> Iterator[dict[str, Any]]:
    """The section of `--json`. Times are milliseconds; jobs and task time are those of what each ran, too."""
    for one in query_groups(application, found, summaries):
        yield {
            "description": one.slowest.query.description,
            "readsAndWrites": list(one.summary),
            "count": len(one.members),
            "elapsed": {"total": one.lasted, "median": one.median, "slowest": one.slowest.lasted},
            "numJobs": sum(root.jobs for root in one.members),
            "taskTime": sum(root.task_time for root in one.members),
            "slowest": {
                "executionId": one.slowest.query.id,
                "ranExecutionIds": [child.id for child in one.slowest.children],
            },
        }
