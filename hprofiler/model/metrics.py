"""Metrics of a host: what its kernel and its JVMs published, about once a second, as the agent read it.

The same type is the agent's message and the run folder's `hosts/HOST/metrics.json.gz`.
`docs/reference/metrics.md` lists the names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_READINGS = 30_000
MAX_SERIES = 10_000
MAX_NUMBERS = 2_000_000
"""Readings of all series, with those that are left out: they are like the one before. Agents have half."""
_MOST = (1 << 63) - 1

Kind = Literal["counter", "gauge"]
Thing = Literal["host", "cpu", "disk", "network", "cgroup", "process", "jvm", "mount", "node", "counters"]
Unit = Literal["ticks", "bytes", "count", "us", "ms", "ns"]
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}\Z")]
Id = Annotated[str, Meta(pattern=r"^[!-~]{0,255}\Z")]
Number = Annotated[int, Meta(ge=-_MOST, le=_MOST)]


class Series(msgspec.Struct, frozen=True):
    """The readings of one metric of one thing; `of` is the kind of thing, `id` which one it is.

    `values` has the first number as it was read, then differences to the number before; None was not read.
    A list that is shorter than the times goes on as it ended: unchanged after a number, not read after None.
    A `counter` only grows; a `gauge` is a level.
    """

    of: Thing
    id: Id
    name: Name
    kind: Kind
    unit: Unit
    values: Annotated[Sequence[Number | None], Meta(max_length=MAX_READINGS)]

    def numbers(self, readings: int) -> list[int | None]:
        """The numbers of so many readings as they were read."""
        found: list[int | None] = []
        last = 0
        for one in self.values:
            last += one or 0
            found.append(None if one is None else last)
        return found + (found[-1:] or [None]) * (readings - len(found))


class Metrics(msgspec.Struct, frozen=True):
    """`every`: seconds from reading to reading, as planned. `time` has the first reading's time, then
    differences, in microseconds since 1970 on the coordinator's clock. `facts` are numbers for formulas:
    `ticks_per_second`, `cpus`, `memory_total`, `memory_bandwidth`, `slots_per_cycle`.
    """

    every: Annotated[float, Meta(gt=0, le=1e6)]
    time: Annotated[Sequence[Annotated[int, Meta(ge=1, le=_MOST)]], Meta(max_length=MAX_READINGS)]
    facts: Annotated[Mapping[Name, Annotated[int, Meta(ge=0, le=_MOST)]], Meta(max_length=64)]
    series: Annotated[tuple[Series, ...], Meta(max_length=MAX_SERIES)]

    def __post_init__(self) -> None:
        if any(len(one.values) > len(self.time) for one in self.series):
            raise ValueError("a series has more values than there are times")
        if len(self.time) * len(self.series) > MAX_NUMBERS:
            raise ValueError(f"more than {MAX_NUMBERS} readings of series")
        if len({(one.of, one.id, one.name) for one in self.series}) != len(self.series):
            raise ValueError("a series is there twice")

    def since(self, start: int) -> Metrics:
        """The readings from a moment on (microseconds since 1970), and the one before: counters need it."""
        times = list(accumulate(self.time))
        first = max(0, bisect_left(times, start) - 1)
        series = (msgspec.structs.replace(one, values=_later(one.values, first)) for one in self.series)
        time = [*times[first : first + 1], *self.time[first + 1 :]]
        return msgspec.structs.replace(self, time=time, series=tuple(series))


def _later(values: Sequence[int | None], first: int) -> Sequence[int | None]:
    """A series' values without the first ones."""
    if first >= len(values):  # it goes on as it ended
        known = [one for one in values if one is not None]
        return [sum(known)] if values and values[-1] is not None else []
    before = sum(one for one in values[:first] if one is not None)
    later = list(values[first:])
    place = next((number for number, one in enumerate(later) if one is not None), None)
    if place is not None:
        later[place] = before + (later[place] or 0)
    return later


def joined(parts: Iterable[Metrics]) -> Metrics:
    """Metrics that follow each other as one. Of too many readings it has every second, fourth and so on.

    Raises ValueError if there are too many series even so.
    """
    every = 0.0
    times: list[int] = []
    facts: dict[str, int] = {}
    columns: dict[tuple[str, str, str], tuple[Series, list[int | None]]] = {}
    for part in parts:
        before = len(times)
        times += accumulate(part.time)
        every = max(every, part.every)
        facts.update(part.facts)
        for one in part.series:
            _, numbers = columns.setdefault((one.of, one.id, one.name), (one, []))
            numbers += [None] * (before - len(numbers))
            numbers += one.numbers(len(part.time))
        while len(times) > 1 and (len(times) > MAX_READINGS or len(times) * len(columns) > MAX_NUMBERS):
            every, times = 2 * every, times[::2]
            columns = {key: (one, _halved(one, numbers)) for key, (one, numbers) in columns.items()}
    series = tuple(_series(one, numbers, len(times)) for one, numbers in columns.values())
    return Metrics(every, [*times[:1], *(after - before for before, after in pairwise(times))], facts, series)


def _halved(series: Series, numbers: Sequence[int | None]) -> list[int | None]:
    """Every second number. What is not read every time, such as the time of threads, would go if it was read
    in between."""
    pairs = zip((None, *numbers[1::2]), numbers[::2], strict=False)
    if series.kind == "gauge":
        return list(numbers[::2])
    return [before if number is None else number for before, number in pairs]


def _series(series: Series, numbers: Sequence[int | None], readings: int) -> Series:
    """The series with these numbers, and then nothing."""
    steps: list[int | None] = []
    last = 0
    for one in numbers:
        steps.append(None if one is None else one - last)
        last = last if one is None else one
    steps += [None] * (len(numbers) < readings)
    return msgspec.structs.replace(series, values=steps)


_DECODER = msgspec.json.Decoder(Metrics)


def decode(text: bytes) -> Metrics:
    """Raises ValueError if it is not JSON, or beyond a bound."""
    return _DECODER.decode(text)


def encode(metrics: Metrics) -> bytes:
    return msgspec.json.encode(metrics)
