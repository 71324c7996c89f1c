"""Which stage ran in an executor at which time, from the launch and finish times of its tasks.

A task's thread works between the moments when the driver launched the task and heard of its end. So a sample
of a task's thread belongs to a stage for certain, if no task of another stage was in the executor at that
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hprofiler.base.text import some
from hprofiler.spark.facts import SparkFacts

SEVERAL = "several stages"
"""The slice of samples taken while tasks of several stages were in the executor."""
_UNKNOWN_CLOCK = 0.1  # seconds by which clocks of a cluster usually agree; nothing is certain then
_MILLISECOND = 1000
_LAST_BUCKET = (1 << 32) - 1


@dataclass(frozen=True)
class Assignment:
    """Parts of a recording's time: half-open ranges of buckets, in order and apart, each with the number of
    its slice, counted from 1. `slices` are names, and whether their samples are certain."""

    slices: tuple[tuple[str, bool], ...]
    ranges: tuple[tuple[int, int, int], ...]


def stage_name(stage: int, attempt: int) -> str:
    """The name of a stage's slice, such as `stage 3.0`."""
    return f"stage {stage}.{attempt}"


def whole_stage_name(stage: int, attempts: Sequence[int]) -> str:
    """The name of a stage with all its attempts, such as `stage 3.0` or `stage 3 (attempts 0, 1)`."""
    if len(attempts) == 1:
        return stage_name(stage, attempts[0])
    return f"stage {stage} (attempts {some(list(map(str, attempts)), 4)})"


def assignment(facts: SparkFacts, executor: str, start: int, width: int, uncertainty: float) -> Assignment:
    """The stages of an executor by buckets that begin at `start` and are `width` long, in microseconds.

    `start` is on the coordinator's clock, off by at most `uncertainty` seconds. The doubt of the driver's
    clock is added to that; at the edges of tasks it makes a stage likely.
    """
    tasks = facts.tasks.get(executor)
    if tasks is None:
        return Assignment((), ())
    ahead = facts.clock.offset if facts.clock else 0.0
    doubt = round((uncertainty + (facts.clock.uncertainty if facts.clock else _UNKNOWN_CLOCK)) * 1e6)
    zero = start + round(ahead * 1e6)
    changes: list[tuple[int, bool, str, int]] = []
    for _, stage, attempt, launch, finish, _ in tasks.rows():
        name = stage_name(stage, attempt)
        # Milliseconds are cut off, not rounded.
        from_, to = launch * 1000 - zero, ((finish or facts.until) + 1) * _MILLISECOND - zero
        for exact, edge in ((True, 0), (False, doubt)):
            first, last = (from_ - edge) // width, -((-to - edge) // width)
            if first < last and last > 0:
                changes += [(max(0, first), exact, name, 1), (min(last, _LAST_BUCKET), exact, name, -1)]
    return _assigned(changes, facts.clock is not None)


def _assigned(changes: list[tuple[int, bool, str, int]], clock_known: bool) -> Assignment:
    changes.sort(key=lambda change: change[0])
    near: dict[str, int] = {}
    there: dict[str, int] = {}
    numbers: dict[tuple[str, bool], int] = {}
    ranges: list[tuple[int, int, int]] = []
    begin, place = 0, 0
    while place < len(changes):
        bucket = changes[place][0]
        found = _slice(near, there, clock_known)
        if found is not None and begin < bucket:
            number = numbers.setdefault(found, len(numbers) + 1)
            if ranges and ranges[-1][1:] == (begin, number):
                begin = ranges.pop()[0]
            ranges.append((begin, bucket, number))
        while place < len(changes) and changes[place][0] == bucket:
            _, exact, name, by = changes[place]
            _count(there if exact else near, name, by)
            place += 1
        begin = bucket
    return Assignment(tuple(numbers), tuple(ranges))


def _count(counts: dict[str, int], name: str, by: int) -> None:
    now = counts.get(name, 0) + by
    if now:
        counts[name] = now
    else:
        counts.pop(name, None)


def _slice(near: Mapping[str, int], there: Mapping[str, int], clock_known: bool) -> tuple[str, bool] | None:
    """The slice of samples of task threads: `there` are stages whose tasks ran, `near` those whose tasks may
    have."""
    if not near:
        return None
    if len(near) == 1:
        (name,) = near
        return name, clock_known and name in there
    if len(there) == 1:
        (name,) = there
        return name, False
    return SEVERAL, False


@dataclass(frozen=True)
class StageTime:
    """What Spark says of a stage's tasks in the recorded time of executors: their seconds, CPU seconds by its
    own count, and the part of the tasks' time for which that is known."""

    time: float
    cpu: float
    known: float


def stage_times(facts: SparkFacts, recorded: Iterable[tuple[str, int, int]]) -> dict[str, StageTime]:
    """Of each stage, by the name of its slice. `recorded` are executors with the time of their recordings, in
    microseconds on the coordinator's clock. CPU time of a task that is only partly in there is in
    proportion."""
    ahead = round(facts.clock.offset * 1e6) if facts.clock else 0
    cpu: dict[str, float] = {}
    known: dict[str, float] = {}
    whole: dict[str, float] = {}
    for executor, since, until in recorded:
        tasks = facts.tasks.get(executor)
        for _, stage, attempt, launch, finish, used in tasks.rows() if tasks else ():
            from_, to = launch * 1000 - ahead, (finish or facts.until) * 1000 - ahead
            inside = min(to, until) - max(from_, since)
            if inside <= 0:
                continue
            name = stage_name(stage, attempt)
            whole[name] = whole.get(name, 0.0) + inside
            if finish and used:
                known[name] = known.get(name, 0.0) + inside
                cpu[name] = cpu.get(name, 0.0) + used / 1e9 * inside / (to - from_)
    return {
        name: StageTime(time / 1e6, cpu.get(name, 0.0), known.get(name, 0.0) / time)
        for name, time in whole.items()
    }
