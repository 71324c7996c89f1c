"""Pages of answers of an archive: a chart over time, and the answer's tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hprofiler.analysis.waits import shown_row
from hprofiler.archive.grown import Grew
from hprofiler.archive.questions import CORE_HOURS, HOURS, Cost, History, Point, Where
from hprofiler.model.measures import measure_of
from hprofiler.report import archive_text, time_plot
from hprofiler.report.blocks import MOST_ROWS, Block, Lines, Part
from hprofiler.report.plain_page import write_plain_page
from hprofiler.report.time_plot import Line, Value

_KINDS = {"own": "self cost", "total": "total cost"}
# Round amounts of time, in hours.
_ROUND_HOURS = [
    seconds / 3600 for seconds in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800)
]


def write_history(found: History, out: Path) -> None:
    """Write the page; it may raise OSError, as the others."""
    name = shown_row(found.method, short=True)
    series = [Line("with all it calls", _values(found.points, "total"))]
    if all(point.total is None for point in found.points):
        series = [Line("self", _values(found.points, "own"))]
    elif all(point.own == point.total for point in found.points):
        series = [Line("self: it calls nothing", _values(found.points, "own"))]
    elif any(point.own.share for point in found.points):
        series.append(Line("self", _values(found.points, "own")))
    label = f"Share of {measure_of(found.event).share_of} of {name}"
    _, about, *left_out = map(_sentence, archive_text.history_heads(found))
    parts = [
        Part(f"By {found.by}", [time_plot.lines(series, archive_text.share, label)], about=about),
        Part("Runs" if found.by == "run" else "Points", [archive_text.history_table(found)]),
        *_notes(left_out),
    ]
    write_plain_page(name, [f"{name} in {found.application}", shown_row(found.method)], parts, out)


def write_grew(found: Grew, out: Path) -> None:
    """A chart of methods by their own cost, and one by their total; before as dashed lines."""
    first, *notes = archive_text.grew_heads(found)
    parts = []
    for kind, grown in (("own", found.own), ("total", found.total)):
        series = [
            Line(
                shown_row(one.change.name, short=True),
                _values(found.points[one.change.name], kind),
                one.change.of(kind).before,
            )
            for one in grown
        ]
        if series:
            label = f"Methods with more {_KINDS[kind]} than before"
            chart = time_plot.lines(series, archive_text.share, label)
            table = archive_text.grown_table(found, kind, grown)
            parts.append(Part(label, [chart, table], about="By day; before as dashed lines."))
    title = f"What grew in {found.application}" if parts else _sentence(archive_text.NOTHING_GREW)
    write_plain_page(found.application, [title, first], [*parts, *_notes(list(map(_sentence, notes)))], out)


def write_cost(found: Cost, out: Path) -> None:
    title = measure_of(found.event).title
    label = f"{title[0].upper()}{title[1:]} a day by {found.by}"
    series = [(archive_text.row_name(found, one.name), one.days) for one in found.rows]
    if found.by == "method":
        series = [(shown_row(one.name, short=True), one.days) for one in found.rows]
    steps = _ROUND_HOURS if found.unit in (CORE_HOURS, HOURS) else ()
    chart = time_plot.stacked(
        [one.day for one in found.days],
        series,
        lambda value: archive_text.amount_words(found, value),
        label,
        steps,
    )
    table = archive_text.cost_table(found, MOST_ROWS, with_sum=False)
    whole = f"All: {archive_text.amount_words(found, found.total / len(found.days))} a day"
    if found.cores is not None:
        whole += f", {found.cores:.3g} cores"
    parts = [
        Part("By day", [chart]),
        Part(f"By {found.by}", [table], about=f"{whole}."),
        *_notes(list(map(_sentence, archive_text.cost_notes(found)))),
    ]
    write_plain_page(label, [label, archive_text.cost_head(found)], parts, out)


def write_where(found: Where, out: Path) -> None:
    """The largest share in each run."""
    known = [(one, one.total) for one in reversed(found.runs) if one.total is not None]
    values = [Value(one.started, total, key=one.run) for one, total in known]
    label = f"Share of {found.frame} with all it calls, by run"
    chart = time_plot.lines([Line(found.frame, values)], archive_text.share, label)
    methods = archive_text.where_methods(found)
    tables: list[Part] = [Part("Methods", [methods])] if methods else []
    parts = [Part("Share by run", [chart]), *tables, Part("Runs", [archive_text.where_runs(found)])]
    write_plain_page(found.frame, [archive_text.where_head(found)], parts, out)


def _values(points: Sequence[Point], kind: str) -> list[Value]:
    parts = [(one, one.own if kind == "own" else one.total) for one in points]
    return [Value(one.started, part.share, part.noise, one.run or "") for one, part in parts if part]


def _notes(texts: Sequence[str]) -> list[Part]:
    blocks: list[Block] = [Lines(texts, list=True)]
    return [Part("Notes", blocks)] if texts else []


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
