"""The schedule of an application made again from its tasks, to see how long it takes if they take less time.

Tasks run on the application's slots in the order of their original launch. A stage starts when its parents
have ended, and a job after the jobs that ended before it. What the driver did in between stays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace
from itertools import accumulate, pairwise
from math import inf

from hprofiler.spark.application import (
    FAILED,
    KILLED,
    RUNNING,
    SUCCESS,
    Application,
    Executor,
    Stage,
    task_slots,
)

_SAME_QUERY = 16
"""A job waits for so many jobs of its SQL execution: those that ended last before it began."""
_LONGEST = 0xFFFFFFFF
"""Milliseconds of the longest task: 49 days."""
_KINDS = {FAILED: "failed", KILLED: "killed", RUNNING: "running"}


@dataclass
class LeftOut:
    """Tasks that are not in the replay, by kind, and their time in milliseconds."""

    count: dict[str, int] = field(default_factory=dict)
    time: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, time: int) -> None:
        self.count[kind] = self.count.get(kind, 0) + 1
        self.time[kind] = self.time.get(kind, 0) + max(0, time)


class ReplayStage:
    """A stage with all its attempts: of each partition the successful task that ended last, by launch.

    A task that still runs has run until `now`, when its application had no end; else that is 0, and it is
    left out.

    `lag` is the time from when it could start to the launch of its first task, without what that waited for a
    slot; `tail` is the time from the end of its last task to its own. `held` is how long tasks had a slot:
    the driver gives it to the next task before it has noted a task's end.
    """

    __slots__ = (
        "_rows",
        "attempts",
        "duration",
        "end",
        "first_launch",
        "held",
        "id",
        "jobs",
        "lag",
        "launch",
        "name",
        "parents",
        "start",
        "tail",
    )

    def __init__(self, attempts: Sequence[Stage], left_out: LeftOut, now: int = 0) -> None:
        self.attempts = sorted(attempts, key=lambda one: one.attempt)
        last = self.attempts[-1]
        self.id, self.name, self.parents = last.id, last.name, last.parents
        self.jobs = sorted({job for one in self.attempts for job in one.jobs})
        launch, finish = self._whole("launch"), self._whole("finish")
        self._rows = _last_successful(self.attempts, launch, finish, left_out, now)
        self.launch = array("q", map(launch.__getitem__, self._rows))
        ends = zip(map(finish.__getitem__, self._rows), self.launch, strict=True)
        self.duration = array("I", (min(max(0, end - begin), _LONGEST) for end, begin in ends))
        self.held = self.duration
        self.first_launch = min(filter(None, launch), default=0)
        ended = max(finish, default=0)
        starts = [one.start for one in self.attempts if one.start]
        self.start = min(starts) if starts else self.first_launch
        self.end = max(self.start, max(one.end for one in self.attempts) or ended)
        self.tail = max(0, self.end - ended) if ended else 0
        self.lag = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def attempt_numbers(self) -> tuple[int, ...]:
        return tuple(one.attempt for one in self.attempts)

    def column(self, name: str) -> array[int]:
        """A column of the tasks, by launch."""
        return array("q", map(self._whole(name).__getitem__, self._rows))

    def _whole(self, name: str) -> array[int]:
        """A column of all tasks of all attempts."""
        first, *others = (one.tasks.column(name) for one in self.attempts)
        for values in others:
            first.extend(values)
        return first

    def attempt_of(self, place: int) -> int:
        """The attempt in which a task ran."""
        row = self._rows[place]
        for one in self.attempts:
            if row < len(one.tasks):
                return one.attempt
            row -= len(one.tasks)
        return self.attempt_numbers[-1]


def _last_successful(
    attempts: Sequence[Stage],
    launch: Sequence[int],
    finish: MutableSequence[int],
    left_out: LeftOut,
    now: int,
) -> array[int]:
    """The rows of the tasks that are kept, by launch; `finish` gets when those that still run had run until.
    All others are counted."""
    best: dict[int, int] = {}
    running: dict[int, int] = {}
    row = 0
    for stage in attempts:
        for partition, status, speculative in stage.tasks.columns("partition", "status", "speculative"):
            if not launch[row]:
                left_out.add("without times", 0)
            elif status == SUCCESS:
                known = best.get(partition, row)
                if known != row:
                    worse = min(known, row, key=finish.__getitem__)
                    left_out.add("repeated", finish[worse] - launch[worse])
                if known == row or finish[row] >= finish[known]:
                    best[partition] = row
            elif status == RUNNING and now and not stage.end and not speculative:
                running[partition] = row
            else:
                kind = "speculative" if speculative else _KINDS.get(status, "failed")
                left_out.add(kind, finish[row] - launch[row] if finish[row] else 0)
            row += 1
    for partition, row in running.items():
        if partition not in best:
            best[partition], finish[row] = row, max(launch[row], now)
    return array("I", sorted(best.values(), key=launch.__getitem__))


@dataclass(slots=True)
class _Job:
    """A job, or a stage of which no job is known. `after` are the jobs it waits for, `lag` is the time from
    the last of them to its start, and `tail` from the end of its last stage to its own."""

    key: int
    start: int
    end: int
    sql: int | None = None
    stages: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    lag: int = 0
    tail: int = 0


@dataclass(frozen=True)
class Gain:
    """How much shorter the application would be: a share of its time, and milliseconds."""

    share: float
    time: float


@dataclass(frozen=True)
class Replayed:
    """What a replay says of itself; milliseconds.

    `measured` is the time from the first job's start to the last one's end; `as_it_was` is the same in the
    replay with the tasks' own durations. `slots` is the most that there were.
    """

    measured: int
    as_it_was: float
    slots: int
    left_out: LeftOut

    @property
    def error(self) -> float:
        """How far the replay of what happened is off: 0.02 is 2 % too long."""
        return self.as_it_was / self.measured - 1 if self.measured else 0.0


class Replay:
    """The replay of an application, with columns of all its tasks; see Replayed for what remains of it."""

    def __init__(self, application: Application) -> None:
        self.left_out = LeftOut()
        attempts: dict[int, list[Stage]] = {}
        for stage in application.stages.values():
            if stage.start or len(stage.tasks):
                attempts.setdefault(stage.id, []).append(stage)
        now = 0 if application.end else application.last_event
        self.stages = [ReplayStage(attempts[id_], self.left_out, now) for id_ in sorted(attempts)]
        self.slots = Slots(application, self.stages)
        _find_held(self.stages, self.slots.of_executor)
        self.jobs = _jobs(application, self.stages)
        self.owners = _owners(self.jobs, len(self.stages))
        if any(note.code == "by-rest" for note in application.notes):
            self.parents = _guessed_parents(self.stages, self.jobs)
        else:
            self.parents = _parents(self.stages)
        self._find_lags()
        self.start = min((job.start for job in self.jobs), default=0)
        self.end = max((job.end for job in self.jobs), default=0)
        self.measured = self.end - self.start
        self.as_it_was = self.run()

    def in_short(self) -> Replayed:
        return Replayed(self.measured, self.as_it_was, self.slots.most, self.left_out)

    def gain(self, durations: Mapping[int, Sequence[float]]) -> Gain:
        """How much shorter the application would be, if tasks had their slots for so long: those of
        these stages, by their place in `stages`, in the order of their launch."""
        ratio = self.run(durations) / self.as_it_was if self.as_it_was else 1.0
        # Shorter tasks can make a first-in, first-out schedule longer. That says nothing about the job.
        share = max(0.0, 1 - ratio)
        # A replay that is far off may gain more than there was to gain.
        most = sum(self._most_gain(number, times) for number, times in durations.items())
        if share * self.measured > most:
            share = most / self.measured
        return Gain(share, share * self.measured)

    def _most_gain(self, number: int, durations: Sequence[float]) -> float:
        """What its tasks take less, but no more than the stage took."""
        stage = self.stages[number]
        return min(max(0.0, sum(stage.held) - sum(durations)), stage.end - stage.start)

    def run(self, durations: Mapping[int, Sequence[float]] | None = None, slots: float = 1.0) -> float:
        """How long the application takes; see `gain`. `slots` are times as many as there were."""
        return _Schedule(self, durations or {}, *self.slots.times(slots)).run() if self.jobs else 0.0

    def run_with_early_slots(self) -> float:
        """How long it takes if slots do not come late; see `Slots.early`."""
        return _Schedule(self, {}, self.slots.early(), self.slots.most).run() if self.jobs else 0.0

    def _find_lags(self) -> None:
        running = _running(self.stages)
        for number, stage in enumerate(self.stages):
            parents = (self.stages[one].end for one in self.parents[number])
            could = max([self.jobs[self.owners[number][0]].start, *parents])
            stage.lag = max(0, stage.start - could)
            before = stage.first_launch - 1
            moments = (stage.start, before) if before > stage.start else (stage.start,)
            if all(running[moment] < self.slots.at(moment) for moment in moments):
                stage.lag += max(0, stage.first_launch - stage.start)


def _running(stages: Sequence[ReplayStage]) -> dict[int, int]:
    """How many tasks ran when each stage was submitted and just before its first task, by that moment."""
    moments = sorted({moment for stage in stages for moment in (stage.start, stage.first_launch - 1)})
    changes = [0] * (len(moments) + 1)
    for stage in stages:
        for launch, time in zip(stage.launch, stage.duration, strict=True):
            if time:
                changes[bisect_right(moments, launch)] += 1
                changes[bisect_left(moments, launch + time)] -= 1
    return dict(zip(moments, accumulate(changes), strict=False))


def _parents(stages: Sequence[ReplayStage]) -> list[list[int]]:
    """The stages that each stage waits for: its parents that ran. Parents have smaller ids."""
    numbers = {stage.id: number for number, stage in enumerate(stages)}
    return [
        sorted({numbers[id_] for id_ in stage.parents if id_ < stage.id and id_ in numbers})
        for stage in stages
    ]


def _guessed_parents(stages: Sequence[ReplayStage], jobs: Sequence[_Job]) -> list[list[int]]:
    """The same where nobody says it: the stage of its job that ended last before it began."""
    parents: list[set[int]] = [set() for _ in stages]
    for job in jobs:
        ends = sorted((stages[number].end, number) for number in job.stages)
        for number in job.stages:
            place = bisect_right(ends, (stages[number].start, len(stages)))
            if place and ends[place - 1][1] != number:
                parents[number].add(ends[place - 1][1])
    return [sorted(one) for one in parents]


def _jobs(application: Application, stages: Sequence[ReplayStage]) -> list[_Job]:
    """The jobs by start, each with its stages. A stage belongs to the jobs that waited for it when it ran."""
    jobs = {
        job.id: _Job(job.id, job.start, max(job.start, job.end or application.until), job.sql)
        for job in application.jobs.values()
        if job.start
    }
    for number, stage in enumerate(stages):
        waiting = [jobs[id_] for id_ in stage.jobs if id_ in jobs and jobs[id_].start <= stage.end]
        if not waiting:  # the events of its job are missing
            waiting = [_Job(-1 - stage.id, stage.start, stage.end)]
            jobs[-1 - stage.id] = waiting[0]
        for job in waiting:
            job.stages.append(number)
    ordered = sorted(jobs.values(), key=lambda job: (job.start, job.key))
    for job in ordered:
        last = max((stages[number].end for number in job.stages), default=job.start)
        job.tail = max(0, job.end - max(job.start, last))
    _order(ordered)
    return ordered


_End = tuple[int, int, int, int]


def _order(jobs: Sequence[_Job]) -> None:
    """Find what each job waits for: the job that ended last before it began, and those of its own query."""
    ends = sorted((job.end, job.start, job.key, number) for number, job in enumerate(jobs))
    by_query: dict[int, list[_End]] = {}
    for end in ends:
        sql = jobs[end[3]].sql
        if sql is not None:
            by_query.setdefault(sql, []).append(end)
    for job in jobs:
        own = _last_before(job, by_query[job.sql], _SAME_QUERY) if job.sql is not None else []
        job.after = sorted({number for *_, number in (*_last_before(job, ends, 1), *own)})
        job.lag = job.start - max((jobs[number].end for number in job.after), default=jobs[0].start)


def _last_before(job: _Job, ends: Sequence[_End], most: int) -> Sequence[_End]:
    """Of jobs by their end, those that ended last before a job began."""
    place = bisect_left(ends, (job.start, job.start, job.key, -1))
    return ends[max(0, place - most) : place]


def _owners(jobs: Sequence[_Job], stages: int) -> list[list[int]]:
    """The jobs of each stage, by start."""
    owners: list[list[int]] = [[] for _ in range(stages)]
    for number, job in enumerate(jobs):
        for stage in job.stages:
            owners[stage].append(number)
    return owners


class Slots:
    """How many slots an application has over time: `changes` are (moment, slots more or less), by time,
    `of_executor` those of each executor, by number, and `busy` when each executor's first task began and its
    last one ended, by id."""

    def __init__(self, application: Application, stages: Sequence[ReplayStage]) -> None:
        workers = {one.id: one for one in application.workers}
        numbers = {id_: number for number, id_ in enumerate(application.executor_ids)}
        busy = _busy(stages, {numbers[id_]: one.cores for id_, one in workers.items() if id_ in numbers})
        self.busy = {
            id_: (busy[number].first, busy[number].last) for id_, number in numbers.items() if number in busy
        }
        unknown = [id_ for id_, number in numbers.items() if number in busy and id_ not in workers]
        self.changes: list[tuple[int, int]] = []
        self.of_executor: dict[int, int] = {}
        for id_ in (*workers, *unknown):
            executor, tasks = workers.get(id_, Executor(id_)), busy.get(numbers.get(id_, -1))
            if tasks is None and executor.cores <= 0:
                continue
            most = tasks.most if tasks else 0
            known = task_slots(application, executor) if executor.cores > 0 else most
            slots = max(1, known)
            self.of_executor[numbers.get(id_, -1)] = slots
            # An executor's events may be missing.
            added = min(executor.added or tasks.first, tasks.first) if tasks else executor.added
            self.changes.append((added, slots))
            if executor.removed:
                self.changes.append((max(executor.removed, tasks.last if tasks else 0), -slots))
        self.changes.sort()
        self._moments = [moment for moment, _ in self.changes]
        self._counts = list(accumulate(by for _, by in self.changes))
        self.most = max(1, max(self._counts, default=1))

    def at(self, moment: int) -> int:
        place = bisect_right(self._moments, moment)
        return self._counts[place - 1] if place else 0

    def times(self, factor: float) -> tuple[list[tuple[int, int]], int]:
        """The changes, and the most slots, if there were so many times as many: at least one, where there
        was any."""
        if factor == 1:
            return self.changes, self.most
        counts = [max(1, round(count * factor)) if count > 0 else count for count in self._counts]
        return self._changes_to(counts), max(1, *counts, round(self.most * factor))

    def early(self) -> list[tuple[int, int]]:
        """The changes, if all slots that came later had been there whenever there was any."""
        later = [*accumulate(reversed(self._counts), max)][::-1]
        return self._changes_to(
            [most if now > 0 else now for now, most in zip(self._counts, later, strict=True)]
        )

    def _changes_to(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        changes = (now - before for before, now in pairwise([0, *counts]))
        return list(zip(self._moments, changes, strict=True))

    def time(self, since: int, until: int) -> int:
        """The time of all slots together."""
        moments = [since, *(one for one in self._moments if since < one < until), until]
        return sum(self.at(begin) * (end - begin) for begin, end in pairwise(moments))


def _find_held(stages: Sequence[ReplayStage], slots: Mapping[int, int]) -> None:
    """Of each executor, when one task too many is launched, that which ends first had left its slot.

    No task left it before its work was done.
    """
    running: dict[int, list[tuple[int, int, int, int]]] = {}
    columns: dict[int, tuple[array[int], array[int]]] = {}
    waiting = sorted((stage.launch[0], number, 0) for number, stage in enumerate(stages) if stage.launch)
    waiting.reverse()
    ready: list[tuple[int, int, int]] = []
    while ready or waiting:
        while waiting and (not ready or waiting[-1] <= ready[0]):
            heappush(ready, waiting.pop())
        launch, number, place = ready[0]
        stage = stages[number]
        if not place:
            columns[number] = stage.column("executor"), stage.column("scheduler_delay")
        executor, delay = (column[place] for column in columns[number])
        tasks = running.setdefault(executor, [])
        while tasks and tasks[0][0] <= launch:
            heappop(tasks)
        if len(tasks) >= slots.get(executor, len(tasks) + 1):
            _, number_before, place_before, work = heappop(tasks)
            before = stages[number_before]
            if before.held is before.duration:
                before.held = array("I", before.duration)
            before.held[place_before] = max(work, launch - before.launch[place_before])
        finish = launch + stage.duration[place]
        heappush(tasks, (finish, number, place, max(0, stage.duration[place] - delay)))
        place += 1
        if place < len(stage):
            heapreplace(ready, (stage.launch[place], number, place))
        else:
            heappop(ready)
            del columns[number]


@dataclass(slots=True)
class _Busy:
    """The tasks of an executor: the first launch, the last end, and how many there were at once."""

    first: int
    last: int
    most: int


def _busy(stages: Sequence[ReplayStage], cores: Mapping[int, int]) -> dict[int, _Busy]:
    """The tasks of executors, by number. How many there were at once is found where `cores` are unknown."""
    busy: dict[int, _Busy] = {}
    changes: dict[int, list[tuple[int, int]]] = {}
    for stage in stages:
        for executor, launch, time in zip(
            stage.column("executor"), stage.launch, stage.duration, strict=True
        ):
            known = busy.get(executor)
            if known is None:
                known = busy[executor] = _Busy(launch, launch + time, 1)
            known.first, known.last = min(known.first, launch), max(known.last, launch + time)
            if cores.get(executor, 0) <= 0:
                changes.setdefault(executor, []).extend(((launch, 1), (launch + time, -1)))
    for executor, one in changes.items():
        one.sort()
        busy[executor].most = max(accumulate(by for _, by in one))
    return busy


_JOB_STARTS, _STAGE_IS_READY, _STAGE_ENDS, _JOB_ENDS = range(4)


class _Schedule:
    """One replay, from its first moment, 0.

    `events` are (moment, what, number of the job or stage). Ends of tasks are apart from them, as (moment,
    stage), because they are most; `ready` has the next task of each stage, as (original launch, stage).
    """

    def __init__(
        self,
        replay: Replay,
        durations: Mapping[int, Sequence[float]],
        changes: Sequence[tuple[int, int]],
        most: int,
    ) -> None:
        self.stages, self.jobs = replay.stages, replay.jobs
        self.changes, self.most = changes, most
        self.owners = replay.owners
        self.durations = [durations.get(number, one.held) for number, one in enumerate(self.stages)]
        self.left = [len(stage) for stage in self.stages]
        self.next = [0] * len(self.stages)
        self.stage_needs = [len(parents) + 1 for parents in replay.parents]
        self.children = _turned(replay.parents)
        self.job_needs = [len(job.after) for job in self.jobs]
        self.followers = _turned([job.after for job in self.jobs])
        self.open = [len(job.stages) + 1 for job in self.jobs]
        self.events: list[tuple[float, int, int]] = []
        self.running: list[tuple[float, int]] = []
        self.ready: list[tuple[int, int]] = []
        self.free = 0
        self.changed = 0
        self.anchor = -1
        self.ahead = 0.0
        self.now = 0.0
        self.waiting_jobs = iter(range(len(self.jobs)))
        self.waiting_stages = iter(range(len(self.stages)))

    def run(self) -> float:
        """The end of the last job."""
        first = self.jobs[0].start
        for number, needs in enumerate(self.job_needs):
            if not needs:
                heappush(self.events, (self.jobs[number].start - first, _JOB_STARTS, number))
        while True:
            change = self._next_change()
            self._run_tasks(min(change, self.events[0][0] if self.events else inf))
            if self.events and self.events[0][0] <= change:
                self._take(*heappop(self.events))
            elif change < inf and (self.events or self.ready or self.running):
                self._change_slots(change)
            elif self.ready:
                self.free = self.most  # the log lacks executors
                self._fill()
            elif not self._force():
                return self.now

    def _run_tasks(self, until: float) -> None:
        """Let tasks end, and others take their slots, up to a moment or the end of a stage."""
        running, ready, left, next_, durations = (
            self.running,
            self.ready,
            self.left,
            self.next,
            self.durations,
        )
        stages = self.stages
        moment = self.now
        while running and running[0][0] <= until:
            moment, ended = running[0]
            if ready and self.free >= 0:
                stage = ready[0][1]
                place = next_[stage]
                heapreplace(running, (moment + durations[stage][place], stage))
                next_[stage] = place = place + 1
                launches = stages[stage].launch
                if place < len(launches):
                    heapreplace(ready, (launches[place], stage))
                else:
                    heappop(ready)
            else:
                heappop(running)
                self.free += 1
            left[ended] -= 1
            if not left[ended]:
                end = moment + stages[ended].tail
                heappush(self.events, (end, _STAGE_ENDS, ended))
                until = min(until, end)
        self.now = max(self.now, moment)

    def _fill(self) -> None:
        """Start tasks on free slots."""
        while self.free > 0 and self.ready:
            stage = self.ready[0][1]
            place = self.next[stage]
            heappush(self.running, (self.now + self.durations[stage][place], stage))
            self.free -= 1
            self.next[stage] = place = place + 1
            if place < len(self.stages[stage]):
                heapreplace(self.ready, (self.stages[stage].launch[place], stage))
            else:
                heappop(self.ready)

    def _take(self, moment: float, what: int, number: int) -> None:
        self.now = max(self.now, moment)
        if what == _JOB_STARTS:
            self._start_job(moment, number)
        elif what == _STAGE_IS_READY:
            if self.left[number]:
                heappush(self.ready, (self.stages[number].launch[0], number))
            else:
                heappush(self.events, (moment, _STAGE_ENDS, number))
        elif what == _STAGE_ENDS:
            for child in self.children[number]:
                self._meet_stage(moment, child)
            for job in self.owners[number]:
                self._close(moment, job)
        else:
            for job in self.followers[number]:
                self.job_needs[job] -= 1
                if not self.job_needs[job]:
                    heappush(self.events, (moment + self.jobs[job].lag, _JOB_STARTS, job))
        self._fill()

    def _start_job(self, moment: float, number: int) -> None:
        job = self.jobs[number]
        if job.start >= self.anchor:
            # Executors come and go as long after a job's start as they did, at the latest with the next.
            self.anchor, self.ahead = job.start, job.start - moment
            while self.changed < len(self.changes) and self.changes[self.changed][0] <= job.start:
                self._change_slots(moment)
        for stage in job.stages:
            if self.owners[stage][0] == number:
                self._meet_stage(moment, stage)
        self._close(moment, number)

    def _meet_stage(self, moment: float, stage: int) -> None:
        """One thing less that a stage waits for."""
        self.stage_needs[stage] -= 1
        if not self.stage_needs[stage]:
            heappush(self.events, (moment + self.stages[stage].lag, _STAGE_IS_READY, stage))

    def _close(self, moment: float, job: int) -> None:
        """One thing less that a job's end waits for."""
        self.open[job] -= 1
        if not self.open[job]:
            heappush(self.events, (moment + self.jobs[job].tail, _JOB_ENDS, job))

    def _next_change(self) -> float:
        if self.changed == len(self.changes):
            return inf
        return max(self.now, self.changes[self.changed][0] - self.ahead)

    def _change_slots(self, moment: float) -> None:
        self.now = max(self.now, moment)
        self.free += self.changes[self.changed][1]
        self.changed += 1
        self._fill()

    def _force(self) -> bool:
        """Start the first job or stage of those that wait for each other, which only damaged logs have."""
        for job in self.waiting_jobs:
            if self.job_needs[job] > 0:
                self.job_needs[job] = 0
                heappush(self.events, (self.now, _JOB_STARTS, job))
                return True
        for stage in self.waiting_stages:
            if self.stage_needs[stage] > 0:
                self.stage_needs[stage] = 0
                heappush(self.events, (self.now, _STAGE_IS_READY, stage))
                return True
        return False


def _turned(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    """Who waits for each, from what each waits for."""
    turned: list[list[int]] = [[] for _ in edges]
    for number, ends in enumerate(edges):
        for end in ends:
            turned[end].append(number)
    return turned
