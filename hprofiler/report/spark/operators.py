"""The table of the operators of the slowest queries, and their record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hprofiler.analysis.spark.operators import Operator
from hprofiler.analysis.spark.queries import QueryPlan
from hprofiler.report.blocks import Cell, Column, Part, Row, Table
from hprofiler.report.spark.cells import count_cell, filled_heads, query_key, share_cell, size_cell, time_cell
from hprofiler.report.spark.queries import query_name

_QUERIES = 3
_ROWS = 4
_WORTH = 0.01
_LONGEST_NAME = 30
_LONGEST = 90
_COLUMNS = (
    Column("query", number=False, longest=_LONGEST_NAME),
    Column("share", about="its part of the time of the query’s tasks"),
    Column("time", about="of tasks, or of the driver if the operator says so"),
    Column("rows in"),
    Column("rows out"),
    Column("bytes", about="read, written, shuffled or broadcast"),
    Column("files"),
    Column("spill"),
    Column("operator", number=False, longest=_LONGEST),
)


def operator_part(slowest: Sequence[QueryPlan], keys: Mapping[int, Sequence[str]]) -> Part:
    """Where the time of the slowest queries went. `keys` are those of the attempts of stages."""
    if not slowest:
        return Part()
    shown: list[Row] = []
    for plan in slowest[:_QUERIES]:
        for number, one in enumerate(_by_time(plan, _WORTH)[:_ROWS]):
            shown.append(Row(_cells(plan, one, named=not number)))
    rows = [
        Row(
            _cells(plan, one),
            query_key(plan.query.id),
            [key for stage in one.stages for key in keys.get(stage, ())],
        )
        for plan in slowest
        for one in _by_time(plan)
    ]
    tables = [
        Table("slowest", _COLUMNS, shown, in_terminal=filled_heads(_COLUMNS, shown), only="terminal"),
        Table("operators", _COLUMNS, rows, "operators", only="page"),
    ]
    about = (
        "Spark measures the time of some operators alone. Others run as one piece of code: they stand in one "
        "row, with what is left of the time of their stage’s tasks."
    )
    title = "operators of the slowest queries (share: of the time of a query’s tasks)"
    return Part(title, tables, "Operators of the slowest queries", about)


def _by_time(plan: QueryPlan, least: float = 0.0) -> list[Operator]:
    """Those with a time, or rows, the slowest first."""
    known = [one for one in plan.operators if one.time or one.rows_out or one.files]
    worth = [one for one in known if one.time >= least * plan.task_time]
    return sorted(worth, key=lambda one: -one.time)


def _cells(plan: QueryPlan, one: Operator, named: bool = True) -> list[Cell]:
    """In the order of _COLUMNS."""
    text = one.text
    if one.on_driver:
        text += ", on the driver"
    elif len(one.stages) == 1:
        text = f"stage {one.stages[0]}: {text}"
    return [
        f"{plan.query.id} {query_name(plan.query.description)}" if named else "",
        "" if one.on_driver else share_cell(one.time, plan.task_time),
        time_cell(one.time),
        count_cell(one.rows_in),
        count_cell(one.rows_out),
        size_cell(one.size),
        count_cell(one.files),
        size_cell(one.spilled),
        text,
    ]


def operator_records(slowest: Sequence[QueryPlan]) -> Iterator[dict[str, Any]]:
    """The section of `--json`. Times are milliseconds."""
    for plan in slowest:
        yield {
            "executionId": plan.query.id,
            "taskTime": plan.task_time,
            "operators": [_record(one) for one in plan.operators],
        }


def _record(one: Operator) -> dict[str, Any]:
    return {
        "name": one.text,
        "nodeId": None if one.node < 0 else one.node,
        "stageIds": list(one.stages),
        "time": round(one.time, 3),
        "onDriver": one.on_driver,
        "rowsIn": one.rows_in,
        "rowsOut": one.rows_out,
        "bytes": one.size,
        "files": one.files,
        "spilled": one.spilled,
    }
