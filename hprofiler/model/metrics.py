"""Metrics of a host: what its kernel and its JVMs published, about once a second, as the agent read it.

The same type is the agent's message and the run folder's `hosts/HOST/metrics.json.gz`.
`docs/reference/metrics.md` lists the names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
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


_DECODER = msgspec.json.Decoder(Metrics)


def decode(text: bytes) -> Metrics:
    """Raises ValueError if it is not JSON, or beyond a bound."""
    return _DECODER.decode(text)


def encode(metrics: Metrics) -> bytes:
    return msgspec.json.encode(metrics)
