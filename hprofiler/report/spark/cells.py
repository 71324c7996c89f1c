"""Cells of tables about an application, and the keys that lead from one table to another."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.analysis.words import percent, plain
from hprofiler.model.measures import duration, size
from hprofiler.report.blocks import Cell, Column, Row


def query_key(id_: int) -> str:
    """The key of a query's row."""
    return f"query {id_}"


def executor_key(id_: str) -> str:
    """The key of an executor's row."""
    return f"executor {id_}"


def group_row(cells: Sequence[Cell], things: str, slowest: str, members: Sequence[str]) -> Row:
    """A row of several `things` by their keys, with the name of the slowest; of one it is that one's."""
    return (
        Row(cells, f"{things} like {slowest}", members=members) if len(members) > 1 else Row(cells, slowest)
    )


def share(part: float, whole: float) -> str:
    return plain(percent(part, whole)) if whole else "0%"


def share_cell(part: float, whole: float) -> Cell:
    return (share(part, whole), part / whole) if part and whole else ""


def size_cell(value: float | None) -> Cell:
    return (size(value), value) if value else ""


def count_cell(value: int | None) -> Cell:
    return (f"{value:,}", value) if value else ""


def time_cell(milliseconds: float) -> Cell:
    return (duration(milliseconds / 1e3), milliseconds) if milliseconds else ""


def filled_heads(columns: Sequence[Column], rows: Sequence[Row], wanted: Sequence[str] = ()) -> list[str]:
    """The heads of those columns, of the `wanted` ones, in which one of these rows has something to say."""
    return [
        column.head
        for place, column in enumerate(columns)
        if (not wanted or column.head in wanted) and any(row.cells[place] for row in rows)
    ]
