"""The page of a Spark application: its timeline, its stages, and the answer of `hprofiler spark`.

One file without scripts: pictures are SVG, tables are HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from hprofiler.base.text import printable
from hprofiler.model.measures import duration
from hprofiler.report.plain_page import write_html
from hprofiler.report.spark_text import Part, stage_rows
from hprofiler.spark.application import Application
from hprofiler.spark.figures import Figures
from hprofiler.spark.timeline import SPREAD, Timeline, timeline
from hprofiler.spark.windows import stage_name

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1000, 220, 45, 10, 10, 22
_INNER = _WIDTH - _LEFT - _RIGHT
_BUCKETS = 300
_LANES, _LANE = 12, 14
_MOST_BARS = 2000
MOST_ROWS = 2000
_MARKS = 6
_LINES = ("cpu", "gc", "shuffle read", "shuffle write", "deserialize")


def write_page(
    application: Application, found: Figures, headline: Sequence[str], parts: Iterable[Part], out: Path
) -> None:
    """Write the page with the answer's headline and parts. Raises OSError."""
    title = printable(application.name or application.id or "Spark application")
    body = [
        f"<h1>{escape(headline[0])}</h1>",
        *(f"<p>{escape(line)}</p>" for line in headline[1:]),
        _timeline(application),
        _stage_table(found),
        *map(_part, parts),
    ]
    write_html(title, "".join(body), out)


def _part(part: Part) -> str:
    heading, text = escape(part.heading), escape("\n".join(part.lines))
    return f"<h2>{heading}</h2><pre>{text}</pre>" if text else f"<p>{heading}</p>"


def _timeline(application: Application) -> str:
    line = timeline(application, _BUCKETS)
    if not line.active:
        return ""
    whole = line.width * len(line.active)
    highest = max(1, *line.most)
    scale = (_HEIGHT - _TOP - _BOTTOM) / highest
    words = (
        f"<p>Active tasks (area; at most {max(line.most):,} at once, of {application.most_cores:,} cores), "
        f"and what they did, in cores: {', '.join(map(_legend, _LINES))}. "
        f"What tasks did is {SPREAD}; these lines overlap.</p>"
    )
    marks = [_mark(number * whole / _MARKS, whole) for number in range(_MARKS + 1)]
    heights = [_height_mark(value, scale) for value in sorted({0, highest // 2, highest})]
    lines = [
        f'<path class="line {_class(name)}" d="{_path(line.parts[name], whole, line, scale)}"/>'
        for name in _LINES
    ]
    area = _path(line.active, whole, line, scale)
    end = _x(len(line.active) * line.width, whole)
    ground = _HEIGHT - _BOTTOM
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Active tasks over time">'
        f'{"".join(heights)}<path class="area" d="{area}L{end:.1f},{ground}L{_LEFT},{ground}Z"/>'
        f"{''.join(lines)}{''.join(marks)}</svg>"
    )
    return f"<h2>Timeline</h2>{words}{picture}{_lanes(application, line.start, whole)}"


def _path(values: Sequence[float], whole: int, line: Timeline, scale: float) -> str:
    """Steps: each value for the width of its bucket."""
    steps = []
    for number, value in enumerate(values):
        height = _HEIGHT - _BOTTOM - value * scale
        left, right = (_x((number + edge) * line.width, whole) for edge in (0, 1))
        steps.append(f"{left:.1f},{height:.1f}L{right:.1f},{height:.1f}")
    return "M" + "L".join(steps)


def _x(milliseconds: float, whole: float) -> float:
    return _LEFT + _INNER * milliseconds / whole


def _mark(milliseconds: float, whole: int) -> str:
    anchor = "end" if milliseconds >= whole else "middle" if milliseconds else "start"
    place = f'x="{_x(milliseconds, whole):.1f}" y="{_HEIGHT - 6}"'
    return f'<text {place} text-anchor="{anchor}">{duration(milliseconds / 1e3)}</text>'


def _height_mark(value: int, scale: float) -> str:
    y = _HEIGHT - _BOTTOM - value * scale
    line = f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>'


def _legend(name: str) -> str:
    line = f'<path class="line {_class(name)}" d="M0,4H16"/>'
    return f'<svg class="sample" viewBox="0 0 16 7">{line}</svg> {name}'


def _class(name: str) -> str:
    return name.replace(" ", "-")


def _lanes(application: Application, start: int, whole: int) -> str:
    """Stages as bars; each in the first lane that has room."""
    ran = [stage for stage in application.stages.values() if stage.start and stage.status != "SKIPPED"]
    ran.sort(key=lambda stage: (stage.start, stage.id))
    until: list[int] = []
    bars = []
    for stage in ran[:_MOST_BARS]:
        end = stage.end or application.until
        lane = next((number for number, busy in enumerate(until) if busy <= stage.start), len(until))
        if lane >= _LANES:
            continue
        until[lane : lane + 1] = [end]
        left = min(max(_x(stage.start - start, whole), _LEFT), _WIDTH - _RIGHT)
        width = max(0.6, min(_x(end - start, whole), _WIDTH - _RIGHT) - left)
        kind = "bar failed" if stage.status == "FAILED" else "bar"
        label = f"{stage_name(*stage.key)}: {stage.name}, {duration(max(0, end - stage.start) / 1e3)}"
        place = f'x="{left:.1f}" y="{lane * _LANE}" width="{width:.1f}" height="{_LANE - 2}"'
        bars.append(f'<rect class="{kind}" {place}><title>{escape(label)}</title></rect>')
    height = len(until) * _LANE
    names = f'<text x="{_LEFT - 6}" y="10" text-anchor="end">stages</text>'
    box = f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Stages over time"'
    return f"<svg {box}>{names}{''.join(bars)}</svg>"


def _stage_table(found: Figures) -> str:
    stages = [cells for _, cells in stage_rows(found, MOST_ROWS)]
    if not stages:
        return ""
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells.values())}</tr>" for cells in stages
    )
    more = len(found.by_task_time) - MOST_ROWS
    rest = f'<p class="faint">… and {more:,} more stages</p>' if more > 0 else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in stages[0])
    return (
        f'<h2>Stages by task time</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{rest}"
    )
