"""Pictures of values over days, as SVG: lines with bands, and stacked amounts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape

from hprofiler.base.text import printable

MOST_SERIES = 8
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1000, 320, 70, 14, 12, 26
_GROUND = _HEIGHT - _BOTTOM
_MARKS = 6
_LEVELS = 4
_DAY = timedelta(days=1)
Words = Callable[[float], str]


@dataclass(frozen=True)
class Value:
    """A value at a moment; `noise` is how far off it may be, None where that is not known."""

    moment: datetime
    value: float
    noise: float | None = None


@dataclass(frozen=True)
class Series:
    """A line of a picture. `level` is a value that it is compared with."""

    name: str
    values: Sequence[Value]
    level: float | None = None


@dataclass(frozen=True)
class _Scale:
    first: datetime
    length: timedelta
    step: float
    highest: float

    def x(self, moment: datetime) -> float:
        part = (moment - self.first) / self.length if self.length else 0.5
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * part

    def y(self, value: float) -> float:
        return _GROUND - (_GROUND - _TOP) * value / self.highest


def lines(series: Sequence[Series], words: Words, label: str) -> str:
    """A line for each series, at most 8, with its band of noise; `words` writes a value."""
    series = series[:MOST_SERIES]
    highest = max(
        (
            edge
            for one in series
            for edge in (one.level or 0.0, *(value.value + (value.noise or 0.0) for value in one.values))
        ),
        default=0.0,
    )
    scale = _scale([value.moment for one in series for value in one.values], highest)
    drawn = "".join(
        f'<g class="s{number}">{_line(one, scale, words)}</g>' for number, one in enumerate(series)
    )
    return _picture(drawn, scale, words, label, [one.name for one in series])


def _line(one: Series, scale: _Scale, words: Words) -> str:
    upper = [(scale.x(at.moment), scale.y(at.value + (at.noise or 0.0))) for at in one.values]
    lower = [(scale.x(at.moment), scale.y(max(0.0, at.value - (at.noise or 0.0)))) for at in one.values]
    parts = [f'<path class="band" d="M{_points([*upper, *reversed(lower)])}Z"/>']
    if one.level is not None:
        y = scale.y(one.level)
        title = escape(f"{printable(one.name)} before: {words(one.level)}")
        parts.append(f'<g stroke-dasharray="4 4">{_level(y, "own", title)}</g>')
    places = [(scale.x(at.moment), scale.y(at.value)) for at in one.values]
    parts.append(f'<path class="line own" d="M{_points(places)}"/>')
    for at, (x, y) in zip(one.values, places, strict=True):
        noise = "" if at.noise is None else f" ± {words(at.noise)}"
        title = escape(f"{printable(one.name)}, {at.moment:%Y-%m-%d %H:%M}: {words(at.value)}{noise}")
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{title}</title></circle>')
    return "".join(parts)


def stacked(
    days: Sequence[datetime], series: Sequence[tuple[str, Sequence[float]]], words: Words, label: str
) -> str:
    """Bars of a day each: the amounts of the first 8 series on top of each other, and all others together."""
    shown = list(series[:MOST_SERIES])
    if len(series) > MOST_SERIES:
        rest = [values for _, values in series[MOST_SERIES:]]
        shown.append(("others", [sum(of_day) for of_day in zip(*rest, strict=True)]))
    sums = [0.0] * len(days)
    scale = _scale(
        [*days, *(day + _DAY for day in days[-1:])],
        max(map(sum, zip(*(v for _, v in shown), strict=True)), default=0.0),
    )
    parts = []
    for number, (name, values) in enumerate(shown):
        kind = "others" if number == MOST_SERIES else f"s{number}"
        for at, (day, value) in enumerate(zip(days, values, strict=True)):
            if value <= 0:
                continue
            left, right = scale.x(day), scale.x(day + _DAY)
            top, ground = scale.y(sums[at] + value), scale.y(sums[at])
            sums[at] += value
            title = escape(f"{printable(name)}, {day:%Y-%m-%d}: {words(value)}")
            box = f'width="{max(0.5, right - left - 1):.1f}" height="{ground - top:.2f}"'
            place = f'x="{left:.1f}" y="{top:.1f}" {box}'
            parts.append(f'<rect class="stack {kind}" {place}><title>{title}</title></rect>')
    return _picture("".join(parts), scale, words, label, [name for name, _ in shown])


def _scale(moments: Sequence[datetime], highest: float) -> _Scale:
    """The highest level is the first multiple of a round step from the highest value on."""
    first = min(moments)
    step = _round_step(highest / _LEVELS) if highest else 1.0
    return _Scale(first, max(moments) - first, step, step * max(1, math.ceil(highest / step)))


def _round_step(least: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 … or 0.1, 0.2 …"""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next((power * one for one in (1, 2, 2.5, 5) if power * one >= least), 10 * power)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _picture(drawn: str, scale: _Scale, words: Words, label: str, names: Sequence[str]) -> str:
    legend = ", ".join(
        f'<svg class="sample {"others" if number == MOST_SERIES else f"s{number}"}" viewBox="0 0 16 7">'
        f'<path class="line own" stroke-width="3" d="M0,4H16"/></svg> {escape(printable(name))}'
        for number, name in enumerate(names)
    )
    levels = [(scale.step * n, scale.y(scale.step * n)) for n in range(round(scale.highest / scale.step) + 1)]
    heights = "".join(
        _level(y, "axis")
        + f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(words(level))}</text>'
        for level, y in levels
    )
    marks = "".join(_mark(scale, number) for number in range(_MARKS + 1)) if scale.length else _mark(scale, 0)
    return (
        f'<p>{legend}</p><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{heights}{drawn}{marks}</svg>"
    )


def _level(y: float, kind: str, title: str = "") -> str:
    place = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line class="{kind}" {place}>{f"<title>{title}</title>" if title else ""}</line>'


def _mark(scale: _Scale, number: int) -> str:
    moment = scale.first + scale.length * number / _MARKS
    form = "%Y-%m-%d" if scale.length >= _MARKS * _DAY else "%m-%d %H:%M"
    anchor = "middle" if not scale.length else {0: "start", _MARKS: "end"}.get(number, "middle")
    return f'<text x="{scale.x(moment):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{moment:{form}}</text>'
