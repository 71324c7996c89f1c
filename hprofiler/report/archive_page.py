"""Pages of answers of an archive: a picture over time, and the answer as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from hprofiler.analysis.words import short_name
from hprofiler.archive.grown import Grew
from hprofiler.archive.questions import Cost, History, Point, Where
from hprofiler.base.text import printable
from hprofiler.model.measures import measure_of
from hprofiler.report import archive_text, time_plot
from hprofiler.report.plain_page import write_html
from hprofiler.report.time_plot import Series, Value

_PLOTS = {"own": "self cost", "total": "total cost"}


def write_history(found: History, out: Path) -> None:
    """Write the page; it may raise OSError, as the others."""
    name = short_name(found.method)
    series = [Series("with all it calls", _values(found.points, "total"))]
    if any(point.own.share for point in found.points):
        series.append(Series("self", _values(found.points, "own")))
    label = f"Share of {measure_of(found.event).share_of} of {name} over time"
    picture = time_plot.lines(series, archive_text.share, label)
    _write(f"{name} in {found.application}", label, [picture], archive_text.history_lines(found), out)


def write_grew(found: Grew, out: Path) -> None:
    """A picture of methods by their own cost, and one by their total; before as dashed lines."""
    pictures = []
    for kind, grown in (("own", found.own), ("total", found.total)):
        series = [
            Series(
                short_name(one.change.name),
                _values(found.points[one.change.name], kind),
                one.change.of(kind).before,
            )
            for one in grown
        ]
        if series:
            label = f"Methods with more {_PLOTS[kind]} than before (dashed)"
            pictures.append(f"<h2>{label}</h2>{time_plot.lines(series, archive_text.share, label)}")
    title = f"What grew in {found.application}"
    about = f"Shares of {measure_of(found.event).share_of} by day"
    _write(title, about, pictures, archive_text.grew_lines(found), out)


def write_cost(found: Cost, out: Path) -> None:
    title = measure_of(found.event).title
    label = f"{title[0].upper()}{title[1:]} a day by {found.by}"
    series = [(short_name(archive_text.row_name(found, one.name)), one.days) for one in found.rows]
    picture = time_plot.stacked(
        [one.day for one in found.days], series, lambda value: archive_text.amount_words(found, value), label
    )
    _write(label, "", [picture], archive_text.cost_lines(found), out)


def write_where(found: Where, out: Path) -> None:
    """The largest share in each run."""
    values = [Value(one.started, one.total) for one in reversed(found.runs)]
    label = f"Runs with {found.frame}, and its share with all it calls"
    picture = time_plot.lines([Series(found.frame, values)], archive_text.share, label)
    _write(label, "", [picture], archive_text.where_lines(found), out)


def _values(points: Sequence[Point], kind: str) -> list[Value]:
    parts = [(one.started, one.own if kind == "own" else one.total) for one in points]
    return [Value(started, part.share, part.noise) for started, part in parts]


def _write(title: str, about: str, pictures: Sequence[str], lines: Sequence[str], out: Path) -> None:
    title, text = printable(title), escape("\n".join(lines))
    head = f"<h1>{escape(title)}</h1>" + (f"<p>{escape(printable(about))}</p>" if about else "")
    write_html(title, f'{head}{"".join(pictures)}<pre tabindex="0">{text}</pre>', out)
