"""The page of `hprofiler scale`: speed-up by size with the fitted laws, and the answer's tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hprofiler.analysis.growth import Growth
from hprofiler.analysis.words import percent, plain
from hprofiler.model.measures import counted
from hprofiler.report.blocks import Chart, Mark, Part, Series
from hprofiler.report.plain_page import write_plain_page
from hprofiler.report.spark.scaling import scaling_parts
from hprofiler.report.time_plot import levels
from hprofiler.spark.scaling import Point, Scaling

_STEPS = 100


def write_scaling_page(found: Scaling, by: str, growth: Growth | None, out: Path) -> None:
    """Write the page. Raises OSError."""
    title = f"Speed-up by {by}"
    chart = Part(
        "speed-up", [_chart(found, by)], title, "Points are means, bars the shortest and longest run."
    )
    lines = [title, f"{counted(len(found.runs), 'runs')} of {counted(len(found.points), 'sizes')}."]
    # What makes the figures doubtful stands before them.
    parts = scaling_parts(found, by, growth)
    warnings = [part for part in parts if part.title == "warnings"]
    write_plain_page(title, lines, [*warnings, chart, *(part for part in parts if part not in warnings)], out)


def _chart(found: Scaling, by: str) -> Chart:
    widest = found.points[-1].n
    highest = max(widest, *(one.speedup for one in found.points))

    def curve(value: Callable[[float], float]) -> list[Mark]:
        sizes = (widest * step / _STEPS for step in range(1, _STEPS + 1))
        return [Mark(n, min(highest, max(0.0, value(n))), "") for n in sizes]

    base = found.points[0]
    series = [
        Series("measured", [_mark(one, base) for one in found.points], "points"),
        Series("ideal", curve(lambda n: n), "ideal"),
    ]
    if found.amdahl:
        series.append(Series("Amdahl’s law", curve(found.amdahl.at), "curve"))
    if found.usl:
        series.append(Series("Universal Scalability Law", curve(found.usl.at), "curve"))
    return Chart(f"Speed-up by {by}", series, levels(highest, lambda value: f"{value:g}"), by)


def _mark(one: Point, base: Point) -> Mark:
    whole = base.n * base.mean.elapsed
    low, high = (whole / elapsed if elapsed else one.speedup for elapsed in (one.most, one.least))
    efficiency = plain(percent(one.efficiency, 1))
    text = f"speed-up {one.speedup:.2f}, efficiency {efficiency}, {counted(one.runs, 'runs')}"
    return Mark(one.n, one.speedup, text, low, high)
