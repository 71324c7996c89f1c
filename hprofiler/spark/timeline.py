"""An application over time: how many tasks were active, and what they did, in cores.

Active tasks are exact: launch and end of every task are known. What a task did is known only as a sum; it is
spread evenly over the task's time (its run time's part of it), which every picture of it must say.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hprofiler.spark.application import Application, Stage

SPREAD = "spread evenly over each task's time"
MOST_BUCKETS = 2000
_NANOSECONDS = 1_000_000  # of a millisecond
PARTS = {
    "cpu": (("cpu_time", _NANOSECONDS), ("deserialize_cpu_time", _NANOSECONDS)),
    "gc": (("gc_time", 1),),
    "shuffle read": (("fetch_wait", 1),),
    "shuffle write": (("shuffle_write_time", _NANOSECONDS),),
    "deserialize": (("deserialize_time", 1),),
    "serialize": (("serialize_time", 1),),
    "run": (("run_time", 1),),
}
"""Each part's columns, and how many of their units are a millisecond. They overlap, and do not add up."""


@dataclass
class Timeline:
    """Buckets of `width` milliseconds from `start`.

    `active` are the average numbers of active tasks, `most` the highest at any moment of the bucket; `parts`
    are cores (seconds of it a second), by the names of PARTS.
    """

    start: int
    width: int
    active: list[float]
    most: list[int]
    parts: dict[str, list[float]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "bucketMilliseconds": self.width,
            "activeTasks": self.active,
            "mostActiveTasks": self.most,
            "cores": {_in_one_word(name): values for name, values in self.parts.items()},
            "coresAre": SPREAD,
        }


def _in_one_word(name: str) -> str:
    first, *others = name.split()
    return first + "".join(map(str.capitalize, others))


def timeline(
    application: Application, buckets: int = 200, since: int | None = None, until: int | None = None
) -> Timeline:
    """From the begin of the first stage to the end of the last one, or between two moments.

    Tasks without a launch are left out; those without an end last until their stage's, or the last event.
    """
    ran = [stage for stage in application.stages.values() if len(stage.tasks)]
    ends_of = {stage.key: stage.end or application.until for stage in ran}
    starts: list[int] = []
    ends: list[int] = []
    for stage in ran:
        launches = [launch for launch in stage.tasks.column("launch") if launch]
        if launches:
            starts += [min(launches), stage.start or min(launches)]
            finishes = stage.tasks.column("finish")
            ends += [max(launches), max(finish or ends_of[stage.key] for finish in finishes), stage.end]
    if not starts:
        return Timeline(application.start, 1, [], [], {name: [] for name in PARTS})
    start = min(starts) if since is None else since
    end = max(start, max(ends) if until is None else until)
    width = max(1, -(-(end - start) // max(1, min(buckets, MOST_BUCKETS))))
    count = (end - start) // width + 1
    spread = _Spread(start, width, count, 1 + len(PARTS))
    for stage in ran:
        _add_stage(spread, stage, ends_of[stage.key], start, end)
    active, *parts = spread.averages()
    moments = [(array("q"), array("q")) for _ in range(count)]
    for stage in ran:
        for launch, finish in stage.tasks.columns("launch", "finish"):
            ended = max(launch, finish or ends_of[stage.key])
            if launch and launch <= end and ended >= start:
                moments[max(0, launch - start) // width][0].append(launch)
                moments[(min(ended, end) - start) // width][1].append(ended)
    most = _most(moments, start, width)
    return Timeline(start, width, active, most, dict(zip(PARTS, parts, strict=True)))


class _Spread:
    """Sums over buckets of quantities that last from one moment to another at an even rate."""

    def __init__(self, start: int, width: int, count: int, quantities: int) -> None:
        self._start, self._width = start, width
        # What lasts for whole buckets is added where it begins and taken away where it ends.
        self._rates = [[0.0] * (count + 1) for _ in range(quantities)]
        self._parts = [[0.0] * (count + 1) for _ in range(quantities)]

    def add(self, since: int, until: int, amounts: Iterable[float]) -> None:
        """`amounts` in all, from one millisecond to another."""
        width = self._width
        first, into = divmod(since - self._start, width)
        last, out = divmod(until - self._start, width)
        length = until - since
        for number, amount in enumerate(amounts):
            if not amount:
                continue
            if first == last or not length:
                self._parts[number][first] += amount
                continue
            rate = amount / length
            self._parts[number][first] += rate * (width - into)
            self._parts[number][last] += rate * out
            self._rates[number][first + 1] += rate
            self._rates[number][last] -= rate

    def averages(self) -> list[list[float]]:
        found = []
        for rates, parts in zip(self._rates, self._parts, strict=True):
            rate, averages = 0.0, []
            for change, part in zip(rates[:-1], parts[:-1], strict=True):
                rate += change
                averages.append(round(max(0.0, rate + part / self._width), 6))
            found.append(averages)
        return found


def _add_stage(spread: _Spread, stage: Stage, until: int, start: int, end: int) -> None:
    """What its tasks did between `start` and `end`; `until` is the end of tasks that have none."""
    columns = [(number, pair) for number, pairs in enumerate(PARTS.values()) for pair in pairs]
    times = stage.tasks.columns("launch", "finish", *(name for _, (name, _) in columns))
    for launch, finish, *values in times:
        ended = max(launch, finish or until)
        if not launch or launch > end or ended < start:
            continue
        first, last = max(launch, start), min(ended, end)
        part = (last - first) / (ended - launch) if ended > launch else 1.0
        amounts = [0.0] * (1 + len(PARTS))
        amounts[0] = float(last - first)
        for (number, (_, unit)), value in zip(columns, values, strict=True):
            amounts[number + 1] += part * value / unit
        spread.add(first, last, amounts)


_Moments = tuple["array[int]", "array[int]"]


def _most(moments: Sequence[_Moments], start: int, width: int) -> list[int]:
    """The most tasks at one moment, by bucket. A task that ends when another begins made room for it."""
    most, active = [], 0
    for number, (launches, ends) in enumerate(moments):
        begin = start + number * width
        ended = sorted(ends, reverse=True)
        while ended and ended[-1] <= begin:
            ended.pop()
            active -= 1
        highest = active
        for launch in sorted(launches):
            while ended and ended[-1] <= launch:
                ended.pop()
                active -= 1
            active += 1
            highest = max(highest, active)
        active -= len(ended)
        most.append(highest)
    return most
