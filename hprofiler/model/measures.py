"""The values of each event, and how amounts are written.

The value columns are part of the protocol (`agents/PROTOCOL.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hprofiler.model.event_names import is_each_one, is_method, is_tracepoint

Column = tuple[str, str]

_BYTE_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_SMALL_TIMES = ((1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


@dataclass(frozen=True)
class Measure:
    """One event's profile.

    `columns` are (name, unit); `words` follow each amount ("samples", "of CPU time"), `heads` are table
    heads; `shown` is the index of the column in pictures. The other texts are used in "37 % of {share_of}
    {verb} Foo.bar" and "2 processes {none}"; `every` precedes the interval.
    """

    columns: tuple[Column, ...]
    words: tuple[str, ...]
    heads: tuple[str, ...]
    shown: int
    title: str
    share_of: str
    verb: str
    none: str
    every: str = ""

    @property
    def column(self) -> Column:
        """The (name, unit) of the value in the pictures."""
        return self.columns[self.shown]

    @property
    def wider(self) -> str:
        """What the width of a frame means."""
        return self.share_of.removeprefix("the ")

    @property
    def shown_first(self) -> list[str]:
        """All value names, the one in pictures first."""
        names = [name for name, _ in self.columns]
        return [names[self.shown], *names[: self.shown], *names[self.shown + 1 :]]


CPU_VALUES = ("samples", "cpu")
"""The names of the values of CPU samples."""

_MEASURES: dict[str, Measure] = {
    "cpu": Measure(
        columns=(("samples", "count"), ("cpu", "nanoseconds")),
        words=("samples", "of CPU time"),
        heads=("Samples", "CPU time"),
        shown=0,
        title="CPU time",
        share_of="CPU time",
        verb="is spent in",
        none="used no CPU",
    ),
    "wall": Measure(
        columns=(("wall_samples", "count"), ("wall", "nanoseconds")),
        words=("samples", "of wall-clock time"),
        heads=("Samples", "Time"),
        shown=1,
        title="wall-clock time",
        share_of="wall-clock time",
        verb="is spent in",
        none="had no sample of wall-clock time",
        every="every",
    ),
    "offcpu": Measure(
        columns=(("offcpu_samples", "count"), ("offcpu", "nanoseconds")),
        words=("samples", "off CPU"),
        heads=("Samples", "Off CPU"),
        shown=1,
        title="off-CPU time",
        share_of="off-CPU time",
        verb="is spent in",
        none="never waited",
        every="every",
    ),
    "lock": Measure(
        columns=(("contentions", "count"), ("delay", "nanoseconds")),
        words=("contentions", "waited"),
        heads=("Contentions", "Waited"),
        shown=1,
        title="lock waits",
        share_of="the time waited for locks",
        verb="goes to",
        none="never waited for a contended lock",
        every="every",
    ),
    "alloc": Measure(
        columns=(("alloc_objects", "count"), ("alloc_space", "bytes")),
        words=("objects", "allocated"),
        heads=("Objects", "Allocated"),
        shown=1,
        title="allocations",
        share_of="allocated memory",
        verb="goes to",
        none="allocated too little for one sample",
        every="every",
    ),
    "live": Measure(
        columns=(("inuse_objects", "count"), ("inuse_space", "bytes")),
        words=("objects", "not collected"),
        heads=("Objects", "Not collected"),
        shown=1,
        title="live objects",
        share_of="memory not collected yet",
        verb="goes to",
        none="had no sampled object left at the end",
        every="every",
    ),
    "nativemem": Measure(
        columns=(("native_allocs", "count"), ("native_space", "bytes")),
        words=("allocations", "allocated"),
        heads=("Allocations", "Allocated"),
        shown=1,
        title="native memory",
        share_of="allocated native memory",
        verb="goes to",
        none="allocated too little native memory for one sample",
        every="every",
    ),
    "nativelive": Measure(
        columns=(("native_inuse_allocs", "count"), ("native_inuse_space", "bytes")),
        words=("allocations", "not freed"),
        heads=("Allocations", "Not freed"),
        shown=1,
        title="native memory that is not freed",
        share_of="native memory not freed yet",
        verb="goes to",
        none="had no sampled native memory left at the end",
        every="every",
    ),
}


# Names of the counts of known events.
# Samples that CPU time stands for: so few may be none.
_FEW = 5
_COUNTED = {"threads": "threads"} | {
    name: words
    for measure in _MEASURES.values()
    for (name, unit), words in zip(measure.columns, measure.words, strict=False)
    if unit == "count"
}


# Counts that are estimated from samples.
_ESTIMATED = ("alloc_objects", "inuse_objects")


def measure_of(event: str) -> Measure:
    """The measure of an event; an unknown event is a count."""
    return _MEASURES.get(event) or (_calls(event) if is_method(event) else _other(event))


def _calls(event: str) -> Measure:
    return Measure(
        columns=((event, "count"),),
        words=("calls",),
        heads=("Calls",),
        shown=0,
        title=event,
        share_of=f"the calls of {event}",
        verb="come from",
        none=f"made no call of {event}: it was not called, or there is no such method",
    )


def _other(event: str) -> Measure:
    words = "events" if is_each_one(event) else "samples"
    return Measure(
        columns=((event, "count"),),
        words=(words,),
        heads=(words.capitalize(),),
        shown=0,
        title=event,
        share_of=f"{event} events" if is_tracepoint(event) else event,
        verb="happen in",
        none=f"had no {words.removesuffix('s')} of {event}",
    )


def ends_in_classes(event: str) -> bool:
    """Whether stacks of the event end with what was allocated, which tables name."""
    return event in ("alloc", "live")


def named_by(event: str) -> str:
    """The kind of the event's hottest items, in the singular."""
    return "class" if ends_in_classes(event) else "method"


def amount(value: float, column: Column) -> str:
    """A value with its unit: "1,234 samples", "4.1 s", "12.0 MiB"."""
    name, unit = column
    if unit == "nanoseconds":
        return duration(value / 1e9)
    return size(value) if unit == "bytes" else _count(value, name, counted_in(column))


def counted_in(column: Column) -> str:
    """What a value counts; "" for time and bytes."""
    name, unit = column
    if unit in ("nanoseconds", "bytes"):
        return ""
    if is_each_one(name):
        return measure_of(name).words[0]
    return _COUNTED.get(name, "samples" if unit == "count" else unit)


def _count(value: float, name: str, what: str) -> str:
    """ "1,234 samples", or "about 670,000,000 objects" for an estimate."""
    rounded = figures(value, name)
    about = "about " if rounded != value else ""
    return about + counted(rounded, what)


def figures(value: float, name: str) -> float:
    """The value of a column; an estimate is rounded to three digits."""
    return float(f"{value:.3g}") if name in _ESTIMATED and value >= 1000 else value


def counted(value: float, what: str) -> str:
    """ "1 sample", "1,234 samples"; `what` is the plural."""
    if what.endswith("ies"):
        singular = f"{what[:-3]}y"
    else:
        singular = what[:-2] if what.endswith("sses") else what.removesuffix("s")
    return f"{value:,.0f} {singular if value == 1 else what}"


def no_samples(event: str, processes: int, expected: int, cut: bool = False) -> str:
    """Why recorded processes have no samples of an event; `expected`: samples expected from their CPU
    time. `cut`: live objects were cut."""
    recorded = counted(processes, "processes")
    if cut:
        return f"{recorded} had more objects than async-profiler keeps: use a larger --alloc-interval"
    if 0 < expected <= _FEW:
        return f"{recorded} used too little CPU time for a sample: record longer (-t)"
    if expected:
        samples = counted(expected, "samples")
        return f"the CPU time of {recorded} stands for {samples}, of which none was taken"
    return f"{recorded} {measure_of(event).none}"


def duration(seconds: float) -> str:
    """Seconds with a suitable unit: "2.0 h", "60 s", "1.5 s", "20 ms"."""
    return " ".join(number_and_unit(seconds))


def number_and_unit(seconds: float) -> tuple[str, str]:
    """The two parts of a duration: "2.0" and "h"."""
    if seconds >= 7200:
        return f"{seconds / 3600:.1f}", "h"
    if seconds >= 120:
        return f"{seconds / 60:.1f}", "min"
    if seconds >= 0.9995 or seconds <= 0:
        return f"{seconds:.0f}" if seconds >= 100 or seconds == int(seconds) else f"{seconds:.1f}", "s"
    fitting = (one for one in _SMALL_TIMES if seconds * one[0] >= 0.9995)
    scale, unit = next(fitting, _SMALL_TIMES[-1])
    return f"{seconds * scale:.3g}", unit


def size(value: float) -> str:
    """Bytes with a suitable unit: "100 bytes", "512 KiB", "1.3 GiB"; 1 KiB is 1024 bytes."""
    unit = 0
    while round(value, 1) >= 1024 and unit < len(_BYTE_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 0 if value == int(value) else 1
    return f"{value:,.{digits}f} {_BYTE_UNITS[unit]}"


def in_words(event: str, totals: Mapping[str, int]) -> str:
    """The totals of a profile: "1,234 samples, 4.1 s of CPU time"."""
    measure = measure_of(event)
    told = []
    for (name, unit), words in zip(measure.columns, measure.words, strict=False):
        if name in totals:
            value = totals[name]
            told.append(
                _count(value, name, words) if unit == "count" else f"{amount(value, (name, unit))} {words}"
            )
    return ", ".join(told)


def interval_in_words(event: str, intervals: Iterable[int]) -> str:
    """The sampling interval: "every 512 KiB to 4 MiB"; "" if it has no meaning."""
    measure = measure_of(event)
    known = sorted({interval for interval in intervals if interval > 0})
    if not known or not measure.every:
        return ""
    told = list(dict.fromkeys(amount(one, measure.column) for one in (known[0], known[-1])))
    return f"{measure.every} {' to '.join(told)}"


def summed(totals: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums of several profiles' totals, value by value."""
    sums: dict[str, int] = {}
    for one in totals:
        for name, value in one.items():
            sums[name] = sums.get(name, 0) + value
    return sums
