"""Answers of an archive as lines for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from hprofiler._flamegraph import category_label
from hprofiler.analysis.diff import MethodChange, why_unsure
from hprofiler.analysis.diff_findings import shares_moved, unsure_callers
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.archive.grown import Grew, Grown
from hprofiler.archive.questions import CORE_HOURS, HOURS, Cost, History, Part, Where
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import amount, counted, duration, measure_of, named_by
from hprofiler.report.diff_text import HEADS, about_noise, cells_of, name_of, noise_source

_SHOWN = 20
_RUNS_SHOWN = 10


def history_lines(found: History) -> list[str]:
    """A line for each point."""
    alone = found.by == "run"
    rows: list[Sequence[str]] = [
        (
            "started",
            *(("run",) if alone else ("runs",)),
            "processes",
            "total",
            "noise",
            "self",
            "noise",
        )
    ]
    for one in found.points:
        runs = (one.run or "",) if alone else (f"{one.runs:,}",)
        cells = [cell for part in (one.total, one.own) for cell in (share(part.share), _noise(part))]
        form = "%Y-%m-%d %H:%M" if alone else "%Y-%m-%d"
        rows.append((f"{one.started:{form}}", *runs, f"{one.processes:,}", *cells))
    return [
        f"{printable(found.method)} in {printable(found.application)}",
        f"share of {measure_of(found.event).share_of} by {found.by}; noise is the most that chance explains",
        *_left_out(found.broken, found.event),
        *table_lines(rows, right=range(2 if alone else 1, 6), indent=2),
    ]


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
                "total": asdict(one.total),
            }
            for one in found.points
        ],
    }


def moment(time: datetime) -> str:
    return f"{time.isoformat(timespec='seconds')}Z"


def grew_lines(found: Grew) -> list[str]:
    """Methods that cost more than before on some day."""
    runs = sum(day.runs for day in found.days)
    days = f"{counted(len(found.days), 'days')} since {found.since:%Y-%m-%d %H:%M} UTC"
    lines = [
        f"{printable(found.event)}: {printable(found.application)}, {days} ({counted(runs, 'runs')}), "
        f"each against all before ({counted(found.runs_before, 'runs')})",
        f"shares of {measure_of(found.event).share_of}; {about_noise(found.newest)}",
        *_left_out(found.broken, found.event),
        *(one.text for one in shares_moved(found.newest.unchanged.usual)),
        *(printable(one.text) for one in unsure_callers(found.newest)),
    ]
    for head, kind, grown in (("self", "own", found.own), ("total", "total", found.total)):
        if grown:
            shown = _grown(found, kind, grown[:_SHOWN])
            lines += ["", f"more {head} cost:", *shown, *and_more(len(grown) - _SHOWN)]
    if not found.own and not found.total:
        lines += ["", "no method costs more than before, beyond noise"]
    return lines


def _grown(found: Grew, kind: str, grown: Sequence[Grown]) -> list[str]:
    rows: list[Sequence[str]] = [(*HEADS, "days", "last", named_by(found.event))]
    for one in grown:
        moved = one.change.of(kind)
        days = (f"{len(one.days)} of {len(found.days)}", f"{one.days[-1]:%Y-%m-%d}")
        rows.append((*cells_of(found.newest, moved), *days, name_of(one.change.name, moved)))
    return table_lines(rows, right=range(4), indent=2)


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
    runs = sum(day.runs for day in found.days)
    of_cpu = found.unit == CORE_HOURS
    head = f"{measure_of(found.event).title} by {found.by}, {counted(len(found.days), 'days')}"
    when = f"{found.days[0].day:%Y-%m-%d} to {found.days[-1].day:%Y-%m-%d}"
    recorded = duration(sum(day.seconds for day in found.days))
    rows: list[Sequence[str]] = [("a day", "share", *(("cores",) if of_cpu else ()), found.by)]
    named = [(row_name(found, one.name), one.amount, one.cores) for one in found.rows[:_SHOWN]]
    for name, value, cores in (*named, ("all", found.total, found.cores)):
        rows.append(
            (
                amount_words(found, value / len(found.days)),
                share(value / found.total if found.total else 0.0),
                *((f"{cores or 0:.3g}",) if of_cpu else ()),
                printable(name),
            )
        )
    lines = [
        f"{head} ({when}): {counted(runs, 'runs')}, recorded for {recorded}",
        *table_lines(rows, right=range(len(rows[0]) - 1), indent=2),
    ]
    lines[-1:-1] = and_more(len(found.rows) - _SHOWN)
    if len(found.rules) > 1:
        versions = " and ".join(found.rules)
        lines.append(
            f"different rules for categories ({versions}) made these amounts: they may differ by that"
        )
    if of_cpu:
        lines.append(
            "a day: of the recorded time; cores: CPU time divided by the recorded time of all these runs"
        )
    return lines


def row_name(found: Cost, name: str) -> str:
    return category_label(name) if found.by == "category" else name or "(unknown)"


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
    alone = found.methods[0].method if len(found.methods) == 1 else ""
    name = alone or f"{len(found.methods)} methods with {found.frame!r}"
    lines = [f"{printable(name)}: in {len(found.runs):,} of {counted(found.of_runs, 'runs')}"]
    if not alone:
        rows: list[Sequence[str]] = [("runs", "first", "last", "at most", "method")]
        for one in found.methods[:_SHOWN]:
            days = (f"{one.first:%Y-%m-%d}", f"{one.last:%Y-%m-%d}")
            rows.append((f"{one.runs:,}", *days, share(one.total), printable(one.method)))
        lines += table_lines(rows, right=(0, 3), indent=2)
        lines += [*and_more(len(found.methods) - _SHOWN), ""]
    heads: list[Sequence[str]] = [("started", "event", "total", "self", "application", "run")]
    for run in found.runs[:_RUNS_SHOWN]:
        shares = (share(run.total), share(run.own))
        names = (printable(run.application), printable(run.run))
        heads.append((f"{run.started:%Y-%m-%d %H:%M}", run.event, *shares, *names))
    lines += table_lines(heads, right=(2, 3), indent=2)
    return [*lines, *and_more(len(found.runs) - _RUNS_SHOWN)]


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
