"""Charts of values over days: lines with their noise, and stacked amounts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from hprofiler.base.text import printable
from hprofiler.report.blocks import Chart, Mark, Series

MOST_SERIES = 8
_LEVELS = 4
Words = Callable[[float], str]


@dataclass(frozen=True)
class Value:
    """A value at a moment; `noise` is how far off it may be, None if unknown. `key` is its row’s."""

    moment: datetime
    value: float
    noise: float | None = None
    key: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a chart. `level` is a value that it is compared with."""

    name: str
    values: Sequence[Value]
    level: float | None = None


def lines(series: Sequence[Line], words: Words, label: str) -> Chart:
    """A line for each series, at most 8, with its band of noise; `words` writes a value."""
    drawn = [
        Series(
            one.name,
            [_mark(at, words) for at in one.values],
            level=None if one.level is None else (one.level, words(one.level)),
        )
        for one in series[:MOST_SERIES]
    ]
    highest = max(
        (
            edge
            for one in drawn
            for edge in (one.level[0] if one.level else 0.0, *(mark.high or mark.y for mark in one.marks))
        ),
        default=0.0,
    )
    return Chart(label, drawn, levels(highest, words))


def _mark(at: Value, words: Words) -> Mark:
    text = words(at.value)
    if at.noise is None:
        return Mark(milliseconds(at.moment), at.value, text, key=at.key)
    low, high = max(0.0, at.value - at.noise), at.value + at.noise
    return Mark(milliseconds(at.moment), at.value, f"{text} ± {words(at.noise)}", low, high, at.key)


def stacked(
    days: Sequence[datetime],
    series: Sequence[tuple[str, Sequence[float]]],
    words: Words,
    label: str,
    steps: Sequence[float] = (),
) -> Chart:
    """Bars of a day each: the amounts of the first 8 series on top of each other, and all others together."""
    shown = list(series[:MOST_SERIES])
    if len(series) > MOST_SERIES:
        rest = [values for _, values in series[MOST_SERIES:]]
        shown.append(("others", [sum(of_day) for of_day in zip(*rest, strict=True)]))
    drawn = [
        Series(
            printable(name),
            [
                Mark(milliseconds(day), value, words(value))
                for day, value in zip(days, values, strict=True)
                if value > 0
            ],
        )
        for name, values in shown
    ]
    highest = max(map(sum, zip(*(values for _, values in shown), strict=True)), default=0.0)
    return Chart(label, drawn, levels(highest, words, steps), stacked=True)


def milliseconds(moment: datetime) -> float:
    """Since 1970; moments of archives are UTC."""
    return round(moment.replace(tzinfo=timezone.utc).timestamp() * 1e3)


def levels(highest: float, words: Words, steps: Sequence[float] = ()) -> list[tuple[float, str]]:
    """Ticks from 0 on by a round step, the last one not below the highest value.

    `steps` are those that are round in the unit of `words`, ascending.
    """
    step = 1.0
    if highest:
        least = highest / _LEVELS
        step = next((one for one in steps if one >= least), 0.0) or _round_step(least)
    count = max(1, math.ceil(highest / step - 1e-9))
    return [(step * number, words(step * number)) for number in range(count + 1)]


def _round_step(least: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 … or 0.1, 0.2 …"""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next((power * one for one in (1, 2, 2.5, 5) if power * one >= least), 10 * power)
