"""Where an application's time went: an account from its start to its end, each millisecond in one part.

A moment is, by what is true first:

- `no-stage`: no stage was open and no task ran. The driver worked alone, or waited: for the first executor,
  if that came before the first stage; before the first stage, between stages, after the last one.
- `no-executor`: a stage was open, but no slot was there.
- `narrow`: a stage was open, and fewer than a quarter of the slots had a task: none; the only task of a
  stage; all tasks of a stage, as it has no more; the last tasks of a stage, after each had begun once; or few
  of a stage that has more to launch.
- `work`: everything else. It is divided by what the stages' tasks did, spread evenly over their time.

Where several stages are open, a moment belongs to the one with most tasks running, else to the one that was
opened first. So a stage that waits while others have the slots has no part of that time.

The time of tasks is divided in this order, so that nothing counts twice: tasks that failed, were killed or
ran again (`repeated`, whole); of others delay of the scheduler, deserialization, results (serialized and
fetched); then of their run time CPU, waits for shuffle blocks, garbage collection, shuffle writes, Python
workers, each as far as what is left; the rest is `other`: what Spark does not time, as input, output, spills
and locks. Where Spark counted nothing, all is `other`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress, repeat

from hprofiler.spark.application import DRIVERS, SUCCESS, Application
from hprofiler.spark.replay.schedule import Replay, ReplayStage

GROUPS = {
    "no-stage": ("before-first-executor", "before-first-stage", "between-stages", "after-last-stage"),
    "no-executor": ("no-executor",),
    "narrow": ("no-task", "one-task", "few-tasks", "tail", "slow-launch"),
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
_BY_STAGE = ("no-executor", *GROUPS["narrow"], "work")
_FEW = 4
"""Fewer tasks than a quarter of the slots are few."""
_SHOWN = 5
_BITS = 20
"""Of a number that stands for the begin or end of a task: which of the open stages it belongs to."""
_MASK = (1 << _BITS) - 1
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
class Gap:
    """A time without any stage, in milliseconds. `before` and `after` are the stages around it as (id,
    attempt), None at an end. `query` is the SQL execution that ran for most of it, if it ran for half."""

    start: int
    end: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    query: int | None

    @property
    def time(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class StageTime:
    """A stage with all its attempts, and how long it lasted in a part of the account. `tasks` is the number
    of its tasks, `slots` the most that there were at that time."""

    stage: int
    attempts: tuple[int, ...]
    time: int
    tasks: int = 0
    slots: int = 0


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
    by group.
    """

    start: int
    total: int
    parts: tuple[Part, ...]
    of_stages: Sequence[int]
    work: Sequence[int]
    shares: Sequence[float]
    slot_time: int
    idle: Mapping[str, int]

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
    sweep = _Sweep(application, replay, start, end)
    sweep.run()
    shares = array("d")
    for stage in replay.stages:
        shares.extend(map(_did(stage).get, GROUPS["work"], repeat(0.0)))
    work = sweep.of_stage["work"]
    at_work = [times for code, times in sweep.of_stage.items() if code != "no-executor"]
    of_stages = [sum(times) for times in zip(*at_work, strict=True)]
    parts: dict[str, Part] = {code: Part(code, 0) for codes in GROUPS.values() for code in codes}
    for code, gaps in sweep.gaps.items():
        parts[code] = Part(code, gaps.time, gaps.count, gaps=gaps.longest, in_queries=gaps.in_queries)
    for code in ("no-executor", *GROUPS["narrow"]):
        times = sweep.of_stage[code]
        parts[code] = _of_stages(code, sum(times), replay.stages, times, sweep.slots_of)
    for code, time, by_stage in _work_parts(work, shares):
        parts[code] = _of_stages(code, time, replay.stages, by_stage, sweep.slots_of)
    return Account(
        start, end - start, tuple(parts.values()), of_stages, work, shares, sweep.slot_time, sweep.idle
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
        StageTime(stages[one].id, stages[one].attempt_numbers, times[one], _tasks(stages[one]), slots[one])
        for one in longest
    )
    return Part(code, time, sum(map(bool, times)), tuple(found))


def _tasks(stage: ReplayStage) -> int:
    return max(one.num_tasks or len(one.tasks) for one in stage.attempts)


class _Gaps:
    """The times without a stage of one part."""

    def __init__(self) -> None:
        self.time = self.count = self.in_queries = 0
        self._longest: list[Gap] = []

    def add(self, gap: Gap, in_queries: int) -> None:
        self.time += gap.time
        self.count += 1
        self.in_queries += in_queries
        if len(self._longest) < _SHOWN or gap.time > self._longest[-1].time:
            self._longest = sorted((*self._longest, gap), key=lambda one: -one.time)[:_SHOWN]

    @property
    def longest(self) -> tuple[Gap, ...]:
        return tuple(self._longest)


_OPENS, _CLOSES, _SLOTS, _QUERY_STARTS, _QUERY_ENDS = range(5)


class _Sweep:
    """A walk over the application's time from boundary to boundary.

    Rough boundaries are those of stages, queries and slots. Tasks are read stage by stage, when the first
    of them can have begun, and only until the last of them has ended.
    """

    def __init__(self, application: Application, replay: Replay, start: int, end: int) -> None:
        self._application, self._stages = application, replay.stages
        self._start, self._end = start, end
        count = len(self._stages)
        self.of_stage = {code: array("q", bytes(8 * count)) for code in _BY_STAGE}
        self.slots_of = array("q", bytes(8 * count))
        self.gaps = {code: _Gaps() for code in GROUPS["no-stage"]}
        self.slot_time = 0
        self.idle = dict.fromkeys(GROUPS, 0)
        self._tasks = [_tasks(stage) for stage in self._stages]
        self._last_launch = [0] * count
        self._marks = sorted(_marks(application, replay, start, end))
        opened = [mark[0] for mark in self._marks if mark[1] == _OPENS]
        self._first = min(opened, default=end)
        apart = (one for one in application.workers if one.id not in DRIVERS)
        added = min((one.added for one in apart if one.added), default=0)
        self._first_executor = added if start < added < self._first else start
        self._now = start
        self._slots = 0
        self._open: dict[tuple[int, int], int] = {}
        self._running: dict[int, int] = {}
        self._total = 0
        self._queries: dict[int, None] = {}
        self._gap_start = start
        self._gap_queries: dict[int, int] = {}
        self._before: tuple[int, int] | None = None

    def run(self) -> None:
        waiting = sorted(range(len(self._stages)), key=lambda number: -_begin(self._stages[number]))
        live: list[_Tasks] = []
        for moment, what, key, number in [*self._marks, (self._end, _CLOSES, (-1, -1), -1)]:
            while waiting and _begin(self._stages[waiting[-1]]) < moment:
                tasks = _Tasks(self._stages[waiting[-1]], waiting.pop(), self._application.until or self._end)
                self._last_launch[tasks.number] = tasks.last_launch
                live.append(tasks)
            self._run_tasks(live, moment)
            live = [one for one in live if one.left]
            self._advance(moment)
            self._take(what, key, number)

    def _run_tasks(self, live: Sequence[_Tasks], until: int) -> None:
        """Walk over the begins and ends of tasks before a moment."""
        events: list[int] = []
        for place, tasks in enumerate(live):
            events += tasks.events(place, until)
        events.sort()
        running = self._running
        for event in events:
            moment = event >> (_BITS + 1)
            if moment > self._now:
                self._advance(moment)
            number = live[event >> 1 & _MASK].number
            if event & 1:
                if not self._total and not self._open:
                    self._close_gap(self._stages[number])
                running[number] = running.get(number, 0) + 1
                self._total += 1
            else:
                self._total -= 1
                running[number] -= 1
                if not running[number]:
                    del running[number]
                if not self._total and not self._open:
                    self._open_gap(self._stages[number])

    def _advance(self, moment: int) -> None:
        """All is as it is until a moment."""
        since, until = max(self._now, self._start), min(moment, self._end)
        self._now = max(self._now, moment)
        time = until - since
        if time <= 0:
            return
        total, slots = self._total, self._slots
        if total:
            running = self._running
            number = next(iter(running)) if len(running) == 1 else max(running, key=running.__getitem__)
            code = self._width(number, total, slots, since)
        elif self._open:
            number = next(iter(self._open.values()))
            code = "no-task" if slots > 0 else "no-executor"
        else:
            if self._queries:
                query = next(reversed(self._queries))
                self._gap_queries[query] = self._gap_queries.get(query, 0) + time
            self._count_slots("no-stage", slots, 0, time)
            return
        self.of_stage[code][number] += time
        self.slots_of[number] = max(self.slots_of[number], slots)
        group = code if code in ("work", "no-executor") else "narrow"
        self._count_slots(group, slots, total, time)

    def _count_slots(self, group: str, slots: int, total: int, time: int) -> None:
        self.slot_time += max(0, slots) * time
        self.idle[group] += max(0, slots - total) * time

    def _width(self, number: int, total: int, slots: int, since: int) -> str:
        if total * _FEW >= slots:
            return "work"
        if self._tasks[number] <= 1:
            return "one-task"
        if self._tasks[number] * _FEW < slots:
            return "few-tasks"
        return "tail" if since >= self._last_launch[number] else "slow-launch"

    def _take(self, what: int, key: tuple[int, int], number: int) -> None:
        if what == _OPENS:
            if not self._total and not self._open:
                self._close_gap(self._stages[number], key)
            self._open[key] = number
        elif what == _CLOSES:
            if key in self._open:
                del self._open[key]
                if not self._total and not self._open:
                    self._open_gap(self._stages[number], key)
            elif number < 0 and not self._total and not self._open:
                self._close_gap(None)
        elif what == _SLOTS:
            self._slots += number
        elif what == _QUERY_STARTS:
            self._queries[number] = None
        else:
            self._queries.pop(number, None)

    def _open_gap(self, stage: ReplayStage, key: tuple[int, int] | None = None) -> None:
        self._before = key or (stage.id, stage.attempts[-1].attempt)
        self._gap_start = self._now
        self._gap_queries = {}

    def _close_gap(self, stage: ReplayStage | None, key: tuple[int, int] | None = None) -> None:
        start, end = max(self._gap_start, self._start), min(self._now, self._end)
        if end <= start:
            return
        after = key or (stage and (stage.id, stage.attempts[0].attempt)) or None
        if self._before is None and after is not None:
            executor = min(end, self._first_executor)
            if executor > start:
                self.gaps["before-first-executor"].add(Gap(start, executor, None, None, None), 0)
                start = executor
        code = "between-stages"
        if self._before is None:
            code = "before-first-stage"
        elif after is None:
            code = "after-last-stage"
        if end > start:
            in_queries = min(end - start, sum(self._gap_queries.values()))
            gap = Gap(start, end, self._before, after, self._query(end - start))
            self.gaps[code].add(gap, in_queries)

    def _query(self, time: int) -> int | None:
        """The root of the query that ran for most of a gap, if it did for half of its time."""
        queries, known = self._gap_queries, self._application.sql
        most = max(queries, key=queries.__getitem__, default=None)
        if most is None or 2 * queries[most] < time:
            return None
        return known[most].root if known[most].root in known else most


class _Tasks:
    """When the tasks of a stage began and ended, those that failed, too; each sorted. `last_launch` is when
    the last of them began for the first time."""

    def __init__(self, stage: ReplayStage, number: int, until: int) -> None:
        self.number = number
        launches, ends = array("q"), array("q")
        self.last_launch = 0
        for attempt in stage.attempts:
            last = attempt.end or until
            for launch, finish, again in attempt.tasks.columns("launch", "finish", "attempt"):
                end = finish or last
                if launch and end > launch:
                    launches.append(launch)
                    ends.append(end)
                    if not again and launch > self.last_launch:
                        self.last_launch = launch
        self._launches, self._ends = array("q", sorted(launches)), array("q", sorted(ends))
        self._launched = self._ended = 0

    @property
    def left(self) -> bool:
        return self._ended < len(self._ends)

    def events(self, place: int, until: int) -> Iterable[int]:
        """Begins and ends before a moment that were not asked for yet, as numbers that sort by time; an end
        sorts before a begin."""
        first, last = self._launched, bisect_left(self._launches, until, self._launched)
        self._launched = last
        code = place << 1 | 1
        found = [one << (_BITS + 1) | code for one in self._launches[first:last]]
        first, last = self._ended, bisect_left(self._ends, until, self._ended)
        self._ended = last
        code = place << 1
        found += [one << (_BITS + 1) | code for one in self._ends[first:last]]
        return found


def _begin(stage: ReplayStage) -> int:
    return min(filter(None, (stage.start, stage.first_launch)), default=0)


_Mark = tuple[int, int, tuple[int, int], int]


def _marks(application: Application, replay: Replay, start: int, end: int) -> Iterator[_Mark]:
    """Moments at which stages open and close, slots come and go, and queries start and end."""
    for number, stage in enumerate(replay.stages):
        for one in stage.attempts:
            if one.start and one.start < end:
                yield max(start, one.start), _OPENS, one.key, number
                yield min(end, max(one.start, one.end or end, start)), _CLOSES, one.key, number
    for moment, change in replay.slots.changes:
        yield max(start, min(moment, end)), _SLOTS, (0, 0), change
    for query in application.sql.values():
        if query.start and query.start < end:
            yield max(start, query.start), _QUERY_STARTS, (0, 0), query.id
            yield min(end, max(start, query.start, query.end or end)), _QUERY_ENDS, (0, 0), query.id
