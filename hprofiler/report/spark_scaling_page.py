"""The page of `hprofiler scale`: speed-up by size with the fitted laws, and the answer as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from hprofiler.report.plain_page import write_html
from hprofiler.spark.scaling import Point, Scaling

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 420, 50, 20, 12, 40
_STEPS = 100


def write_scaling_page(found: Scaling, by: str, lines: Sequence[str], out: Path) -> None:
    """Write the page; `lines` are the answer. Raises OSError."""
    title = f"speed-up by {by}"
    text = escape("\n".join(lines))
    body = f'<h1>Speed-up by {escape(by)}</h1>{_picture(found, by)}<pre tabindex="0">{text}</pre>'
    write_html(title, body, out)


def _picture(found: Scaling, by: str) -> str:
    widest = found.points[-1].n
    highest = max(widest, *(one.speedup for one in found.points))

    def place(n: float, speedup: float) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * n / widest
        return x, _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * speedup / highest

    def curve(kind: str, value: Callable[[float], float]) -> str:
        steps = (widest * step / _STEPS for step in range(1, _STEPS + 1))
        points = (place(n, min(highest, max(0.0, value(n)))) for n in steps)
        return f'<path class="line {kind}" d="M{"L".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'

    curves = [("ideal", "axis", curve("axis", lambda n: n))]
    if found.amdahl:
        curves.append(("Amdahl’s law", "cpu", curve("cpu", found.amdahl.at)))
    if found.usl:
        curves.append(("Universal Scalability Law", "gc", curve("gc", found.usl.at)))
    legend = ", ".join(
        f'<svg class="sample" viewBox="0 0 16 7"><path class="line {kind}" d="M0,4H16"/></svg> {name}'
        for name, kind, _ in curves
    )
    base = found.points[0]
    points = "".join(_point(one, base, place) for one in found.points)
    ground = _HEIGHT - _BOTTOM
    values = ", ".join(f"{one.n:g}: {one.speedup:.2f}" for one in found.points)
    heights = "".join(
        f'<text x="{_LEFT - 6}" y="{place(0, value)[1] + 4:.1f}" text-anchor="end">{value:g}</text>'
        for value in (0, round(highest / 2, 1), round(highest, 1))
    )
    return (
        f"<p>Points are means, bars the shortest and longest run; {legend}.</p>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Speed-up by {escape(by)}: {values}">'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{ground}" y2="{ground}"/>{heights}'
        f"{''.join(drawn for _, _, drawn in curves)}{points}"
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{escape(by)}</text></svg>'
    )


def _point(one: Point, base: Point, place: Callable[[float, float], tuple[float, float]]) -> str:
    x, y = place(one.n, one.speedup)
    whole = base.n * base.mean.elapsed
    low, high = (place(one.n, whole / elapsed)[1] for elapsed in (one.most, one.least))
    words = f"{one.n:g}: speed-up {one.speedup:.2f}, efficiency {one.efficiency:.0%}, {one.runs} runs"
    return (
        f'<line class="line cpu" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{words}</title></circle>'
        f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{one.n:g}</text>'
    )
