"""A walk over an application's time, from its start to its end: to which stage each moment belongs, and
whether few or many tasks ran; or that no stage was there. What the parts mean, `account` says.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

from hprofiler.spark.application import DRIVERS, FAILED, RUNNING, SUCCESS, Application
from hprofiler.spark.replay.schedule import Replay, ReplayStage

NO_STAGE = ("before-first-executor", "before-first-stage", "between-stages", "after-last-stage")
NARROW = ("no-task", "one-task", "few-tasks", "tail", "retries", "slow-launch")
_BY_STAGE = ("no-executor", *NARROW, "work")
_FEW = 4
"""Fewer tasks than a quarter of the slots are few."""
_FULL = 0.75
"""Between two tasks a slot is free for some milliseconds."""
LONGEST_GAPS = 5
_BITS = 22
"""Of a number that stands for the begin or end of a task: which stage it belongs to, and what it is."""
_STAGE = (1 << _BITS - 2) - 1
_ENDS, _BEGINS, _ENDS_AGAIN, _BEGINS_AGAIN = range(4)
_OPENS, _CLOSES, _SLOTS, _LATER_SLOTS, _QUERY_STARTS, _QUERY_ENDS = range(6)
_Mark = tuple[int, int, tuple[int, int], int]


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


class Gaps:
    """The times without a stage of one part: their sum and count, for how long of them a SQL execution ran,
    and the longest ones."""

    def __init__(self) -> None:
        self.time = self.count = self.in_queries = 0
        self.longest: list[Gap] = []

    def add(self, gap: Gap, in_queries: int) -> None:
        self.time += gap.time
        self.count += 1
        self.in_queries += in_queries
        if len(self.longest) < LONGEST_GAPS or gap.time > self.longest[-1].time:
            self.longest = sorted((*self.longest, gap), key=lambda one: -one.time)[:LONGEST_GAPS]


@dataclass
class Late:
    """How long tasks waited for slots that came later; the time of all slots that there were meanwhile; and
    how many there were in the end."""

    time: int = 0
    slot_time: int = 0
    most: int = 0


class Sweep:
    """What the walk finds, in milliseconds: `of_stage` by part and by the stage's place in the replay, and
    `gaps` by part. `slots_of` are the most slots that each stage had, `slot_time` is that of all slots, and
    `idle` that of slots without a task, by group; `late` is of slots that came late."""

    def __init__(self, application: Application, replay: Replay, start: int, end: int) -> None:
        self._application, self._stages = application, replay.stages
        self._start, self._end = start, end
        count = len(self._stages)
        self.of_stage = {code: array("q", bytes(8 * count)) for code in _BY_STAGE}
        self.slots_of = array("q", bytes(8 * count))
        self.gaps = {code: Gaps() for code in NO_STAGE}
        self.slot_time = 0
        self.idle = dict.fromkeys(("no-stage", "no-executor", "narrow", "work"), 0)
        self.late = Late()
        self._counts = [number_of_tasks(stage) for stage in self._stages]
        marks = sorted(_marks(application, replay, start, end))
        self._first = min((mark[0] for mark in marks if mark[1] == _OPENS), default=end)
        apart = (one for one in application.workers if one.id not in DRIVERS)
        added = min((one.added for one in apart if one.added), default=0)
        self._first_executor = added if start < added < self._first else start
        self._now = start
        self._slots = self._later_slots = 0
        self._open: dict[tuple[int, int], int] = {}
        self._running = _Running(count)
        self._queries: dict[int, None] = {}
        self._gap_start = start
        self._gap_queries: dict[int, int] = {}
        self._before: tuple[int, int] | None = None
        self._tasks = _Tasks(self._stages, application.until or end)
        self._work = 0
        for mark in (*marks, (end, _CLOSES, (-1, -1), -1)):
            self._run_tasks(mark[0])
            self._advance(mark[0])
            self._take(*mark)
        self.of_stage["work"] = self._running.worked(self._work)

    def _run_tasks(self, until: int) -> None:
        """Walk over the begins and ends of tasks before a moment."""
        running, now = self._running, self._now
        for event in self._tasks.before(until):
            moment, number, what = event >> _BITS, event >> 2 & _STAGE, event & 3
            if moment > now:
                self._advance(moment)
                now = moment
            if what == _BEGINS:
                if not running.total and not self._open:
                    self._close_gap(self._stages[number])
                running.begin(number)
            elif what == _ENDS:
                running.end(number)
                if not running.total and not self._open:
                    self._open_gap(self._stages[number])
            else:
                running.again[number] += 1 if what == _BEGINS_AGAIN else -1

    def _advance(self, moment: int) -> None:
        """All is as it is until a moment."""
        since, until = max(self._now, self._start), min(moment, self._end)
        self._now = max(self._now, moment)
        time = until - since
        if time <= 0:
            return
        total, slots = self._running.total, self._slots
        if total:
            number = self._running.widest()
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
        if code == "work" and slots < self._later_slots and since < self._tasks.newest_launch:
            self._count_late(slots, total, time)
        if code == "work":
            self._running.work(time)
            self._work += time
        else:
            self.of_stage[code][number] += time
        self.slots_of[number] = max(self.slots_of[number], slots)
        group = code if code in ("work", "no-executor") else "narrow"
        self._count_slots(group, slots, total, time)

    def _count_slots(self, group: str, slots: int, total: int, time: int) -> None:
        self.slot_time += max(0, slots) * time
        self.idle[group] += max(0, slots - total) * time

    def _count_late(self, slots: int, total: int, time: int) -> None:
        if total >= _FULL * slots:
            self.late.time += time
            self.late.slot_time += slots * time
            self.late.most = max(self.late.most, self._later_slots)

    def _width(self, number: int, total: int, slots: int, since: int) -> str:
        if total * _FEW >= slots:
            return "work"
        if self._running.only_again(number):
            return "retries"
        if self._counts[number] <= 1:
            return "one-task"
        if self._counts[number] * _FEW < slots:
            return "few-tasks"
        return "tail" if since >= self._tasks.last_launch[number] else "slow-launch"

    def _take(self, _moment: int, what: int, key: tuple[int, int], number: int) -> None:
        if what == _OPENS:
            if not self._running.total and not self._open:
                self._close_gap(self._stages[number], key)
            self._open[key] = number
        elif what == _CLOSES:
            if key in self._open:
                del self._open[key]
                if not self._running.total and not self._open:
                    self._open_gap(self._stages[number], key)
            elif number < 0 and not self._running.total and not self._open:
                self._close_gap(None)
        elif what == _SLOTS:
            self._slots += number
        elif what == _LATER_SLOTS:
            self._later_slots += number
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


class _Running:
    """How many tasks run, in all and by stage; `again` are those that would have ended before, had none of
    them failed. Stages that work at the same time share that time by their tasks."""

    def __init__(self, stages: int) -> None:
        self.total = 0
        self._work = array("d", bytes(8 * stages))
        self._of_task = 0.0  # what one that runs all along would have by now
        self._since = array("d", bytes(8 * stages))  # when a stage's number of tasks changed, by that
        self.again = array("q", bytes(8 * stages))
        self._of_stage: dict[int, int] = {}
        self._with: list[dict[int, None]] = [{}]  # the stages with so many tasks
        self._most = 0

    def begin(self, stage: int) -> None:
        self.total += 1
        self._change(stage, 1)

    def end(self, stage: int) -> None:
        self.total -= 1
        self._change(stage, -1)

    def work(self, time: int) -> None:
        self._of_task += time / self.total

    def worked(self, whole: int) -> array[int]:
        """The time of each stage's work, which add up to `whole`."""
        for stage in self._of_stage:
            self._settle(stage, self._of_stage[stage])
        times, exact, given = array("q"), 0.0, 0
        for work in self._work:
            exact += work
            times.append(max(0, min(whole, round(exact)) - given))
            given += times[-1]
        if times:
            times[-1] += whole - given
        return times

    def _settle(self, stage: int, tasks: int) -> None:
        self._work[stage] += tasks * (self._of_task - self._since[stage])
        self._since[stage] = self._of_task

    def _change(self, stage: int, by: int) -> None:
        before = self._of_stage.pop(stage, 0)
        self._settle(stage, before)
        now = before + by
        if before:
            del self._with[before][stage]
        if now:
            self._of_stage[stage] = now
            if now == len(self._with):
                self._with.append({})
            self._with[now][stage] = None
        if now > self._most or not self._with[self._most]:
            self._most = now

    def widest(self) -> int:
        """The stage with most tasks; of several that which has had so many for longest."""
        return next(iter(self._with[self._most]))

    def only_again(self, stage: int) -> bool:
        return self.again[stage] == self._of_stage[stage]


class _Tasks:
    """Begins and ends of all tasks, also of those that failed. The columns of a stage are read when its first
    task can have begun, and kept until its last one has ended. `last_launch` is when the last task of each
    stage that was read began for the first time, `newest_launch` the last of them all."""

    def __init__(self, stages: Sequence[ReplayStage], until: int) -> None:
        self._stages, self._until = stages, until
        self._waiting = sorted(range(len(stages)), key=lambda number: -_begin(stages[number]))
        self._next: list[tuple[int, Iterator[int]]] = []
        self.last_launch = array("q", bytes(8 * len(stages)))
        self.newest_launch = 0

    def before(self, moment: int) -> Iterator[int]:
        """Those before a moment that were not asked for yet, by time: as numbers of that, the stage, and what
        it is."""
        stages, waiting, following = self._stages, self._waiting, self._next
        while waiting and _begin(stages[waiting[-1]]) < moment:
            self._read(waiting.pop())
        until = moment << _BITS
        while following and following[0][0] < until:
            event, of_stage = following[0]
            yield event
            after = next(of_stage, None)
            if after is None:
                heappop(following)
            else:
                heapreplace(following, (after, of_stage))

    def _read(self, number: int) -> None:
        stage = self._stages[number]
        begins, ends = array("q"), array("q")
        tries: dict[int, list[_Try]] = {partition: [] for partition in _tried_again(stage)}
        last_launch = 0
        for attempt in stage.attempts:
            last = attempt.end or self._until
            names = ("launch", "finish", "partition", "status", "attempt")
            for launch, finish, partition, status, again in attempt.tasks.columns(*names):
                end = finish or last
                if launch and end > launch:
                    begins.append(launch)
                    ends.append(end)
                    if partition in tries:
                        tries[partition].append((launch, end, status in (SUCCESS, RUNNING)))
                    elif not again and launch > last_launch:
                        last_launch = launch
        first_tries = (min(one)[0] for one in tries.values() if one)
        self.last_launch[number] = max(last_launch, max(first_tries, default=0))
        self.newest_launch = max(self.newest_launch, self.last_launch[number])
        repeats = [one for of_partition in tries.values() for one in _repeats(of_partition)]
        self._add(begins, number, _BEGINS)
        self._add(ends, number, _ENDS)
        self._add([since for since, _ in repeats], number, _BEGINS_AGAIN)
        self._add([until for _, until in repeats], number, _ENDS_AGAIN)

    def _add(self, moments: Sequence[int], number: int, what: int) -> None:
        in_order, code = array("q", sorted(moments)), number << 2 | what
        events = (moment << _BITS | code for moment in in_order)
        first = next(events, None)
        if first is not None:
            heappush(self._next, (first, events))


_Try = tuple[int, int, bool]
"""When a task began and ended, and whether it did not fail."""


def _tried_again(stage: ReplayStage) -> set[int]:
    """The partitions of tasks that failed or ran again, but for copies of slow ones."""
    found: set[int] = set()
    before: set[int] = set()
    for attempt in stage.attempts:
        own: set[int] = set()
        for columns in attempt.tasks.parts("partition", "status", "attempt", "speculative"):
            partitions, statuses, again, _ = columns
            if FAILED in statuses or any(again):
                rows = zip(*columns, strict=True)
                found.update(
                    one for one, status, number, copy in rows if status == FAILED or (number and not copy)
                )
            if len(stage.attempts) > 1:
                own.update(partitions)
        found |= own & before
        before |= own
    return found


def _repeats(tries: list[_Try]) -> Iterator[tuple[int, int]]:
    """The times in which a task would have ended before, had its first try been the first good one."""
    tries.sort()
    took = min(((end, end - launch) for launch, end, is_good in tries if is_good), default=(0, 0))[1]
    for launch, end, _ in tries:
        since = max(launch, tries[0][0] + took)
        if since < end:
            yield since, end


def _begin(stage: ReplayStage) -> int:
    return min(filter(None, (stage.start, stage.first_launch)), default=0)


def number_of_tasks(stage: ReplayStage) -> int:
    return max(one.num_tasks or len(one.tasks) for one in stage.attempts)


def _marks(application: Application, replay: Replay, start: int, end: int) -> Iterator[_Mark]:
    """Moments at which stages open and close, slots come and go, and queries start and end."""
    for number, stage in enumerate(replay.stages):
        for one in stage.attempts:
            if one.start and one.start < end:
                yield max(start, one.start), _OPENS, one.key, number
                yield min(end, max(one.start, one.end or end, start)), _CLOSES, one.key, number
    slots = ((_SLOTS, replay.slots.changes), (_LATER_SLOTS, replay.slots.early()))
    for what, changes in slots:
        for moment, change in changes:
            yield max(start, min(moment, end)), what, (0, 0), change
    for query in application.sql.values():
        if query.start and query.start < end:
            yield max(start, query.start), _QUERY_STARTS, (0, 0), query.id
            yield min(end, max(start, query.start, query.end or end)), _QUERY_ENDS, (0, 0), query.id
