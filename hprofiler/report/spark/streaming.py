"""The tables and charts of streaming queries, and their record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hprofiler.analysis.spark.streaming import StreamFigures
from hprofiler.analysis.words import percent, plain
from hprofiler.base.text import printable
from hprofiler.model.measures import duration, size
from hprofiler.report.blocks import Block, Cell, Chart, Column, Mark, Part, Row, Series, Table
from hprofiler.report.spark.cells import count_cell, filled_heads, size_cell, time_cell
from hprofiler.spark.streams import Batch

_SHOWN = 10
_CHARTS = 3
_MOST_MARKS = 300
_PHASES = 3
_LONGEST_NAME = 60
_COLUMNS = (
    Column("batches"),
    Column("median", name="median batch", about="time of the median batch"),
    Column("longest", name="longest batch"),
    Column("every", about="how often batches begin when they are on time"),
    Column("late", about="batches that took longer than that"),
    Column("rows"),
    Column("rows/s in", about="median of the batches with rows"),
    Column("rows/s done", about="rows processed in a second of batch time: median"),
    Column("state rows", about="after the last batch"),
    Column("state", about="memory of the state after the last batch"),
    Column("time of batches", number=False),
    Column("streaming query", number=False),
)


def streaming_part(found: Sequence[StreamFigures]) -> Part:
    """Streaming queries by the time of their batches."""
    if not found:
        return Part()
    rows = [Row(_cells(one)) for one in found]
    heads = filled_heads(_COLUMNS, rows[:_SHOWN])
    blocks: list[Block] = [Table("streams", _COLUMNS, rows, "streaming queries", _SHOWN, heads)]
    blocks += [chart for one in found[:_CHARTS] for chart in _charts(one)]
    return Part("streaming queries by the time of their batches", blocks, "Streaming queries")


def _cells(one: StreamFigures) -> list[Cell]:
    """In the order of _COLUMNS."""
    last = one.batches[-1]
    phases = sorted(one.phases.items(), key=lambda pair: -pair[1])[:_PHASES]
    return [
        count_cell(len(one.batches)),
        time_cell(one.median),
        time_cell(one.longest.duration),
        time_cell(one.interval),
        count_cell(one.late),
        count_cell(one.rows),
        (f"{one.input_rate:,.0f}", one.input_rate) if one.rows else "",
        (f"{one.processed_rate:,.0f}", one.processed_rate) if one.rows else "",
        count_cell(last.state_rows),
        size_cell(last.state_bytes),
        ", ".join(f"{name} {plain(percent(time, one.whole))}" for name, time in phases),
        _name(one),
    ]


def _name(one: StreamFigures) -> str:
    if not one.query.name:
        return printable(one.query.title)
    way = " → ".join([", ".join(one.query.sources), one.query.sink])
    cut = "…" if len(way) > _LONGEST_NAME else ""
    return printable(f"{one.query.name}, {way[:_LONGEST_NAME]}{cut}")


def _charts(one: StreamFigures) -> Iterator[Chart]:
    """The time of batches, and the rows of the state, over the time of day."""
    batches = _few(one.batches)
    name = printable(one.query.title)
    if len(batches) > 1:
        level = (one.interval / 1e3, f"every {duration(one.interval / 1e3)}") if one.interval else None
        marks = [Mark(batch.start, batch.duration / 1e3, _text(batch)) for batch in batches]
        yield Chart(
            f"time of batches of {name}",
            [Series(f"time of batches of {name}", marks, level=level)],
            [(value, duration(value)) for value in _ticks(max(mark.y for mark in marks))],
        )
    if len(batches) > 1 and any(batch.state_rows for batch in batches):
        marks = [Mark(batch.start, float(batch.state_rows), _text(batch)) for batch in batches]
        levels = [(value, f"{value:,.0f}") for value in _ticks(max(mark.y for mark in marks))]
        yield Chart(f"state rows of {name}", [Series(f"state rows of {name}", marks)], levels)


def _few(batches: Sequence[Batch]) -> list[Batch]:
    """Of many the longest ones of equal parts."""
    step = -(-len(batches) // _MOST_MARKS)
    parts = (batches[at : at + step] for at in range(0, len(batches), step))
    return [max(part, key=lambda one: one.duration) for part in parts]


def _ticks(most: float) -> list[float]:
    return [0.0, most] if most else [0.0]


def _text(batch: Batch) -> str:
    text = f"batch {batch.id}: {duration(batch.duration / 1e3)}, {batch.rows:,} rows"
    state = f", state {batch.state_rows:,} rows ({size(batch.state_bytes)})" if batch.state_rows else ""
    return text + state


def streaming_records(found: Sequence[StreamFigures]) -> Iterator[dict[str, Any]]:
    """The section of `--json`. Times are milliseconds, rates rows a second."""
    for one in found:
        first, last = one.batches[0], one.batches[-1]
        yield {
            "id": one.query.id,
            "runId": one.query.run,
            "name": one.query.name,
            "sources": list(one.query.sources),
            "sink": one.query.sink,
            "watermark": one.query.watermark,
            "exception": one.query.error or None,
            "numBatches": len(one.batches),
            "batchTime": {"total": one.whole, "median": one.median, "longest": one.longest.duration},
            "longestBatchId": one.longest.id,
            "phases": one.phases,
            "interval": one.interval or None,
            "lateBatches": one.late,
            "backToBackShare": one.busy,
            "numInputRows": one.rows,
            "inputRowsPerSecond": one.input_rate,
            "processedRowsPerSecond": one.processed_rate,
            "stateRows": {"first": first.state_rows, "last": last.state_rows},
            "stateBytes": {"first": first.state_bytes, "last": last.state_bytes},
        }
