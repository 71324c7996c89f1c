"""Runs of a Spark job of several sizes, in parts: lines for the terminal, tables and a chart for a page."""

from __future__ import annotations

from heapq import nlargest

from hprofiler._flamegraph import category_label
from hprofiler.analysis.growth import Growth
from hprofiler.analysis.words import percent, plain, short_name
from hprofiler.base.text import printable, some
from hprofiler.model.measures import counted, duration, size
from hprofiler.report.blocks import Cell, Column, Facts, Lines, Part, Row, Table
from hprofiler.spark.scaling import Fit, Point, Scaling, Warned

_NAMED = 5
_METHODS = 10


def scaling_lines(found: Scaling, by: str, growth: Growth | None = None) -> list[str]:
    """The table, the fitted laws, methods that grew, and warnings."""
    lines = [part.text.splitlines() for part in scaling_parts(found, by, growth)]
    return [line for number, part in enumerate(lines) for line in ([""] if number else []) + part]


def scaling_parts(found: Scaling, by: str, growth: Growth | None = None) -> list[Part]:
    relative = f"speed-up is relative to {by} = {found.points[0].n:g}"
    parts = [
        Part(
            f"{counted(len(found.runs), 'runs')}; {relative}",
            [_size_table(found, by)],
            "Runs by size",
            f"S{relative[1:]}.",
        )
    ]
    fits = [("Amdahl", found.amdahl), ("Universal Scalability Law", found.usl)]
    known = [(name, _fit_text(fit, by)) for name, fit in fits if fit]
    if known:
        parts.append(Part("fits, with intervals of 95%", [Facts(known)]))
    if growth is not None:
        parts += [_growth_part(growth, by), _work_part(growth, by)]
    if found.warnings:
        warnings = [printable(warning_text(one)) for one in found.warnings]
        parts.append(Part("warnings", [Lines(warnings, list=True)]))
    return parts


def _size_table(found: Scaling, by: str) -> Table:
    columns = (
        Column(by),
        Column("runs"),
        Column("elapsed", about="mean of the runs"),
        Column("least", name="shortest"),
        Column("most", name="longest"),
        Column("speed-up"),
        Column("efficiency", about="speed-up ÷ size"),
        Column("run time"),
        Column("CPU"),
        Column("CPU/run"),
        Column("GC"),
        Column("bytes"),
        Column("tasks"),
    )
    return Table("sizes", columns, [Row(_row(one)) for one in found.points])


def _growth_part(growth: Growth, by: str) -> Part:
    first, last = (f"{by} = {n:g}" for n in growth.sizes)
    if not growth.methods:
        return Part(f"no method takes more CPU time with {last} than with {first}, beyond chance")
    rows = []
    for one in growth.methods[:_METHODS]:
        times: Cell = (f"{one.after / one.before:.1f} x", one.after / one.before) if one.before else "new"
        own: list[Cell] = [(duration(time / 1e3), time) for time in (one.before, one.after)]
        rows.append(Row([*own, times, printable(short_name(one.name))]))
    columns = (Column(first), Column(last), Column("", name="times"), Column("method", number=False))
    title = "own CPU time in the whole job of methods that grow with its size"
    return Part(title, [Table("growth", columns, rows, "methods")])


def _work_part(growth: Growth, by: str) -> Part:
    """A column for each size; categories by their largest CPU time."""
    sizes = list(growth.work)
    most: dict[str, float] = {}
    for of_size in growth.work.values():
        most |= {name: max(most.get(name, 0.0), time) for name, time in of_size.items()}
    rows = []
    for name in nlargest(_METHODS, most, key=most.__getitem__):
        of_sizes = [growth.work[n].get(name, 0.0) for n in sizes]
        rows.append(Row([*((duration(time / 1e3), time) for time in of_sizes), category_label(name)]))
    columns = (*(Column(f"{by} = {n:g}") for n in sizes), Column("category", number=False))
    title = "CPU time in the whole job by category of work"
    return Part(title, [Table("work", columns, rows, "categories")])


def _row(one: Point) -> list[Cell]:
    mean = one.mean
    cpu = mean.cpu_time / 1e6
    return [
        (f"{one.n:g}", one.n),
        (str(one.runs), one.runs),
        *((duration(time / 1e3), time) for time in (mean.elapsed, one.least, one.most)),
        (f"{one.speedup:.2f}", one.speedup),
        (plain(percent(one.efficiency, 1)), one.efficiency),
        *((duration(time / 1e3), time) for time in (mean.run_time, cpu)),
        (plain(percent(min(cpu, mean.run_time), mean.run_time)), cpu / (mean.run_time or 1)),
        (duration(mean.gc_time / 1e3), mean.gc_time),
        (size(round(mean.bytes)), mean.bytes),
        (f"{mean.tasks:,.0f}", mean.tasks),
    ]


def _fit_text(fit: Fit, by: str) -> str:
    values = {"g": fit.g, "a": fit.a, "b": fit.b}
    parts = []
    for name in f"g{fit.free}":
        interval = fit.intervals[name] if fit.intervals else None
        within = f" ({interval[0]:.3g} to {interval[1]:.3g})" if interval else ""
        parts.append(f"{name} = {values[name]:.3g}{within}")
    if fit.peak:
        parts.append(f"fastest with {by} = {fit.peak:.0f}, where speed-up is {fit.at(fit.peak):.3g}")
    elif fit.limit:
        parts.append(f"limit of speed-up {fit.limit:.3g}")
    return ", ".join(parts)


def warning_text(one: Warned) -> str:
    given = one.parameters
    sizes = ", ".join(f"{n:g}" for n in given.get("sizes", ()))
    if one.code == "different-work":
        least, most = (
            size(round(value)) if given["what"] == "bytes" else f"{value:,.0f}"
            for value in (given["least"], given["most"])
        )
        return f"the runs did different work: their {given['what']} are {least} to {most}"
    if one.code == "failed":
        return f"{given['source']} is left out, because it failed: {given['reason']}"
    if one.code == "not-ended":
        return f"no end of the application is in {some(given['sources'], _NAMED)}: it may have done less work"
    if one.code == "super-linear":
        return (
            f"efficiency is above 100% at {sizes}: the smallest size was slowed by something else "
            "(cold caches, memory, JIT compilation), and the fits mislead"
        )
    if one.code == "few-runs":
        return f"fewer than {given['enough']} runs at {sizes}: chance is not known"
    if one.code == "one-size":
        return f"all runs have the size {given['size']:g}: how the job scales is not known; try another --by"
    if one.code == "few-points":
        return f"only {counted(given['points'], 'sizes')}: fits want {given['enough']}"
    if one.code == "runs-differ":
        return f"runs at {sizes} differ by more than a factor of {given['times']:g}: their mean says little"
    return f"a peak is not certain: the largest size is {given['largest']:g}"
