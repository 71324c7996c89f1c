"""Reads event logs: line by line, in bounded memory, whatever is damaged or missing.

An event that cannot be read is counted and skipped. Nothing in a log is fatal but that it has no event.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from types import MethodType
from typing import Any
from zipfile import BadZipFile

import msgspec

from hprofiler.base.passwords import has_secret
from hprofiler.base.text import printable, some
from hprofiler.spark.application import (
    DRIVERS,
    FAILED,
    KILLED,
    LOCALITIES,
    MOST_EXECUTORS,
    MOST_JOBS,
    MOST_STAGES,
    MOST_TASKS,
    RUNNING,
    SUCCESS,
    TASK_COLUMNS,
    Application,
    Executor,
    Job,
    Note,
    Stage,
)
from hprofiler.spark.causes import EXECUTOR_LOST, MASK, Cause, cause_of
from hprofiler.spark.facts import LARGEST, SparkError
from hprofiler.spark.log import clock, events, sql
from hprofiler.spark.log.codecs import Decoded
from hprofiler.spark.log.files import LogFile, gaps
from hprofiler.spark.log.sql import SqlLog, python_time
from hprofiler.spark.log.streaming import MOST_BATCHES, StreamLog
from hprofiler.spark.log.texts import Texts

_LONGEST_LINE = 64 << 20
_LONG_LINE = 256 << 10
_MOST_IN_A_PLAN = 100_000
_MOST_OBJECTS = 400_000
_MOST_MEMBERS = 1_000_000
"""Objects and arrays of a line, and members of them all."""
_LONGEST_TEXT = 1000
_MOST_REASONS = 50
_LONGEST_REASON = 300
_LONGEST_DIGITS = 40
_ROUNDED = 10
"""Milliseconds by which Spark's rounding may make a part of a task longer than the task."""
_LONGEST_CAUSE = 4000
_MOST_CAUSES = 5000
"""Causes of failed tasks of stages that have not ended, each kept for its task."""
_MOST_LOST = 20
_MOST_RUNNING = 200_000
_MOST_PENDING = 20_000
_LONGEST_JOB = 100_000
_MOST_STAGE_IDS = 5_000_000
_MOST_PROPERTIES = 10_000
_MOST_ATTRIBUTES = 50
_MOST_PROFILES = 1000
_MOST_PARENTS = 1000
_MOST_WAITING = 100
_MOST_METRICS = 100
_LOOSE_TASKS = 50_000
_AGAIN = "Resubmitted"
_START = b'{"Event":"'
_LONGEST_NAME = 200
_SCOPE = re.compile(rb'\\"name\\": ?\\"([\x20-\x21\x23-\x5b\x5d-\x7e]*)\\"')
"""The name in an RDD's scope, which is JSON in a text."""
_PYTHON_RDD = "PythonRDD"
_PYTHON_SCOPE = re.compile(rb"Python|InPandas|InArrow")
"""In the names of SQL's operators that run Python workers."""
_LOCALITY = {name: number for number, name in enumerate(LOCALITIES)}
_NO_PREFERENCE = LOCALITIES.index("NO_PREF")
_NO_METRICS = events.TaskMetrics()
_NO_READ = events.ShuffleRead()
_NO_WRITE = events.ShuffleWrite()
_NO_INPUT = events.Input()
_NO_OUTPUT = events.Output()
_DATABRICKS_VERSION = "spark.databricks.clusterUsageTags.sparkVersion"
_FAILED_TASK = re.compile(r"Task (\d{1,9}) in stage ")


def read_application(files: Iterable[LogFile]) -> Application:
    """The application of an event log: of its files, oldest first.

    Raises SparkError if a file cannot be read, or none has an event of Spark.
    """
    reader = EventReader()
    names: list[str] = []
    for file in files:
        if reader.ended_early:
            reader.cut_inside(names[-1])
        names.append(file.name)
        reader.read(file)
    if not reader.events:
        shown = names[0] if names else "the log"
        raise SparkError(f"{shown} is not an event log of Spark: it has none of its events", "check the path")
    application = reader.application()
    if any(".compact" in name for name in names):
        removed = max(application.jobs, default=-1) + 1 - len(application.jobs)
        application.notes.append(Note("compacted", max(0, removed)))
    lacking, where = gaps(name.rpartition("/")[2] for name in names)
    if lacking:
        application.notes.append(Note("files-missing", lacking, where))
    return application


class EventReader:
    """An application in the making, event by event."""

    def __init__(self) -> None:
        self.events = 0
        self.ended_early = False
        self._application = Application()
        self._counts: dict[str, int] = {}
        self._damage = ""
        self._cut_files: list[str] = []
        self._started = False
        # By task id: the stage, and the beginning of the row of a task that has not ended.
        self._running: dict[int, tuple[Stage, tuple[int, ...]]] = {}
        self._gap = 0, 0  # the longest time without any event while tasks ran
        self._jobs_of_stage: dict[int, tuple[int, ...]] = {}
        self._stage_ids = 0
        self._pending: dict[int, Stage] = {}
        self._skipped = 0
        self._executors: list[Executor] = []
        self._numbers: dict[str, int] = {}
        self._texts = Texts()
        self._reasons = Texts()  # of failures: descriptions leave them their room
        self._peaks: dict[tuple[int, int], dict[str, tuple[int, str]]] = {}
        self._no_peaks = b""
        # By stage and the index of a task.
        self._causes: dict[tuple[int, int], dict[int, list[Cause]]] = {}
        self._causes_kept = 0
        self._loose: dict[tuple[int, int], Stage] = {}
        self._loose_tasks = 0
        self._tasks = 0
        self._sql = SqlLog()
        self._take: dict[bytes, tuple[Callable[[bytes], Any], Callable[[Any], None]]]
        self._take = {name: (decode, MethodType(take, self)) for name, (decode, take) in _TAKERS.items()}
        self._take.update(self._sql.takers())
        self._streams = StreamLog()
        self._take.update(self._streams.takers())

    def read(self, file: LogFile) -> None:
        """Take all lines of a file. Raises SparkError if it cannot be read."""
        try:
            with file.open() as stream:
                decoded = Decoded(stream)
                last = self._take_lines(decoded)
        except (OSError, EOFError, RuntimeError, BadZipFile, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SparkError(f"{file.name}: {reason}", "check the path, and that you may read it") from error
        if decoded.damage:
            self._count("unreadable")
            self._damage = f"{file.name}: {decoded.damage}"
        whole = not last or self.take(last)
        self.ended_early = decoded.cut or not whole

    def cut_inside(self, name: str) -> None:
        """Note that a file was cut, though others follow it."""
        self._count("cut-inside")
        self._cut_files.append(name)

    def take(self, line: bytes) -> bool:
        """Take one line. False if it is damaged."""
        if line.startswith(_START):
            end = line.find(b'"', len(_START), _LONGEST_NAME)
            name = line[len(_START) : end] if end > 0 else b""
        else:
            name = _name_inside(line)
        found = self._take.get(name)
        if found is None:
            self.events += name.startswith(b"SparkListener")
            return bool(name) or line.isspace()
        decode, method = found
        self.events += 1
        if len(line) > _LONG_LINE and _holds_too_much(name, line):
            self._count("too-many")
            return True
        try:
            event = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            try:
                event = decode(_repaired(line))
            except (ValueError, RecursionError):
                return False
            self._count("repaired")
        method(event)
        return True

    def application(self) -> Application:
        """What was read. Nothing can be taken afterwards."""
        application = self._application
        for stage, head in self._running.values():
            self._add_row(stage, head + (0,) * (len(TASK_COLUMNS) - len(head)))
        for stage in self._loose.values():
            stage.tasks.pack()
        for key in list(self._peaks):
            self._pack_peaks(key)
        application.sql = self._sql.finish()
        application.unplanned = self._sql.unplanned
        application.streams = self._streams.queries
        since, until = self._gap
        by = clock.set_forward(application, since, until)
        if by:
            self._count("clock-forward", round(by / 1000))
            clock.set_right(application, since, by)
        application.notes = list(self._notes())
        return application

    def _take_lines(self, blocks: Iterable[bytes]) -> bytes:
        """Take whole lines. Returns the last one, if it has no end."""
        held: list[bytes] = []
        size = 0
        take = self.take
        for block in blocks:
            lines = block.split(b"\n")
            last = lines.pop()
            if lines:
                if size > _LONGEST_LINE:
                    self._count("too-long")
                    lines[0] = b""
                elif held:
                    lines[0] = b"".join((*held, lines[0]))
                held, size = [], 0
                for line in lines:
                    if line and not take(line):
                        self._count("damaged")
            size += len(last)
            if size > _LONGEST_LINE:
                held = []
            elif last:
                held.append(last)
        if size > _LONGEST_LINE:
            self._count("too-long")
            return b""
        return b"".join(held)

    def _count(self, code: str, number: int = 1) -> None:
        self._counts[code] = self._counts.get(code, 0) + number

    def _notes(self) -> Iterator[Note]:
        application = self._application
        details = {
            "unreadable": self._damage,
            "cut-inside": some(self._cut_files, 4),
            "too-long": f"{_LONGEST_LINE >> 20} MiB",
            "tasks-not-kept": f"{MOST_TASKS:,}",
            "stages-not-kept": f"{MOST_STAGES:,} (of skipped ones {_MOST_PENDING:,})",
            "jobs-not-kept": f"{MOST_JOBS:,}",
            "executors-not-kept": f"{MOST_EXECUTORS:,}",
        }
        if self.ended_early:
            self._count("cut")
        for code, count in self._counts.items():
            yield Note(code, count, details.get(code, ""))
        if self._sql.left_out:
            yield Note("sql-not-kept", self._sql.left_out, f"{sql.MOST_EXECUTIONS:,}")
        if self._sql.without_details:
            yield Note("plans-not-kept", self._sql.without_details, f"{sql.MOST_PACKED >> 20} MiB")
        if self._sql.left_out_stages:
            yield Note("sql-stages-not-kept", self._sql.left_out_stages, f"{sql.MOST_STAGES:,}")
        if self._sql.left_out_metrics:
            yield Note("sql-metrics-not-kept", self._sql.left_out_metrics, f"{sql.MOST_VALUES:,}")
        if self._streams.left_out:
            yield Note("batches-not-kept", self._streams.left_out, f"{MOST_BATCHES:,}")
        if not application.end:
            yield Note("no-end")
        missing = {}
        for stage in application.stages.values():
            if stage.status == "COMPLETE" and len(stage.tasks) < stage.num_tasks:
                missing[stage.key] = stage.num_tasks - len(stage.tasks)
            elif stage.end and not stage.failure:  # killed tasks of others may not have ended yet
                lost = stage.tasks.column("status").count(RUNNING)
                missing.update({stage.key: lost} if lost else {})
        if missing:
            shown = [f"stage {number}.{attempt}" for number, attempt in list(missing)[:5]]
            yield Note("tasks-missing", sum(missing.values()), some(shown, 4))
        if application.end:
            active = sum(stage.status == "ACTIVE" for stage in application.stages.values())
            running = sum(job.status == "RUNNING" for job in application.jobs.values())
            yield from (Note("stages-missing", active) for _ in range(active > 0))
            yield from (Note("jobs-missing", running) for _ in range(running > 0))

    # Application and executors

    def _log_start(self, event: events.LogStart) -> None:
        self._application.version = self._application.version or _short(event.version)

    def _application_start(self, event: events.ApplicationStart) -> None:
        found = self._application
        key = _short(event.id), _short(event.attempt), event.time
        if self._started and key != (found.id, found.attempt, found.start):
            first, second = found.id or found.name, _short(event.id or event.name)
            reason = f"the log has several applications: {first}, and {second}"
            raise SparkError(reason, "name the event log of one application and attempt")
        self._started = True
        found.id, found.attempt, found.start = key
        found.name, found.user = _short(event.name), _short(event.user)

    def _application_end(self, event: events.ApplicationEnd) -> None:
        found = self._application
        back = 0 < event.time < found.start
        found.end = max(found.start, found.last_event) if back else event.time
        found.exit_code = event.exit_code
        if back:
            self._count("clock-back")

    def _environment(self, event: events.EnvironmentUpdate) -> None:
        found = self._application
        for name, value in list(event.properties.items())[:_MOST_PROPERTIES]:
            found.properties[_short(name)] = masked(_short(name), _short(value))
        found.version = found.version or found.properties.get(_DATABRICKS_VERSION, "")

    def _resource_profile(self, event: events.ResourceProfileAdded) -> None:
        if len(self._application.resource_profiles) < _MOST_PROFILES:
            self._application.resource_profiles[event.id] = {
                "executor": {_short(name): one.amount for name, one in event.executor.items()},
                "task": {_short(name): one.amount for name, one in event.task.items()},
            }

    def _executor_added(self, event: events.ExecutorAdded) -> None:
        executor = self._executor(event.id)
        executor.host, executor.cores = _short(event.info.host), event.info.cores
        executor.added = executor.added or event.time
        executor.removed, executor.reason = 0, ""
        executor.resource_profile = event.info.profile
        executor.attributes = {
            _short(name): masked(_short(name), _short(value))
            for name, value in list(event.info.attributes.items())[:_MOST_ATTRIBUTES]
        }
        self._seen(event.time)

    def _executor_removed(self, event: events.ExecutorRemoved) -> None:
        executor = self._executor(event.id)
        executor.removed = self._not_before(executor.added, event.time)
        executor.reason = self._reasons.keep(event.reason)
        self._seen(event.time)

    def _block_manager(self, event: events.BlockManagerAdded) -> None:
        manager = event.manager
        executor = self._executor(manager.id)
        executor.host, executor.port = executor.host or _short(manager.host), manager.port
        executor.added = executor.added or event.time
        executor.max_memory = event.memory
        executor.max_onheap = event.onheap or 0
        if manager.id in DRIVERS:
            self._application.driver = _short(manager.host)

    def _executor(self, id_: str, host: str = "") -> Executor:
        number = self._numbers.get(id_)
        return self._executors[self._executor_number(id_, host) if number is None else number]

    def _executor_number(self, id_: str, host: str) -> int:
        """The number of an executor, which may be new."""
        if len(self._executors) >= MOST_EXECUTORS:
            self._count("executors-not-kept")
            id_, host = "others", ""
        key = _short(id_)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._executors)
            executor = Executor(key, _short(host))
            self._executors.append(executor)
            self._application.executors[key] = executor
            self._application.executor_ids.append(key)
            self._numbers[key] = number
        if len(self._numbers) < 2 * MOST_EXECUTORS:
            self._numbers[id_] = number
        return number

    def _not_before(self, start: int, end: int) -> int:
        """The end of something; its start, if the clock was set back meanwhile."""
        if not 0 < end < start:
            return end
        self._count("clock-back")
        return start

    def _seen(self, moment: int) -> None:
        last = self._application.last_event
        if moment > last:
            if moment - last > self._gap[1] - self._gap[0] and self._running:
                self._gap = last, moment
            self._application.last_event = moment

    # Jobs and stages

    def _job_start(self, event: events.JobStart) -> None:
        application = self._application
        stages = tuple(event.stages[:_LONGEST_JOB])
        self._stage_ids += len(stages)
        if event.id < 0 or len(application.jobs) >= MOST_JOBS or self._stage_ids > _MOST_STAGE_IDS:
            self._count("jobs-not-kept" if event.id >= 0 else "damaged")
            return
        properties = event.properties or {}
        last = max(event.infos, key=lambda info: info.id, default=None)
        application.jobs[event.id] = Job(
            event.id,
            start=event.time,
            status="RUNNING",
            name=_short(last.name if last else ""),
            description=self._texts.keep(properties.get("spark.job.description")),
            group=_short(properties.get("spark.jobGroup.id")),
            stage_ids=stages,
            num_tasks=sum(info.tasks for info in event.infos if info.end is None),
            sql=_whole(properties.get("spark.sql.execution.id")),
        )
        job = application.jobs[event.id]
        if job.sql is not None:
            self._sql.job_started(job.id, job.sql, [(info.id, info.tasks) for info in event.infos])
        for id_ in stages:
            waiting = self._jobs_of_stage.get(id_, ())
            if len(waiting) < _MOST_WAITING:
                self._jobs_of_stage[id_] = (*waiting, event.id)
        for info in event.infos:
            self._add_pending(info)
        self._seen(event.time)

    def _add_pending(self, info: events.StageInfo) -> None:
        """A stage of a job that has just begun. It may never start."""
        stage = self._application.stages.get((info.id, info.attempt))
        if stage is not None:
            if not stage.end:
                stage.jobs = self._jobs_of_stage.get(info.id, ())
        elif self._skipped + len(self._pending) < _MOST_PENDING:
            stage = self._new_stage((info.id, info.attempt))
            if stage is not None:
                self._describe(stage, info)
                stage.jobs = self._jobs_of_stage.get(info.id, ())
                self._pending[info.id] = stage
        else:
            self._count("stages-not-kept")

    def _job_end(self, event: events.JobEnd) -> None:
        job = self._application.jobs.get(event.id)
        if job is None or job.end:
            return
        job.end = self._not_before(job.start, event.time)
        job.status = "SUCCEEDED" if event.result.result == "JobSucceeded" else "FAILED"
        if event.result.exception is not None:
            job.failure = self._reasons.keep(event.result.exception.message)
        self._sql.job_ended(job.id, job.status == "SUCCEEDED")
        skipped = []
        for id_ in job.stage_ids:
            waiting = tuple(one for one in self._jobs_of_stage.pop(id_, ()) if one != job.id)
            if waiting:
                self._jobs_of_stage[id_] = waiting
            stage = self._pending.pop(id_, None)
            if stage is not None:
                stage.status = "SKIPPED"
                skipped.append(id_)
                job.num_skipped_tasks += stage.num_tasks
        self._skipped += len(skipped)
        job.skipped = tuple(skipped)
        self._seen(event.time)

    def _stage_submitted(self, event: events.StageEvent) -> None:
        info = event.info
        stage = self._stage((info.id, info.attempt))
        if stage is None:
            return
        self._pending.pop(info.id, None)
        self._describe(stage, info)
        properties = event.properties or {}
        stage.status = "ACTIVE"
        stage.description = self._texts.keep(properties.get("spark.job.description"))
        stage.pool = _short(properties.get("spark.scheduler.pool")) or "default"
        stage.jobs = self._jobs_of_stage.get(info.id, ())
        stage.python = any(map(_runs_python, info.rdds[:_MOST_PARENTS]))
        self._sql.stage_submitted(info.id, info.attempt)
        self._seen(stage.start)

    def _stage_completed(self, event: events.StageEvent) -> None:
        info = event.info
        stage = self._stage((info.id, info.attempt))
        if stage is None:
            return
        self._describe(stage, info)
        stage.end = self._not_before(stage.start, info.end or 0)
        stage.failure = self._reasons.keep(info.failure)
        if stage.failure:
            names = (_SCOPE.search(bytes(rdd.scope)) for rdd in info.rdds[:_MOST_PARENTS])
            stage.scopes = tuple(dict.fromkeys(_short(one.group(1).decode()) for one in names if one))
        # Spark's rule: a stage that was never submitted was skipped.
        stage.status = "FAILED" if info.failure is not None else "COMPLETE" if stage.start else "SKIPPED"
        causes = self._causes.pop(stage.key, {})
        self._causes_kept -= sum(map(len, causes.values()))
        if stage.failure and causes:
            failed = _FAILED_TASK.search(stage.failure)
            stage.causes = tuple(causes.get(int(failed.group(1)) if failed else next(reversed(causes)), ()))
        stage.tasks.pack()
        self._loose.pop(stage.key, None)
        self._pack_peaks(stage.key)
        self._seen(stage.end)

    def _stage(self, key: tuple[int, int]) -> Stage | None:
        """A stage by its id and attempt, which may be new. None if it cannot be kept."""
        stage = self._application.stages.get(key)
        if stage is None and key[0] >= 0:
            stage = self._new_stage(key)
            if stage is not None:
                stage.status = "ACTIVE"
        return stage

    def _new_stage(self, key: tuple[int, int]) -> Stage | None:
        stages = self._application.stages
        if len(stages) >= MOST_STAGES:
            self._count("stages-not-kept")
            return None
        stages[key] = stage = Stage(*key)
        return stage

    def _describe(self, stage: Stage, info: events.StageInfo) -> None:
        stage.name = _short(info.name)
        stage.num_tasks = info.tasks
        stage.start = info.start or stage.start
        stage.parents = tuple(info.parents[:_MOST_PARENTS])
        stage.rdds = tuple(rdd.id for rdd in info.rdds[:_MOST_PARENTS])
        stage.resource_profile = info.profile
        stage.details = self._texts.keep(info.details)

    # Tasks

    def _task_start(self, event: events.TaskStart) -> None:
        info = event.info
        stage = self._stage((event.stage, event.attempt))
        if stage is None or info.tid < 0:
            return
        if info.launch and (info.launch < stage.first_task_launched or not stage.first_task_launched):
            stage.first_task_launched = info.launch
        executor = self._executor(info.executor, info.host)
        if not executor.removed:
            executor.active_tasks += 1
            executor.total_tasks += 1
        self._seen(info.launch)
        if len(self._running) < _MOST_RUNNING:
            self._running[info.tid] = (stage, self._head(info, RUNNING))

    def _task_end(self, event: events.TaskEnd) -> None:
        info = event.info
        self._running.pop(info.tid, None)
        stage = self._stage((event.stage, event.attempt))
        if stage is None or info.tid < 0:
            self._count("tasks-not-kept" if info.tid >= 0 else "damaged")
            return
        if not info.launch or not info.finish:
            self._count("without-times")
            info.launch = info.finish = 0
        info.finish = self._not_before(info.launch, info.finish)
        status = self._status(stage, event)
        metrics = event.metrics or _NO_METRICS
        read, write = metrics.read or _NO_READ, metrics.write or _NO_WRITE
        input_, output = metrics.input or _NO_INPUT, metrics.output or _NO_OUTPUT
        whole = max(metrics.run, info.finish - info.launch) + _ROUNDED
        if read.fetch_wait > whole or metrics.gc > whole or write.time > whole * 1_000_000:
            self._count("clock-back")
            metrics.gc = min(metrics.gc, whole)
            read.fetch_wait, write.time = min(read.fetch_wait, whole), min(write.time, whole * 1_000_000)
        again = event.reason.reason == _AGAIN
        executor = self._executor(info.executor, info.host)
        if not executor.removed:
            executor.completed_tasks += status == SUCCESS
            executor.failed_tasks += status == FAILED
            if not again:
                executor.active_tasks -= 1
                executor.total_duration += info.finish - info.launch if info.finish else 0
                executor.total_gc_time += metrics.gc
                executor.total_input_bytes += input_.size
                executor.total_shuffle_read += read.local_bytes + read.remote_bytes
                executor.total_shuffle_write += write.size
        if again:  # the task had ended before, and stands in the table
            stage.resubmitted += 1
            return
        if stage.first_task_launched == 0:
            stage.first_task_launched = info.launch
        self._seen(info.finish)
        row = (
            *self._head(info, status),
            metrics.run,
            metrics.cpu,
            metrics.deserialize,
            metrics.deserialize_cpu,
            metrics.gc,
            metrics.serialize,
            read.fetch_wait,
            write.time,
            read.remote_requests,
            metrics.result_size,
            metrics.peak,
            metrics.memory_spilled,
            metrics.disk_spilled,
            input_.size,
            input_.records,
            output.size,
            output.records,
            read.remote_bytes,
            read.local_bytes,
            read.remote_to_disk,
            read.remote_blocks,
            read.local_blocks,
            read.records,
            write.size,
            write.records,
            min(python_time(info.accumulables), max(0, info.finish - info.launch)),
        )
        if min(row) < 0:  # a clock that was set back counts so
            row = tuple(max(0, value) for value in row)
        self._add_row(stage, row)
        self._sql.task_ended(
            stage.id, stage.attempt, info.tid, info.index, status == SUCCESS, info.accumulables
        )
        peaks = bytes(event.peaks)
        if peaks and peaks != self._no_peaks:
            self._add_peaks(stage, executor, peaks)

    def _head(self, info: events.TaskInfo, status: int) -> tuple[int, ...]:
        """The first columns of a task's row."""
        return (
            info.tid,
            info.index,
            info.attempt,
            info.index if info.partition is None else info.partition,
            self._numbers.get(info.executor, 0),
            info.launch,
            info.finish if status else 0,
            info.getting_result,
            status,
            info.speculative,
            _LOCALITY.get(info.locality, _NO_PREFERENCE),
        )

    def _add_row(self, stage: Stage, row: tuple[int, ...]) -> None:
        if self._tasks >= MOST_TASKS:
            self._count("tasks-not-kept")
            return
        self._tasks += 1
        stage.tasks.add(row)
        self._loose[stage.key] = stage
        self._loose_tasks += 1
        if self._loose_tasks > _LOOSE_TASKS:
            for loose in self._loose.values():
                loose.tasks.pack()
            self._loose.clear()
            self._loose_tasks = 0

    def _status(self, stage: Stage, event: events.TaskEnd) -> int:
        reason = event.reason.reason
        if reason == "Success":
            return SUCCESS
        if reason == _AGAIN:
            return FAILED
        info = event.info
        if not reason:
            return KILLED if info.killed else FAILED if info.failed else SUCCESS
        if reason in ("TaskKilled", "TaskCommitDenied"):
            self._add_reason(stage.kills, event.reason.kill or reason, reason)
            return KILLED
        cause = _task_cause(event.reason)
        reason = f"executor lost: {cause.message}" if cause.executor else cause.text
        self._add_reason(stage.failures, reason[:_LONGEST_REASON], cause.kind)
        self._add_cause(stage, info.index, cause)
        if event.reason.address is not None and len(stage.lost_blocks) < _MOST_LOST:
            id_ = _short(event.reason.address.id)
            stage.lost_blocks += () if id_ in stage.lost_blocks else (id_,)
        return FAILED

    def _add_reason(self, counts: dict[str, int], reason: str, kind: str) -> None:
        """Count a task by its reason; by the kind of it, where there are too many."""
        key = reason if reason in counts or len(counts) < _MOST_REASONS else kind
        if key in counts or len(counts) < 2 * _MOST_REASONS:
            key = self._texts.keep(key)
            counts[key] = counts.get(key, 0) + 1

    def _add_cause(self, stage: Stage, index: int, cause: Cause) -> None:
        if self._causes_kept < _MOST_CAUSES:
            self._causes_kept += 1
            kept = Cause(*(text[:_LONGEST_CAUSE] for text in cause))
            of_stage = self._causes.setdefault(stage.key, {})
            of_stage[index] = [*of_stage.pop(index, []), kept]  # the last one that failed is last

    # Memory

    def _stage_metrics(self, event: events.StageExecutorMetrics) -> None:
        executor = self._executor(event.executor)
        stage = self._stage((event.stage, event.attempt))
        self._add_peaks(stage, executor, bytes(event.peaks))
        if stage is not None and stage.end:
            self._pack_peaks(stage.key)

    def _executor_metrics(self, event: events.ExecutorMetricsUpdate) -> None:
        """Of heartbeats. Those that come after the end of a stage are not its own, whatever they say."""
        for update in event.updates:
            stage = self._application.stages.get((update.stage, update.attempt))
            running = stage if stage is not None and not stage.end else None
            self._add_peaks(running, self._executor(event.executor), bytes(update.peaks))

    def _add_peaks(self, stage: Stage | None, executor: Executor, packed: bytes) -> None:
        """Maxima of memory metrics, for the executor and the stage."""
        try:
            values = events.MEMORY.decode(packed)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if len(values) > _MOST_METRICS:
            return
        if not any(values.values()):
            self._no_peaks = packed
            return
        for name, value in values.items():
            if value > executor.peak.get(name, -1):
                executor.peak[name] = value
        if stage is not None:
            known = self._peaks.get(stage.key)
            if known is None:
                known = self._peaks[stage.key] = dict(stage.peaks)
            for name, value in values.items():
                if value > known.get(name, (0, ""))[0]:
                    known[name] = (value, executor.id)

    def _pack_peaks(self, key: tuple[int, int]) -> None:
        known = self._peaks.pop(key, None)
        if known:
            self._application.stages[key].packed_peaks = msgspec.msgpack.encode(known)


_TAKERS: dict[bytes, tuple[Callable[[bytes], Any], Callable[[EventReader, Any], None]]] = {
    b"SparkListener" + name: (msgspec.json.Decoder(kind).decode, take)
    for name, kind, take in (
        (b"LogStart", events.LogStart, EventReader._log_start),
        (b"ApplicationStart", events.ApplicationStart, EventReader._application_start),
        (b"ApplicationEnd", events.ApplicationEnd, EventReader._application_end),
        (b"EnvironmentUpdate", events.EnvironmentUpdate, EventReader._environment),
        (b"ResourceProfileAdded", events.ResourceProfileAdded, EventReader._resource_profile),
        (b"ExecutorAdded", events.ExecutorAdded, EventReader._executor_added),
        (b"ExecutorRemoved", events.ExecutorRemoved, EventReader._executor_removed),
        (b"BlockManagerAdded", events.BlockManagerAdded, EventReader._block_manager),
        (b"JobStart", events.JobStart, EventReader._job_start),
        (b"JobEnd", events.JobEnd, EventReader._job_end),
        (b"StageSubmitted", events.StageEvent, EventReader._stage_submitted),
        (b"StageCompleted", events.StageEvent, EventReader._stage_completed),
        (b"TaskStart", events.TaskStart, EventReader._task_start),
        (b"TaskEnd", events.TaskEnd, EventReader._task_end),
        (b"StageExecutorMetrics", events.StageExecutorMetrics, EventReader._stage_metrics),
        (b"ExecutorMetricsUpdate", events.ExecutorMetricsUpdate, EventReader._executor_metrics),
    )
}
"""What decodes and what takes each event, by the name that stands in the log."""


def masked(name: str, value: str) -> str:
    """A property's value, or a mask if it may be a secret."""
    return MASK if has_secret(f"{name}={value}") else value


def _repaired(line: bytes) -> bytes:
    """A line whose bytes are all UTF-8, and whose numbers are not too large. Raises ValueError."""
    content = json.loads(
        line.decode(errors="replace"),
        parse_int=_clamped,
        parse_float=_clamped_float,
        parse_constant=_clamped_float,
    )
    return json.dumps(content).encode()


def _clamped(digits: str) -> int:
    number = int(digits) if len(digits) < _LONGEST_DIGITS else LARGEST * (-1 if digits.startswith("-") else 1)
    return max(-LARGEST, min(LARGEST, number))


def _clamped_float(digits: str) -> float:
    number = float(digits)
    if number != number:
        return 0
    return max(-LARGEST, min(LARGEST, int(number))) if abs(number) >= LARGEST else number


def _runs_python(rdd: events.RddInfo) -> bool:
    if rdd.name == _PYTHON_RDD:
        return True
    scope = _SCOPE.search(bytes(rdd.scope))
    return scope is not None and _PYTHON_SCOPE.search(scope.group(1)) is not None


def _task_cause(reason: events.TaskEndReason) -> Cause:
    """Why a task failed."""
    if reason.loss is not None or reason.reason == EXECUTOR_LOST:
        return Cause(EXECUTOR_LOST, cause_of(reason.loss or "").text, _short(reason.executor) or "unknown")
    described = f"{reason.kind}: {reason.description}" if reason.kind else reason.message or reason.reason
    stack = reason.stack if reason.kind and (reason.stack or "").startswith(reason.kind) else None
    return cause_of(stack or described)


def _holds_too_much(name: bytes, line: bytes) -> bool:
    """Whether its objects would take much more memory than the line."""
    most = _MOST_IN_A_PLAN if name.startswith(events.SQL_PREFIX) else _MOST_OBJECTS
    return line.count(b"{") + line.count(b"[") > most or line.count(b",") > _MOST_MEMBERS


def _name_inside(line: bytes) -> bytes:
    """The event of a line that does not begin with it, or b""."""
    try:
        return events.ANY.decode(line).name.encode() if line.startswith((b"{", b" ")) else b""
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return b""


def _short(text: object) -> str:
    return printable(text[:_LONGEST_TEXT]) if isinstance(text, str) else ""


def _whole(text: object) -> int | None:
    known = isinstance(text, str) and text.isdecimal() and len(text) < 16
    return int(text) if known and isinstance(text, str) else None
