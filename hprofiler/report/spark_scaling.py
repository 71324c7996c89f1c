"""Runs of a Spark job of several sizes, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from hprofiler._flamegraph import category_label
from hprofiler.analysis.growth import Growth
from hprofiler.analysis.words import percent, plain, short_name
from hprofiler.base.text import printable, some
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, duration, size
from hprofiler.spark.scaling import Fit, Point, Scaling, Warned

_NAMED = 5
_METHODS = 10


def scaling_lines(found: Scaling, by: str, growth: Growth | None = None) -> list[str]:
    """The table, the fitted laws, methods that grew, and warnings."""
    headings = (
        by,
        "runs",
        "elapsed",
        "least",
        "most",
        "speed-up",
        "efficiency",
        "run time",
        "CPU",
        "CPU/run",
        "GC",
        "bytes",
        "tasks",
    )
    rows: list[Sequence[str]] = [headings, *(_row(one) for one in found.points)]
    lines = [
        f"{counted(len(found.runs), 'runs')}; speed-up is relative to {by} = {found.points[0].n:g}:",
        *table_lines(rows, right=range(len(headings) - 1), indent=2),
    ]
    fits = [("Amdahl", found.amdahl), ("Universal Scalability Law", found.usl)]
    known = [(name, fit) for name, fit in fits if fit]
    if known:
        lines += ["", "fits, with intervals of 95%:"]
        lines += table_lines([(name, _fit_text(fit, by)) for name, fit in known], indent=2)
    if growth is not None:
        lines += ["", *_growth_lines(growth, by), "", *_work_lines(growth, by)]
    if found.warnings:
        lines += ["", "warnings:", *(f"  {printable(warning_text(one))}" for one in found.warnings)]
    return lines


def _growth_lines(growth: Growth, by: str) -> list[str]:
    first, last = (f"{by} = {n:g}" for n in growth.sizes)
    if not growth.methods:
        return [f"no method takes more CPU time with {last} than with {first}, beyond chance"]
    rows: list[Sequence[str]] = [(first, last, "", "method")]
    for one in growth.methods[:_METHODS]:
        times = f"{one.after / one.before:.1f} x" if one.before else "new"
        own = (duration(one.before / 1e3), duration(one.after / 1e3))
        rows.append((*own, times, printable(short_name(one.name))))
    head = "own CPU time in the whole job of methods that grow with its size:"
    return [head, *table_lines(rows, right=range(3), indent=2)]


def _work_lines(growth: Growth, by: str) -> list[str]:
    """A column for each size; categories by their largest CPU time."""
    sizes = list(growth.work)
    most: dict[str, float] = {}
    for of_size in growth.work.values():
        most |= {name: max(most.get(name, 0.0), time) for name, time in of_size.items()}
    rows: list[Sequence[str]] = [(*(f"{by} = {n:g}" for n in sizes), "category")]
    for name in nlargest(_METHODS, most, key=most.__getitem__):
        times = (duration(growth.work[n].get(name, 0.0) / 1e3) for n in sizes)
        rows.append((*times, category_label(name)))
    head = "CPU time in the whole job by category of work:"
    return [head, *table_lines(rows, right=range(len(sizes)), indent=2)]


def _row(one: Point) -> list[str]:
    mean = one.mean
    cpu = mean.cpu_time / 1e6
    return [
        f"{one.n:g}",
        str(one.runs),
        duration(mean.elapsed / 1e3),
        duration(one.least / 1e3),
        duration(one.most / 1e3),
        f"{one.speedup:.2f}",
        plain(percent(one.efficiency, 1)),
        duration(mean.run_time / 1e3),
        duration(cpu / 1e3),
        plain(percent(min(cpu, mean.run_time), mean.run_time)),
        duration(mean.gc_time / 1e3),
        size(round(mean.bytes)),
        f"{mean.tasks:,.0f}",
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
    if one.code == "not-ended":
        return f"no end of the application is in {some(given['sources'], _NAMED)}: it may have done less work"
    if one.code == "super-linear":
        return (
            f"efficiency is above 100% at {sizes}: the smallest size was slowed by something else "
            "(cold caches, memory, JIT compilation), and the fits mislead"
        )
    if one.code == "few-runs":
        return f"fewer than {given['enough']} runs at {sizes}: chance is not known"
    if one.code == "few-points":
        return f"only {counted(given['points'], 'sizes')}: fits want {given['enough']}"
    if one.code == "runs-differ":
        return f"runs at {sizes} differ by more than a factor of {given['times']:g}: their mean says little"
    return f"a peak is not certain: the largest size is {given['largest']:g}"
