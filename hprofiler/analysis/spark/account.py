"""Where an application's time went: an account from its start to its end, each millisecond in one part.

A moment is, by what is true first:

- `no-stage`: no stage was open and no task ran. The driver worked alone, or waited: for the first executor,
  if that came before the first stage; before the first stage, between stages, after the last one.
- `no-executor`: a stage was open, but no slot was there.
- `narrow`: a stage was open, and fewer than a quarter of the slots had a task: none; only tasks that would
  have ended before, had none failed (`retries`); the only task of a stage; all tasks of a stage, as it has no
  more; the last tasks of a stage, after each had begun once; or few of a stage that has more to launch.
- `work`: everything else. It is divided by what the stages' tasks did, spread evenly over their time.

Where several stages are open, a moment belongs to the one with most tasks running; if no task runs, to the
one that was opened first. Those that work at the same time share it by their tasks. So a stage that waits
while others have the slots has no part of that time.

The time of tasks is divided in this order, so that nothing counts twice: tasks that failed, were killed or
ran again (`repeated`, whole); of others delay of the scheduler, deserialization, results (serialized and
fetched); then of their run time CPU, waits for shuffle blocks, garbage collection, shuffle writes, Python
workers, each as far as what is left; the rest is `other`: what Spark does not time, as input, output, spills
and locks. Where Spark counted nothing, all is `other`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress, repeat
from statistics import median

from hprofiler.analysis.spark.sweep import NARROW, NO_STAGE, Gap, Late, Sweep, number_of_tasks
from hprofiler.spark.application import SUCCESS, Application
from hprofiler.spark.replay.schedule import Replay, ReplayStage

GROUPS = {
    "no-stage": NO_STAGE,
    "no-executor": ("no-executor",),
    "narrow": NARROW,
    "work": (
        "cpu",
        "fetch",
        "gc",
        "shuffle-write",
        "python",
        "deserialize",
        "results",
        "scheduler",
        "repeated",
        "other",
    ),
}
"""The parts of each group."""
_SHOWN = 5
_EVEN = 1.5
"""Tasks that take at most so much longer than the median take about equally long."""
_SUMS = (
    "duration",
    "scheduler_delay",
    "deserialize_time",
    "serialize_time",
    "getting",
    "run_time",
    "cpu_time",
    "fetch_wait",
    "gc_time",
    "shuffle_write_time",
    "python_time",
)
_NANOSECONDS = 1_000_000  # of a millisecond


@dataclass(frozen=True)
class StageTime:
    """A stage with all its attempts, and how long it lasted in a part of the account. `tasks` is the number
    of its tasks, `slots` the most that there were at that time. `is_even`: no task took much longer than
    their median."""

    stage: int
    attempts: tuple[int, ...]
    time: int
    tasks: int = 0
    slots: int = 0
    is_even: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the account, one of GROUPS' values. `stages` and `gaps` are the longest of the `count` that
    it consists of, `in_queries` is for how long of it a SQL execution ran."""

    code: str
    time: int
    count: int = 0
    stages: tuple[StageTime, ...] = ()
    gaps: tuple[Gap, ...] = ()
    in_queries: int = 0


@dataclass(frozen=True)
class Account:
    """Milliseconds; `parts` add up to `total` and are in the order of GROUPS.

    `of_stages` is the time of each stage, by its place in the replay, without its waits for an executor;
    `work` is that of it with tasks on a quarter of the slots or more; `shares` divide the time of its tasks
    (see `did`). `slot_time` is that of all slots together, `idle` the part of it in which they had no task,
    by group. `late` is the part of the work in which tasks waited for slots that came later.
    """

    start: int
    total: int
    parts: tuple[Part, ...]
    of_stages: Sequence[int]
    work: Sequence[int]
    shares: Sequence[float]
    slot_time: int
    idle: Mapping[str, int]
    late: Late

    def did(self, place: int) -> dict[str, float]:
        """What the tasks of a stage did, as shares of their time: the parts of the group `work` that are not
        0."""
        codes = GROUPS["work"]
        shares = self.shares[place * len(codes) : (place + 1) * len(codes)]
        return {code: share for code, share in zip(codes, shares, strict=True) if share}

    def group(self, name: str) -> int:
        return sum(part.time for part in self.parts if part.code in GROUPS[name])

    def part(self, code: str) -> Part:
        return next(part for part in self.parts if part.code == code)

    def share(self, time: float) -> float:
        return time / self.total if self.total else 0.0


def account(application: Application, replay: Replay) -> Account:
    start, end = _bounds(application, replay.stages)
    sweep = Sweep(application, replay, start, end)
    shares = array("d")
    for stage in replay.stages:
        shares.extend(map(_did(stage).get, GROUPS["work"], repeat(0.0)))
    work = sweep.of_stage["work"]
    at_work = [times for code, times in sweep.of_stage.items() if code != "no-executor"]
    of_stages = [sum(times) for times in zip(*at_work, strict=True)]
    parts: dict[str, Part] = {code: Part(code, 0) for codes in GROUPS.values() for code in codes}
    for code, gaps in sweep.gaps.items():
        parts[code] = Part(code, gaps.time, gaps.count, gaps=tuple(gaps.longest), in_queries=gaps.in_queries)
    for code in ("no-executor", *NARROW):
        times = sweep.of_stage[code]
        parts[code] = _of_stages(code, sum(times), replay.stages, times, sweep.slots_of)
    for code, time, by_stage in _work_parts(work, shares):
        parts[code] = _of_stages(code, time, replay.stages, by_stage, sweep.slots_of)
    return Account(
        start,
        end - start,
        tuple(parts.values()),
        of_stages,
        work,
        shares,
        sweep.slot_time,
        sweep.idle,
        sweep.late,
    )


def _bounds(application: Application, stages: Sequence[ReplayStage]) -> tuple[int, int]:
    """From the application's start to its end, or as far as is known. The end may be before the start, if the
    driver's clock was set back in between; then it is the newest moment that is known."""
    start = application.start or min((stage.start for stage in stages if stage.start), default=0)
    newest = max(application.last_event, *(stage.end for stage in stages), 0)
    end = application.end if application.end > start else newest
    return start, max(start, end)


def _did(stage: ReplayStage) -> Mapping[str, float]:
    """What the stage's tasks did, as shares of their time."""
    whole, sums = 0, [0] * len(_SUMS)
    for attempt in stage.attempts:
        for status, *columns in attempt.tasks.parts("status", *_SUMS):
            whole += sum(columns[0])
            is_good = [one == SUCCESS for one in status]
            for number, values in enumerate(columns):
                sums[number] += sum(values) if all(is_good) else sum(compress(values, is_good))
    good, kept = sums[0], sum(stage.duration)
    whole = max(whole, kept)
    if whole <= 0:
        return {"other": 1.0}
    times = _divided(dict(zip(_SUMS, sums, strict=True)))
    scale = kept / whole / good if good > 0 else 0.0
    shares = {code: time * scale for code, time in times.items()}
    shares["repeated"] = 1 - kept / whole
    shares["other"] = max(0.0, 1 - sum(shares.values()))
    return {code: share for code, share in shares.items() if share}


def _divided(sums: Mapping[str, int]) -> dict[str, float]:
    """The time of tasks by what they did, in milliseconds, without `other`."""
    left = float(max(0, sums["duration"]))

    def taken(time: float) -> float:
        nonlocal left
        part = min(left, max(0.0, time))
        left -= part
        return part

    found = {
        "scheduler": taken(sums["scheduler_delay"]),
        "deserialize": taken(sums["deserialize_time"]),
        "results": taken(sums["serialize_time"] + sums["getting"]),
    }
    left = min(left, max(0, sums["run_time"]))
    found["cpu"] = taken(sums["cpu_time"] / _NANOSECONDS)
    found["fetch"] = taken(sums["fetch_wait"])
    found["gc"] = taken(sums["gc_time"])
    found["shuffle-write"] = taken(sums["shuffle_write_time"] / _NANOSECONDS)
    found["python"] = taken(sums["python_time"])
    return found


def _work_parts(work: Sequence[int], shares: Sequence[float]) -> Iterator[tuple[str, int, Sequence[int]]]:
    """The time at work by what tasks did, in all and by stage. Fractions of milliseconds that are left when
    they are rounded down go to the largest."""
    codes = GROUPS["work"]
    by_code, exact = {}, {}
    for number, code in enumerate(codes):
        times_of = [time * share for time, share in zip(work, shares[number :: len(codes)], strict=True)]
        by_code[code], exact[code] = array("q", map(int, times_of)), sum(times_of)
    times = {code: int(time) for code, time in exact.items()}
    times[max(times, key=times.__getitem__)] += sum(work) - sum(times.values())
    for code, time in times.items():
        yield code, time, by_code[code]


def _of_stages(
    code: str, time: int, stages: Sequence[ReplayStage], times: Sequence[int], slots: Sequence[int]
) -> Part:
    longest = nlargest(_SHOWN, filter(times.__getitem__, range(len(times))), key=times.__getitem__)
    found = (
        StageTime(
            stages[one].id,
            stages[one].attempt_numbers,
            times[one],
            number_of_tasks(stages[one]),
            slots[one],
            code == "tail" and _is_even(stages[one]),
        )
        for one in longest
    )
    return Part(code, time, sum(map(bool, times)), tuple(found))


def _is_even(stage: ReplayStage) -> bool:
    return bool(stage.duration) and max(stage.duration) <= _EVEN * median(stage.duration)
