"""Answers of an archive as tables, as lines for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from hprofiler._flamegraph import category_label
from hprofiler.analysis.diff import MethodChange, why_unsure
from hprofiler.analysis.diff_findings import shares_moved, unsure_callers
from hprofiler.analysis.waits import shown_row
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.archive.grown import Grew, Grown
from hprofiler.archive.questions import CORE_HOURS, HOURS, Cost, History, Part, Where
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.model.measures import amount, counted, duration, measure_of, named_by
from hprofiler.report.blocks import Cell, Column, Row, Table, cell
from hprofiler.report.diff_text import HEADS, about_noise, cells_of, name_of, noise_source
from hprofiler.report.text import UNKNOWN_TOTALS

_SHOWN = 20
_RUNS_SHOWN = 10


def history_lines(found: History) -> list[str]:
    """A line for each point."""
    return [*history_heads(found), *history_table(found).lines()]


def history_heads(found: History) -> list[str]:
    """What the answer is of, what its figures are, and what is left out."""
    about = (
        f"share of {measure_of(found.event).share_of} by {found.by}; noise is the most that chance explains"
    )
    head = f"{printable(shown_row(found.method))} in {printable(found.application)}"
    lost = [UNKNOWN_TOTALS] if any(one.total is None for one in found.points) else []
    return [head, about, *lost, *_left_out(found.broken, found.event)]


def history_table(found: History) -> Table:
    """A row for each point."""
    alone = found.by == "run"
    rows = []
    for one in found.points:
        runs: Cell = (one.run or "") if alone else (f"{one.runs:,}", one.runs)
        cells = [cell for part in (one.total, one.own) for cell in _part_cells(part)]
        form = "%Y-%m-%d %H:%M" if alone else "%Y-%m-%d"
        row = [f"{one.started:{form}}", runs, (f"{one.processes:,}", one.processes), *cells]
        rows.append(Row(row, one.run or ""))
    columns = (
        Column("started", number=False),
        Column("run", number=False) if alone else Column("runs"),
        Column("processes"),
        Column("total", about="its share with all it calls"),
        Column("noise", name="noise of total"),
        Column("self", about="its share without what it calls"),
        Column("noise", name="noise of self"),
    )
    return Table("history", columns, rows, "runs" if alone else "points")


def _part_cells(part: Part | None) -> tuple[Cell, Cell]:
    if part is None:
        return ("?", -1.0), ""
    return (share(part.share), part.share), (_noise(part), part.noise or 0.0) if part.share else ""


def _total_cell(total: float | None) -> Cell:
    return ("?", -1.0) if total is None else (share(total), total)


def _left_out(broken: int, event: str) -> list[str]:
    if not broken:
        return []
    return [f"left out: {counted(broken, 'runs')} with broken stacks of {printable(event)}"]


def share(part: float) -> str:
    return plain(percent(part, 1))


def _noise(part: Part) -> str:
    """ "±2.1" points; nothing for a method without a sample."""
    if part.noise is None:
        return "?" if part.share else ""
    return f"±{100 * part.noise:.{2 if part.noise < 0.01 else 1}f}"


def history_record(found: History) -> dict[str, object]:
    return {
        **members(found, "application", "event", "method", "by", "broken"),
        "points": [
            {
                "started": moment(one.started),
                **members(one, "runs", "run", "processes"),
                "self": asdict(one.own),
                "total": asdict(one.total) if one.total else None,
            }
            for one in found.points
        ],
    }


def moment(time: datetime) -> str:
    return f"{time.isoformat(timespec='seconds')}Z"


def grew_lines(found: Grew) -> list[str]:
    """Methods that cost more than before on some day."""
    lines = grew_heads(found)
    for head, kind, grown in (("self", "own", found.own), ("total", "total", found.total)):
        if grown:
            lines += ["", f"more {head} cost:", *grown_table(found, kind, grown).lines()]
    if not found.own and not found.total:
        lines += ["", NOTHING_GREW]
    return lines


NOTHING_GREW = "no method costs more than before, beyond noise"


def grew_heads(found: Grew) -> list[str]:
    """What was compared with what, and what makes that hard to read."""
    runs = sum(day.runs for day in found.days)
    days = f"{counted(len(found.days), 'days')} since {found.since:%Y-%m-%d %H:%M} UTC"
    return [
        f"{printable(found.event)}: {printable(found.application)}, {days} ({counted(runs, 'runs')}), "
        f"each against all before ({counted(found.runs_before, 'runs')})",
        f"shares of {measure_of(found.event).share_of}; {about_noise(found.newest)}",
        *_left_out(found.broken, found.event),
        *(one.text for one in shares_moved(found.newest.unchanged.usual)),
        *(printable(one.text) for one in unsure_callers(found.newest)),
    ]


def grown_table(found: Grew, kind: str, grown: Sequence[Grown]) -> Table:
    """The methods whose own cost, or total, grew."""
    rows = []
    for one in grown:
        moved = one.change.of(kind)
        numbers = (moved.before, moved.after, moved.change, moved.noise)
        figures = [
            cell(text, value) for text, value in zip(cells_of(found.newest, moved), numbers, strict=True)
        ]
        days: list[Cell] = [
            (f"{len(one.days)} of {len(found.days)}", len(one.days)),
            f"{one.days[-1]:%Y-%m-%d}",
        ]
        rows.append(Row([*figures, *days, name_of(one.change.name, moved)], one.change.name))
    columns = (
        *map(Column, HEADS),
        Column("days", number=False, about="days on which it cost more than before"),
        Column("last", number=False, about="the last of these days"),
        Column(named_by(found.event), number=False),
    )
    return Table(f"grew-{kind}", columns, rows, shown=_SHOWN)


def grew_record(
    found: Grew, failed: Sequence[MethodChange], unsure: Sequence[MethodChange]
) -> dict[str, object]:
    """The same; `failed` and `unsure` are methods that grew by more than a limit on the newest day."""
    return {
        **members(found, "application", "event", "broken"),
        "since": moment(found.since),
        "runs_before": found.runs_before,
        "days": [{"day": f"{one.day:%Y-%m-%d}", "runs": one.runs} for one in found.days],
        "noise": noise_source(found.newest),
        "callers_unsure": found.newest.callers_unsure,
        "self": [_grown_record(one, "own") for one in found.own],
        "total": [_grown_record(one, "total") for one in found.total],
        "failed": [one.name for one in failed],
        "unsure": [{"method": one.name, "reason": why_unsure(found.newest, one)} for one in unsure],
    }


def _grown_record(one: Grown, kind: str) -> dict[str, object]:
    return {
        "method": one.change.name,
        **members(one.change.of(kind), "before", "after", "change", "noise"),
        "days": [f"{day:%Y-%m-%d}" for day in one.days],
    }


def cost_lines(found: Cost) -> list[str]:
    """What recorded runs used, the most expensive first."""
    lines = [cost_head(found), *cost_table(found).lines()]
    # The sum stands below what is left out.
    more = and_more(len(found.rows) - _SHOWN)
    lines[len(lines) - 1 : len(lines) - 1] = more
    return [*lines, *cost_notes(found)]


def cost_head(found: Cost) -> str:
    runs = sum(day.runs for day in found.days)
    head = f"{measure_of(found.event).title} by {found.by}, {counted(len(found.days), 'days')}"
    when = f"{found.days[0].day:%Y-%m-%d} to {found.days[-1].day:%Y-%m-%d}"
    recorded = duration(sum(day.seconds for day in found.days))
    return f"{head} ({when}): {counted(runs, 'runs')}, recorded for {recorded}"


def cost_table(found: Cost, most: int = _SHOWN, with_sum: bool = True) -> Table:
    """The `most` expensive rows, and the sum of all."""
    of_cpu = found.unit == CORE_HOURS
    named = [(row_name(found, one.name), one.amount, one.cores) for one in found.rows[:most]]
    rows = []
    for name, value, cores in [*named, *([("all", found.total, found.cores)] if with_sum else [])]:
        figures: list[Cell] = [
            (amount_words(found, value / len(found.days)), value),
            (share(value / found.total if found.total else 0.0), value),
            *([(f"{cores or 0:.3g}", cores or 0.0)] if of_cpu else []),
        ]
        rows.append(Row([*figures, printable(name)]))
    columns = [
        Column("a day"),
        Column("share"),
        Column("cores"),
        Column(found.by, number=False),
    ]
    return Table("cost", [one for one in columns if of_cpu or one.head != "cores"], rows)


def cost_notes(found: Cost) -> list[str]:
    notes = []
    if len(found.rules) > 1:
        versions = " and ".join(found.rules)
        notes.append(
            f"different rules for categories ({versions}) made these amounts: they may differ by that"
        )
    if found.unit == CORE_HOURS:
        notes.append(
            "a day: of the recorded time; cores: CPU time divided by the recorded time of all these runs"
        )
    return notes


def row_name(found: Cost, name: str) -> str:
    if found.by == "category":
        return category_label(name)
    return (shown_row(name) if found.by == "method" else name) or "(unknown)"


def amount_words(found: Cost, value: float) -> str:
    if found.unit in (CORE_HOURS, HOURS):
        return duration(value * 3600)
    return amount(value, measure_of(found.event).column)


def cost_record(found: Cost) -> dict[str, object]:
    return {
        **members(found, "by", "event", "unit"),
        "days": [{"day": f"{one.day:%Y-%m-%d}", **members(one, "runs", "seconds")} for one in found.days],
        **members(found, "total", "cores", "rules"),
        "rows": [asdict(one) for one in found.rows],
    }


def where_lines(found: Where) -> list[str]:
    """The methods that were found, and the newest runs."""
    methods = where_methods(found)
    lines = [where_head(found)]
    if methods:
        lines += [*methods.lines(), ""]
    return [*lines, *where_runs(found).lines()]


def where_head(found: Where) -> str:
    alone = shown_row(found.methods[0].method) if len(found.methods) == 1 else ""
    name = alone or f"{len(found.methods)} methods with {found.frame!r}"
    return f"{printable(name)}: in {len(found.runs):,} of {counted(found.of_runs, 'runs')}"


def where_methods(found: Where) -> Table | None:
    """The methods if there are several."""
    if len(found.methods) == 1:
        return None
    rows = []
    for one in found.methods:
        days = (f"{one.first:%Y-%m-%d}", f"{one.last:%Y-%m-%d}")
        name = printable(shown_row(one.method))
        rows.append(Row([(f"{one.runs:,}", one.runs), *days, _total_cell(one.total), name]))
    columns = (
        Column("runs"),
        Column("first", number=False),
        Column("last", number=False),
        Column("at most", about="its largest share in a run"),
        Column("method", number=False),
    )
    return Table("methods", columns, rows, shown=_SHOWN)


def where_runs(found: Where) -> Table:
    """The runs, the newest first."""
    rows = []
    for run in found.runs:
        shares: list[Cell] = [_total_cell(run.total), (share(run.own), run.own)]
        names = (printable(run.application), printable(run.run))
        rows.append(Row([f"{run.started:%Y-%m-%d %H:%M}", run.event, *shares, *names], run.run))
    columns = (
        Column("started", number=False),
        Column("event", number=False),
        Column("total"),
        Column("self"),
        Column("application", number=False),
        Column("run", number=False),
    )
    return Table("runs", columns, rows, shown=_RUNS_SHOWN)


def where_record(found: Where) -> dict[str, object]:
    return {
        **members(found, "frame", "of_runs"),
        "methods": [
            {**asdict(one), "first": moment(one.first), "last": moment(one.last)} for one in found.methods
        ],
        "runs": [
            {
                "run": one.run,
                "started": moment(one.started),
                **members(one, "application", "event"),
                "self": one.own,
                "total": one.total,
            }
            for one in found.runs
        ],
    }
