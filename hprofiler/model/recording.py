"""What to record; recordings of a process, and results of a host."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

from msgspec import Meta

from hprofiler.model.target import Process

_MOST = (1 << 63) - 1
Count = Annotated[int, Meta(ge=0, le=_MOST)]
Name = Annotated[str, Meta(max_length=255)]
_IN_ONE = 60.0
PART = 10.0
"""Seconds of the parts in which long recordings are sent."""
MOST_PAUSES = 100_000
"""Of one process. Half of them is what a page shows at most."""
PART_INSIDE = 5.0
"""The same in a container that is reached by exec: what was not sent when it ends, is lost."""
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


@dataclass(frozen=True)
class Sampling:
    """What to record and how, for `duration` seconds. `events` has at least one, without duplicates.

    `frequency` is in Hz of CPU time. If an interval is None, the agent chooses it: `alloc_interval` in bytes,
    `lock_threshold` and `wall_interval` in nanoseconds. `keep_raw` also requests the engine's own files,
    `timeline` the times of samples and of GC pauses, `thread_names` names of threads even where the JVM
    prints a warning about that, `python_native` native frames of Python processes, which are stopped for
    their samples then, `part` after how many seconds what was recorded so far is sent (None: all at the end),
    `metrics` what the host did meanwhile, `counters` (presets and events) what
    its processors counted; they need `metrics`.
    """

    events: tuple[str, ...]
    frequency: int
    duration: Seconds
    engine: str = "auto"
    alloc_interval: int | None = None
    lock_threshold: int | None = None
    wall_interval: int | None = None
    keep_raw: bool = False
    timeline: bool = True
    thread_names: bool = False
    python_native: bool = False
    metrics: bool = False
    counters: tuple[str, ...] = ()
    part: Seconds | None = None


def part_of(duration: float) -> float | None:
    """`Sampling.part` for a recording of so many seconds. Shorter ones are folded when they are over, so that
    hosts have less to do meanwhile."""
    return PART if duration > _IN_ONE else None


def _sum(one: int, other: int) -> int:
    """A `Count`, whatever hosts say: each of their parts may have the largest."""
    return min(one + other, _MOST)


@dataclass(frozen=True)
class Samples:
    """How many samples a recording should have had, had, and missed (process CPU seconds x Hz; counts)."""

    expected: Count
    taken: Count
    lost: Count

    def plus(self, other: Samples) -> Samples:
        return Samples(
            _sum(self.expected, other.expected), _sum(self.taken, other.taken), _sum(self.lost, other.lost)
        )


@dataclass(frozen=True)
class SampleTimes:
    """When the first of a profile's buckets of time begins, and their length; microseconds, since 1970."""

    start: Annotated[int, Meta(ge=0, le=1 << 62)]
    width: Annotated[int, Meta(ge=1, le=1 << 62)]


@dataclass(frozen=True)
class Recording:
    """One event of one process.

    `event` is the name in the request, `source` what `engine` used for it (`perf_events`, `ctimer` ...).
    `interval` is what one sample stands for (nanoseconds or bytes), 0 if it has no meaning. `totals` are the
    profile's sums by name. `attach_seconds` is the time of the attach, None without one; `resident_bytes`
    is the most memory that the process had, 0 if that is not known; `bytes_received` is the size of the
    profile on the wire; `times` is None if it is not known when samples were taken; `times_off` is then by
    how many seconds they were impossible, 0 if there were none. With `callers_unsure` functions that compiled
    Java code calls may be below wrong callers. `joined` is after how many seconds of the run the recording
    began, 0 if it began with the run. The process had lived `age` seconds then, and used `cpu_before` seconds
    of CPU time (None: unknown).
    """

    process: Process
    event: str
    engine: str
    source: str
    interval: Count
    samples: Samples
    seconds: Seconds
    cpu_seconds: Seconds = 0.0
    resident_bytes: Count = 0
    totals: Mapping[str, Count] = field(default_factory=dict)
    attach_seconds: Seconds | None = None
    bytes_received: Count | None = None
    times: SampleTimes | None = None
    times_off: Seconds = 0.0
    callers_unsure: bool = False
    joined: Seconds = 0.0
    age: Seconds | None = None
    cpu_before: Seconds | None = None

    @property
    def ended(self) -> float:
        """After how many seconds of the run the recording ended."""
        return self.joined + self.seconds

    def with_part(self, part: Recording) -> Recording:
        """What was recorded so far, and the next part of it."""
        names = {**self.totals, **part.totals}
        times = [one.times for one in (self, part) if one.times]
        start = min((one.start for one in times), default=0)
        return replace(
            self,
            interval=part.interval,
            samples=self.samples.plus(part.samples),
            seconds=self.seconds + part.seconds,
            cpu_seconds=self.cpu_seconds + part.cpu_seconds,
            resident_bytes=max(self.resident_bytes, part.resident_bytes),
            totals={name: self.totals.get(name, 0) + part.totals.get(name, 0) for name in names},
            bytes_received=(self.bytes_received or 0) + (part.bytes_received or 0),
            times=SampleTimes(start, max(one.width for one in times)) if times else None,
            times_off=max(self.times_off, part.times_off),
            callers_unsure=self.callers_unsure or part.callers_unsure,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def label(self) -> str:
        return self.process.label


class ClockReading(NamedTuple):
    """What a host's clock said between two local times, in seconds since 1970."""

    asked: float
    there: float
    answered: float


@dataclass(frozen=True)
class Clock:
    """How many seconds a host's clock is ahead of this machine's, and by how many that may be wrong."""

    offset: Annotated[float, Meta(ge=-1e12, le=1e12)]
    uncertainty: Seconds

    @classmethod
    def of(cls, readings: Iterable[ClockReading]) -> Clock:
        """By the reading with the shortest round trip. Clocks that may agree are taken to agree."""
        asked, there, answered = min(readings, key=lambda reading: reading.answered - reading.asked)
        offset = there - (asked + answered) / 2
        uncertainty = (answered - asked) / 2
        if abs(offset) <= uncertainty:
            return cls(0.0, uncertainty + abs(offset))
        return cls(offset, uncertainty)


@dataclass(frozen=True)
class Pauses:
    """When a process stood still for its garbage collectors.

    Each pause has the number of its collector, its end (microseconds since 1970, on this machine's clock)
    and its duration in microseconds. `left_out`: how many more there were.
    """

    pid: int
    collectors: tuple[str, ...]
    collector: Sequence[int]
    end: Sequence[int]
    duration: Sequence[int]
    left_out: Count = 0

    def with_more(self, later: Pauses) -> Pauses:
        """Both. If they are too many, the shorter half goes, but not the last one."""
        collector, end, duration = array("B", self.collector), array("Q", self.end), array("Q", self.duration)
        collector.extend(later.collector)
        end.extend(later.end)
        duration.extend(later.duration)
        left_out = _sum(self.left_out, later.left_out)
        if len(end) > MOST_PAUSES:
            by_length = sorted(range(len(end) - 1), key=duration.__getitem__)
            kept = sorted((*by_length[-MOST_PAUSES // 2 :], len(end) - 1))
            left_out = _sum(left_out, len(end) - len(kept))
            collector = array("B", map(collector.__getitem__, kept))
            end = array("Q", map(end.__getitem__, kept))
            duration = array("Q", map(duration.__getitem__, kept))
        return replace(self, collector=collector, end=end, duration=duration, left_out=left_out)


@dataclass(frozen=True)
class HostFacts:
    """The machine, as its agent describes it.

    A pid means the same process if `boot_id` and `pid_namespace` are equal. `load` is the number of runnable
    tasks (-1 if unknown), `memory_available` is in bytes.
    """

    name: Name
    arch: Name
    kernel: Name
    cpus: Annotated[int, Meta(ge=0, le=1 << 20)]
    memory_bytes: Count
    user: Name
    boot_id: Name = ""
    pid_namespace: Name = ""
    load: Annotated[float, Meta(ge=-1e9, le=1e9)] = -1.0
    memory_available: Count | None = None
