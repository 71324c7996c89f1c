"""Figures of an application, its jobs, stages and executors.

Records have the names, units and structure of Spark's REST interface (`/api/v1`), so that they can be
compared with a history server's answers. There, sums are over all tasks that ended, failed and killed ones
too, and a stage's `peakExecutionMemory` is a sum. `Work` has the mended figures: succeeded, failed and
killed work apart, and peak memory as a maximum.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, lru_cache
from typing import Any

from hprofiler.spark.application import (
    FAILED,
    KILLED,
    LOCALITIES,
    READ_COLUMNS,
    RUNNING,
    SUCCESS,
    Application,
    Executor,
    Job,
    Stage,
    TaskTable,
    task_cpus,
)
from hprofiler.spark.causes import without_secrets

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_GAPS = 10

SUMS = {
    "executorRunTime": "run_time",
    "executorCpuTime": "cpu_time",
    "executorDeserializeTime": "deserialize_time",
    "executorDeserializeCpuTime": "deserialize_cpu_time",
    "resultSerializationTime": "serialize_time",
    "jvmGCTime": "gc_time",
    "shuffleFetchWaitTime": "fetch_wait",
    "shuffleWriteTime": "shuffle_write_time",
    "schedulerDelay": "scheduler_delay",
    "gettingResultTime": "getting",
    "taskTime": "duration",
    "resultSize": "result_size",
    "memoryBytesSpilled": "memory_spilled",
    "diskBytesSpilled": "disk_spilled",
    "bytesRead": "input_bytes",
    "recordsRead": "input_records",
    "bytesWritten": "output_bytes",
    "recordsWritten": "output_records",
    "shuffleRemoteBlocksFetched": "shuffle_remote_blocks",
    "shuffleLocalBlocksFetched": "shuffle_local_blocks",
    "shuffleRemoteBytesRead": "shuffle_remote_bytes",
    "shuffleLocalBytesRead": "shuffle_local_bytes",
    "shuffleRemoteBytesReadToDisk": "shuffle_remote_bytes_to_disk",
    "shuffleRecordsRead": "shuffle_read_records",
    "shuffleBytesWritten": "shuffle_write_bytes",
    "shuffleRecordsWritten": "shuffle_write_records",
}
"""sparkMeasure's names of sums over tasks, and their columns. CPU and shuffle write are nanoseconds."""
_TASK_TIME = list(SUMS).index("taskTime")
_STATUSES = {"succeeded": SUCCESS, "failed": FAILED, "killed": KILLED}
_OTHER_COLUMNS = ("status", "launch", "index", "locality", "speculative", "peak_memory", *READ_COLUMNS)
_COLUMNS = tuple(dict.fromkeys((*SUMS.values(), *_OTHER_COLUMNS)))


@dataclass(slots=True)
class Work:
    """Sums over tasks of one status, in the order of `SUMS`; their number, and maxima."""

    tasks: int = 0
    values: Sequence[int] = (0,) * len(SUMS)
    peak_memory: int = 0
    largest_result: int = 0

    @property
    def sums(self) -> dict[str, int]:
        """By the names of `SUMS`. A stage keeps them without names: an application may have 200,000."""
        return dict(zip(SUMS, self.values, strict=True))

    def add(self, other: Work) -> None:
        self.tasks += other.tasks
        self.values = _packed(map(int.__add__, self.values, other.values))
        self.peak_memory = max(self.peak_memory, other.peak_memory)
        self.largest_result = max(self.largest_result, other.largest_result)

    def record(self) -> dict[str, int]:
        sums = self.sums
        return {
            "numTasks": self.tasks,
            **sums,
            "shuffleTotalBlocksFetched": sums["shuffleRemoteBlocksFetched"]
            + sums["shuffleLocalBlocksFetched"],
            "shuffleTotalBytesRead": sums["shuffleRemoteBytesRead"] + sums["shuffleLocalBytesRead"],
            "peakExecutionMemory": self.peak_memory,
            "maxResultSize": self.largest_result,
        }


def _packed(values: Iterable[int]) -> Sequence[int]:
    """In a third of a tuple's memory, if they are not larger than any real log has them."""
    numbers = tuple(values)
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


_NO_COPIES: Mapping[int, int] = {}
_NO_WORK = Work()
"""Of most stages, nothing failed and nothing was killed."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """A stage's work by status, and how evenly its succeeded tasks ran. Durations are milliseconds.

    `skew` is the longest task's duration by the median's, `data_skew` the most bytes that a task read (input
    and shuffle) by the median's, or by their mean where the median is 0; 0 if there is none. `localities`
    count tasks, `speculative` the copies of slow tasks by status.
    """

    stage: Stage
    work: Mapping[str, Work]
    active: int
    indices: int
    median: int
    longest: int
    data_skew: float
    localities: Mapping[str, int]
    speculative: Mapping[int, int]

    @property
    def skew(self) -> float:
        return self.longest / self.median if self.median else 0.0

    @property
    def duration(self) -> int:
        """From its submission to its end; 0 if one of them is unknown."""
        return max(0, self.stage.end - self.stage.start) if self.stage.start and self.stage.end else 0

    @property
    def task_time(self) -> int:
        """Of all tasks, failed and killed ones too."""
        return sum(one.values[_TASK_TIME] for one in self.work.values())


@dataclass(frozen=True)
class Gap:
    """A time without any stage. `before` and `after` are the stages around it, None at an end."""

    start: int
    end: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None


@dataclass(frozen=True)
class Figures:
    """The whole application. `elapsed` is from the first stage's submission to the last one's end, `idle` the
    part of it without any stage, `gaps` the longest of those. `active_time` is from launch to end of all
    tasks, also of those that failed, were killed or still run."""

    work: Mapping[str, Work]
    stages: tuple[StageFigures, ...]
    elapsed: int
    active_time: int
    stage_time: int
    idle: int
    gaps: tuple[Gap, ...]

    @cached_property
    def by_task_time(self) -> tuple[StageFigures, ...]:
        """The stages that had tasks, those with most task time first."""
        ran = (one for one in self.stages if len(one.stage.tasks))
        return tuple(sorted(ran, key=lambda one: -one.task_time))

    @property
    def average_active_tasks(self) -> float:
        return self.active_time / self.elapsed if self.elapsed else 0.0

    def record(self) -> dict[str, Any]:
        """sparkMeasure's names, for succeeded work; failed and killed work apart."""
        run = self.work["succeeded"].record()
        return {
            "numStages": sum(one.stage.status in ("COMPLETE", "FAILED") for one in self.stages),
            "elapsedTime": self.elapsed,
            "stageDuration": self.stage_time,
            "idleTime": self.idle,
            "averageActiveTasks": round(self.average_active_tasks, 3),
            **run,
            "failed": self.work["failed"].record(),
            "killed": self.work["killed"].record(),
            "gaps": [
                {
                    "from": gap.start,
                    "to": gap.end,
                    "afterStage": list(gap.before) if gap.before else None,
                    "beforeStage": list(gap.after) if gap.after else None,
                }
                for gap in self.gaps
            ],
        }


def figures(application: Application) -> Figures:
    """All figures that need a look at every task, in one pass."""
    whole = {name: Work() for name in _STATUSES}
    found = []
    for stage in application.stages.values():
        one = stage_figures(stage)
        for name, work in one.work.items():
            whole[name].add(work)
        found.append(one)
    ran = sorted(
        (one.stage.start, one.stage.end or application.until, one.stage.key)
        for one in found
        if one.stage.start and one.stage.status not in ("PENDING", "SKIPPED")
    )
    elapsed = max((end for _, end, _ in ran), default=0) - ran[0][0] if ran else 0
    idle, gaps = _gaps(ran)
    active = sum(one.task_time + _open_time(one, application.until) for one in found)
    return Figures(
        whole, tuple(found), max(0, elapsed), active, sum(one.duration for one in found), idle, gaps
    )


def _open_time(one: StageFigures, until: int) -> int:
    """Of tasks whose end is not known."""
    if not one.active:
        return 0
    end = one.stage.end or until
    rows = one.stage.tasks.columns("launch", "status")
    return sum(max(0, end - launch) for launch, status in rows if status == RUNNING and launch)


def stage_figures(stage: Stage) -> StageFigures:
    works = dict.fromkeys(_STATUSES, _NO_WORK)
    good, read = array("q"), array("q")
    indices: set[int] = set()
    localities: Counter[int] = Counter()
    copies: Counter[int] = Counter()
    for part in stage.tasks.parts(*_COLUMNS):
        columns = dict(zip(_COLUMNS, part, strict=True))
        status = columns["status"]
        for name, wanted in _STATUSES.items():
            count = status.count(wanted)
            if not count:
                continue
            of_status = {column: _where(values, status, wanted, count) for column, values in columns.items()}
            if works[name] is _NO_WORK:
                works[name] = Work()
            sums = [sum(of_status[column]) for column in SUMS.values()]
            largest = (max(of_status[column]) for column in ("peak_memory", "result_size"))
            works[name].add(Work(count, sums, *largest))
            if wanted == SUCCESS:
                pairs = zip(of_status["duration"], of_status["launch"], strict=True)
                good.extend(time for time, launch in pairs if launch)
                read.extend(map(sum, zip(*(of_status[column] for column in READ_COLUMNS), strict=True)))
                indices.update(of_status["index"])
        localities.update(columns["locality"])
        copies.update(state for state, is_ in zip(status, columns["speculative"], strict=True) if is_)
    usual_read = _median(sorted(read)) or sum(read) / max(1, len(read))
    return StageFigures(
        stage,
        works,
        len(stage.tasks) - sum(one.tasks for one in works.values()),
        len(indices),
        _median(sorted(good)),
        max(good, default=0),
        max(read, default=0) / usual_read if usual_read else 0.0,
        _by_locality(tuple(sorted(localities.items()))),
        copies or _NO_COPIES,
    )


def _median(ordered: Sequence[int]) -> int:
    middle = len(ordered) // 2
    return (ordered[-middle - 1] + ordered[middle]) // 2 if ordered else 0


@lru_cache(maxsize=1024)
def _by_locality(counts: tuple[tuple[int, int], ...]) -> Mapping[str, int]:
    """Many stages have the same: they share it, which saves memory."""
    return {LOCALITIES[number]: count for number, count in counts}


def _done_indices(table: TaskTable) -> set[int]:
    return {index for index, status in table.columns("index", "status") if status == SUCCESS}


def _where(values: array[int], status: array[int], wanted: int, count: int) -> Sequence[int]:
    """The values of tasks with a status, of which there are `count`."""
    if count == len(values):
        return values
    return [value for value, is_ in zip(values, status, strict=True) if is_ == wanted]


def _gaps(ran: Sequence[tuple[int, int, tuple[int, int]]]) -> tuple[int, tuple[Gap, ...]]:
    """Times between the first and the last stage in which none ran."""
    idle, found = 0, []
    until, before = (ran[0][1], ran[0][2]) if ran else (0, None)
    for start, end, key in ran:
        if start > until:
            idle += start - until
            found.append(Gap(until, start, before, key))
        if end >= until:
            until, before = end, key
    found.sort(key=lambda gap: gap.start - gap.end)
    return idle, tuple(found[:_MOST_GAPS])


# Records of the REST interface


def application_record(application: Application) -> dict[str, Any]:
    """`/applications/ID`."""
    ended = application.end or application.last_event
    attempt = {
        **({"attemptId": application.attempt} if application.attempt else {}),
        "startTime": moment(application.start),
        "endTime": moment(application.end or -1),
        "lastUpdated": moment(ended or -1),
        "duration": max(0, ended - application.start) if ended else 0,
        "sparkUser": application.user,
        "completed": application.end > 0,
        **({} if application.exit_code is None else {"exitCode": application.exit_code}),
        "appSparkVersion": application.version,
        "startTimeEpoch": application.start,
        "endTimeEpoch": application.end or -1,
        "lastUpdatedEpoch": ended or -1,
    }
    return {"id": application.id, "name": application.name, "attempts": [attempt]}


def job_records(application: Application, found: Figures) -> Iterator[dict[str, Any]]:
    """`/applications/ID/jobs`, newest first."""
    by_job: dict[int, list[StageFigures]] = {}
    for one in found.stages:
        for job in one.stage.jobs:
            by_job.setdefault(job, []).append(one)
    jobs = sorted(application.jobs.values(), key=lambda job: job.id, reverse=True)
    return (_job_record(job, by_job.get(job.id, [])) for job in jobs)


def _job_record(job: Job, stages: Sequence[StageFigures]) -> dict[str, Any]:
    kills: Counter[str] = Counter()
    for one in stages:
        kills.update(one.stage.kills)
    status = Counter(one.stage.status for one in stages)
    done = {one.stage.id for one in stages if one.stage.status == "COMPLETE"}
    return {
        "jobId": job.id,
        "name": job.name,
        **_known(description=job.description),
        **_known(submissionTime=job.start and moment(job.start)),
        **_known(completionTime=job.end and moment(job.end)),
        "stageIds": list(job.stage_ids),
        **_known(jobGroup=job.group),
        "status": job.status,
        "numTasks": job.num_tasks,
        "numActiveTasks": sum(one.active for one in stages),
        "numCompletedTasks": sum(one.work["succeeded"].tasks for one in stages),
        "numSkippedTasks": job.num_skipped_tasks,
        "numFailedTasks": sum(one.work["failed"].tasks + one.stage.resubmitted for one in stages),
        "numKilledTasks": sum(one.work["killed"].tasks for one in stages),
        "numCompletedIndices": _completed_indices(stages),
        "numActiveStages": status["ACTIVE"],
        "numCompletedStages": len(done),
        "numSkippedStages": len(job.skipped),
        "numFailedStages": status["FAILED"],
        "killedTasksSummary": dict(kills),
    }


def _completed_indices(stages: Sequence[StageFigures]) -> int:
    """Of all stages of a job; what two attempts of a stage did counts once."""
    attempts: dict[int, list[StageFigures]] = {}
    for one in stages:
        attempts.setdefault(one.stage.id, []).append(one)
    return sum(
        those[0].indices
        if len(those) == 1
        else len(set().union(*(_done_indices(one.stage.tasks) for one in those)))
        for those in attempts.values()
    )


def stage_records(found: Figures) -> Iterator[dict[str, Any]]:
    """`/applications/ID/stages?withSummaries=true`, newest first."""
    return map(stage_record, sorted(found.stages, key=lambda one: one.stage.key, reverse=True))


def stage_record(one: StageFigures) -> dict[str, Any]:
    stage = one.stage
    sums = dict.fromkeys(SUMS, 0)
    for work in one.work.values():
        for name, value in work.sums.items():
            sums[name] += value
    first = stage.first_task_launched
    return {
        "status": stage.status,
        "stageId": stage.id,
        "attemptId": stage.attempt,
        "numTasks": stage.num_tasks,
        "numActiveTasks": one.active,
        "numCompleteTasks": one.work["succeeded"].tasks,
        "numFailedTasks": one.work["failed"].tasks + stage.resubmitted,
        "numKilledTasks": one.work["killed"].tasks,
        "numCompletedIndices": one.indices,
        **_known(submissionTime=stage.start and moment(stage.start)),
        **_known(firstTaskLaunchedTime=first and moment(first)),
        **_known(completionTime=stage.end and moment(stage.end)),
        **_known(failureReason=without_secrets(stage.failure)),
        "executorDeserializeTime": sums["executorDeserializeTime"],
        "executorDeserializeCpuTime": sums["executorDeserializeCpuTime"],
        "executorRunTime": sums["executorRunTime"],
        "executorCpuTime": sums["executorCpuTime"],
        "resultSize": sums["resultSize"],
        "jvmGcTime": sums["jvmGCTime"],
        "resultSerializationTime": sums["resultSerializationTime"],
        "memoryBytesSpilled": sums["memoryBytesSpilled"],
        "diskBytesSpilled": sums["diskBytesSpilled"],
        "peakExecutionMemory": stage.tasks.total("peak_memory"),
        "inputBytes": sums["bytesRead"],
        "inputRecords": sums["recordsRead"],
        "outputBytes": sums["bytesWritten"],
        "outputRecords": sums["recordsWritten"],
        "shuffleRemoteBlocksFetched": sums["shuffleRemoteBlocksFetched"],
        "shuffleLocalBlocksFetched": sums["shuffleLocalBlocksFetched"],
        "shuffleFetchWaitTime": sums["shuffleFetchWaitTime"],
        "shuffleRemoteBytesRead": sums["shuffleRemoteBytesRead"],
        "shuffleRemoteBytesReadToDisk": sums["shuffleRemoteBytesReadToDisk"],
        "shuffleLocalBytesRead": sums["shuffleLocalBytesRead"],
        "shuffleReadBytes": sums["shuffleRemoteBytesRead"] + sums["shuffleLocalBytesRead"],
        "shuffleReadRecords": sums["shuffleRecordsRead"],
        "shuffleRemoteReqsDuration": stage.tasks.total("remote_requests"),
        "shuffleWriteBytes": sums["shuffleBytesWritten"],
        "shuffleWriteTime": sums["shuffleWriteTime"],
        "shuffleWriteRecords": sums["shuffleRecordsWritten"],
        "name": stage.name,
        **_known(description=stage.description),
        "details": stage.details,
        "schedulingPool": stage.pool,
        "rddIds": list(stage.rdds),
        "killedTasksSummary": dict(stage.kills),
        "resourceProfileId": stage.resource_profile,
        **_known(speculationSummary=_speculation_summary(one)),
        **_known(peakExecutorMetrics={name: peak for name, (peak, _) in stage.peaks.items()}),
        **_known(taskMetricsDistributions=task_summary(stage.tasks)),
    }


def _speculation_summary(one: StageFigures) -> dict[str, int]:
    counts = one.speculative
    if not counts:
        return {}
    return {
        "numTasks": sum(counts.values()),
        "numActiveTasks": counts.get(RUNNING, 0),
        "numCompletedTasks": counts.get(SUCCESS, 0),
        "numFailedTasks": counts.get(FAILED, 0),
        "numKilledTasks": counts.get(KILLED, 0),
    }


def task_summary(table: TaskTable) -> dict[str, Any] | None:
    """`taskSummary`: quantiles over succeeded tasks. None if there is none.

    As Spark has it, quantile q of n sorted values is element min(⌊q·n⌋, n - 1).
    """
    status = table.column("status")
    count = status.count(SUCCESS)
    if not count:
        return None
    places = [min(int(quantile * count), count - 1) for quantile in QUANTILES]

    def of(*columns: str) -> list[float]:
        values: Sequence[int] = _where(table.column(columns[0]), status, SUCCESS, count)
        for column in columns[1:]:
            more = _where(table.column(column), status, SUCCESS, count)
            values = [value + other for value, other in zip(values, more, strict=True)]
        ordered = sorted(values)
        return [float(ordered[place]) for place in places]

    return {
        "quantiles": list(QUANTILES),
        "duration": of("duration"),
        "executorDeserializeTime": of("deserialize_time"),
        "executorDeserializeCpuTime": of("deserialize_cpu_time"),
        "executorRunTime": of("run_time"),
        "executorCpuTime": of("cpu_time"),
        "resultSize": of("result_size"),
        "jvmGcTime": of("gc_time"),
        "resultSerializationTime": of("serialize_time"),
        "gettingResultTime": of("getting"),
        "schedulerDelay": of("scheduler_delay"),
        "peakExecutionMemory": of("peak_memory"),
        "memoryBytesSpilled": of("memory_spilled"),
        "diskBytesSpilled": of("disk_spilled"),
        "inputMetrics": {"bytesRead": of("input_bytes"), "recordsRead": of("input_records")},
        "outputMetrics": {"bytesWritten": of("output_bytes"), "recordsWritten": of("output_records")},
        "shuffleReadMetrics": {
            "readBytes": of("shuffle_remote_bytes", "shuffle_local_bytes"),
            "readRecords": of("shuffle_read_records"),
            "remoteBlocksFetched": of("shuffle_remote_blocks"),
            "localBlocksFetched": of("shuffle_local_blocks"),
            "fetchWaitTime": of("fetch_wait"),
            "remoteBytesRead": of("shuffle_remote_bytes"),
            "remoteBytesReadToDisk": of("shuffle_remote_bytes_to_disk"),
            "totalBlocksFetched": of("shuffle_remote_blocks", "shuffle_local_blocks"),
            "remoteReqsDuration": of("remote_requests"),
        },
        "shuffleWriteMetrics": {
            "writeBytes": of("shuffle_write_bytes"),
            "writeRecords": of("shuffle_write_records"),
            "writeTime": of("shuffle_write_time"),
        },
    }


def executor_records(application: Application) -> Iterator[dict[str, Any]]:
    """`/applications/ID/allexecutors`. As there, times of the driver are those of the whole application."""
    return (_executor_record(application, one) for one in application.executors.values())


def _executor_record(application: Application, one: Executor) -> dict[str, Any]:
    duration, gc_time = one.total_duration, one.total_gc_time
    if one.id == "driver" and application.start:
        duration = max(0, application.until - application.start)
        gc_time = one.peak.get("TotalGCTime", 0)
    return {
        "id": one.id,
        "hostPort": f"{one.host}:{one.port}" if one.port else one.host,
        "isActive": not one.removed,
        "totalCores": one.cores,
        "maxTasks": one.cores // task_cpus(application, one),
        "activeTasks": one.active_tasks,
        "failedTasks": one.failed_tasks,
        "completedTasks": one.completed_tasks,
        "totalTasks": one.total_tasks,
        "totalDuration": duration,
        "totalGCTime": gc_time,
        "totalInputBytes": one.total_input_bytes,
        "totalShuffleRead": one.total_shuffle_read,
        "totalShuffleWrite": one.total_shuffle_write,
        "maxMemory": one.max_memory,
        "addTime": moment(one.added),
        **_known(removeTime=one.removed and moment(one.removed)),
        **_known(removeReason=one.reason),
        **_known(peakMemoryMetrics=dict(one.peak)),
        "attributes": dict(one.attributes),
        "resourceProfileId": one.resource_profile,
    }


def moment(milliseconds: int) -> str:
    """A time as the REST interface writes it: `2015-02-03T16:42:59.720GMT`."""
    try:
        seconds, rest = divmod(milliseconds, 1000)
        written = datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return moment(-1)
    return f"{written:%Y-%m-%dT%H:%M:%S}.{rest:03d}GMT"


def _known(**members: Any) -> dict[str, Any]:
    """Those that are not empty: the REST interface leaves others out."""
    return {name: value for name, value in members.items() if value}
