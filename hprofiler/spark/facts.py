"""spark.json: what Spark knows of an application, written and read with the same types.

All times are milliseconds since 1970 by the driver's clock, as Spark has them; 0 is unknown or not yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from hprofiler.base import bounded_json
from hprofiler.base.errors import HprofilerError
from hprofiler.base.paths import is_file
from hprofiler.base.text import printable
from hprofiler.runfolder import SPARK_FILE, replacing
from hprofiler.spark.application import Application, Job, Note, Stage, TaskTable

FORMAT = 1
MOST_BYTES = 256 << 20
MOST_TASKS = 1_000_000
"""Tasks that are kept: those of a recording, which is shorter than most applications."""

LARGEST = 1 << 53
Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
LONGEST = 1000
Text = Annotated[str, msgspec.Meta(max_length=LONGEST)]
_MOST_LISTED = 5000
_SLACK = 120.0  # seconds around a recording: the driver's clock may differ from ours
_LOST_LINES = ("damaged", "cut-inside", "too-long", "too-many")
_LACKING = ("-not-kept", "unreadable", "too-slow", "compacted", "driver-gone")
"""Ends of codes of notes about what is missing."""


class SparkError(HprofilerError):
    """What Spark knows cannot be read."""

    code = "spark-unknown"


class DriverClock(msgspec.Struct, frozen=True):
    """The driver's clock against the coordinator's, in seconds: how far it is ahead, and by how much that may
    be wrong. `source` is what it was measured with."""

    offset: float
    uncertainty: Annotated[float, msgspec.Meta(ge=0)]
    source: Text = ""


class RecordedExecutor(msgspec.Struct, frozen=True):
    id: Text
    host: Text = ""
    cores: Number = 0


class RecordedJob(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """`to` is 0 while it runs."""

    id: Number
    from_: Number = 0
    to: Number = 0
    description: Text = ""
    stages: tuple[Number, ...] = ()


class Waits(msgspec.Struct, frozen=True):
    """What Spark counts of a stage's tasks, in milliseconds: run time, and in it waits for shuffle blocks,
    writes of shuffles, and garbage collection. `run` is 0 where nothing is known."""

    run: Number = 0
    fetch: Number = 0
    shuffle_write: Number = 0
    gc: Number = 0


class RecordedStage(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """One attempt of a stage. `name` is its call site, such as `collect at App.scala:42`; `to` is 0 while it
    runs."""

    id: Number
    attempt: Number = 0
    name: Text = ""
    from_: Number = 0
    to: Number = 0
    tasks: Number = 0
    waits: Waits = Waits()


class Tasks(msgspec.Struct):
    """The tasks of one executor, in columns of equal length.

    `finish` is 0 for a task that ran when it was read. `cpu` is its CPU time in nanoseconds by Spark's own
    count (running and deserializing), 0 if it is unknown.
    """

    tid: list[Number] = []
    stage: list[Number] = []
    attempt: list[Number] = []
    launch: list[Number] = []
    finish: list[Number] = []
    cpu: list[Number] = []

    def add(self, tid: int, stage: int, attempt: int, launch: int, finish: int, cpu: int) -> None:
        for name, value in zip(
            self.__struct_fields__, (tid, stage, attempt, launch, finish, cpu), strict=True
        ):
            getattr(self, name).append(value)

    def rows(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(tid, stage, attempt, launch, finish, cpu) of each."""
        return zip(*(getattr(self, name) for name in self.__struct_fields__), strict=True)

    def __len__(self) -> int:
        return len(self.tid)


class SparkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An application. `source` is where it was read; `read` when, in milliseconds since 1970 by the
    coordinator's clock. `tasks` are by executor id, those of the recording. `damaged` counts lines of an
    event log that could not be read. `driver_pid` is the driver's process, if that is on the
    coordinator's machine and known. `clock` is None if nothing is known of the driver's clock. `notes` say
    what is missing.
    """

    format: int = FORMAT
    application: Text = ""
    attempt: Text = ""
    name: Text = ""
    version: Text = ""
    source: Text = ""
    read: Number = 0
    driver: Text = ""
    driver_pid: Number = 0
    clock: DriverClock | None = None
    executors: tuple[RecordedExecutor, ...] = ()
    jobs: tuple[RecordedJob, ...] = ()
    stages: tuple[RecordedStage, ...] = ()
    tasks: Mapping[Text, Tasks] = {}
    damaged: Number = 0
    notes: tuple[Text, ...] = ()

    @property
    def until(self) -> int:
        """When it was read, by the driver's clock: what has no end ran until then."""
        return self.read + round(self.clock.offset * 1000) if self.clock else self.read


ClockOf = Callable[[str], DriverClock | None]
"""From a driver's host to its clock, None if that is not known."""


def facts_of(
    application: Application, since: float, until: float, clock_of: ClockOf
) -> tuple[SparkFacts, list[Note]]:
    """The facts of a recording from a whole application: the tasks, stages and jobs that ran meanwhile. Then
    what is missing in them.

    `since` and `until` are the recording, in seconds since 1970 by this machine's clock. `clock_of` gives the
    clock of the driver's host.
    """
    clock = clock_of(application.driver)
    ahead = clock.offset if clock else 0.0
    first, last = (since + ahead - _SLACK) * 1000, (until + ahead + _SLACK) * 1000

    def is_meant(from_: int, to: int) -> bool:
        """Whether something that lasted so long overlaps the recording; `to` is 0 if it has not ended."""
        return 0 < from_ < last and (to == 0 or to >= first)

    stages: list[RecordedStage] = []
    tasks: dict[str, Tasks] = {}
    kept = left_out = 0
    for stage in application.stages.values():
        if stage.start and not is_meant(stage.start, stage.end):
            continue
        if stage.start:
            own = stage.id, stage.attempt, stage.name, stage.start, stage.end, stage.num_tasks
            stages.append(RecordedStage(*own, _waits(stage.tasks)))
        for executor, tid, launch, end, cpu in _tasks(stage):
            if not is_meant(launch, end):
                continue
            if kept >= MOST_TASKS:
                left_out += 1
                continue
            kept += 1
            of_executor = tasks.setdefault(application.executor_ids[executor], Tasks())
            of_executor.add(tid, stage.id, stage.attempt, launch, end, cpu)
    facts = SparkFacts(
        application=application.id,
        attempt=application.attempt,
        name=application.name,
        version=application.version,
        read=int(time.time() * 1000),
        driver=application.driver,
        clock=clock,
        executors=tuple(
            RecordedExecutor(one.id, one.host, max(0, one.cores)) for one in application.executors.values()
        ),
        jobs=tuple(
            RecordedJob(one.id, one.start, one.end, _described(one), one.stage_ids[:_MOST_LISTED])
            for one in application.jobs.values()
            if is_meant(one.start, one.end)
        ),
        stages=tuple(stages),
        tasks=tasks,
        damaged=sum(note.count for note in application.notes if note.code in _LOST_LINES),
    )
    notes = [Note("recorded-not-kept", left_out, f"{MOST_TASKS:,}")] if left_out else []
    return facts, [*notes, *(note for note in application.notes if note.code.endswith(_LACKING))]


def _described(job: Job) -> str:
    return printable(job.description[:LONGEST]) or job.name


def _waits(table: TaskTable) -> Waits:
    columns = ("run_time", "fetch_wait", "shuffle_write_time", "gc_time")
    run, fetch, write, gc = (min(table.total(name), LARGEST) for name in columns)
    return Waits(run, fetch, write // 1_000_000, gc)


def _tasks(stage: Stage) -> Iterator[tuple[int, int, int, int, int]]:
    """(executor's number, tid, launch, finish, CPU time) of each task.

    Tasks end when the driver begins to fetch their result; those whose end was lost, with their stage.
    """
    names = ("tid", "executor", "launch", "finish", "getting_result", "cpu_time", "deserialize_cpu_time")
    for tid, executor, launch, finish, getting, cpu, more in stage.tasks.columns(*names):
        end = getting or finish or stage.end
        if launch > 0 and min(tid, end, cpu, more) >= 0:
            yield executor, tid, launch, end, cpu + more


def write_facts(facts: SparkFacts, folder: Path) -> None:
    """Write spark.json into a run folder. Raises OSError."""
    with replacing(folder / SPARK_FILE) as file:
        file.write(msgspec.json.encode(facts))


def read_facts(folder: Path) -> SparkFacts | None:
    """The facts of a run folder, None if it has none. Raises SparkError for a damaged file."""
    path = folder / SPARK_FILE
    if not is_file(path):
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        content = bounded_json.printable_value(bounded_json.read(path.read_bytes(), MOST_BYTES))
        facts = msgspec.convert(content, SparkFacts)
        if facts.format != FORMAT:
            raise ValueError(f"format {facts.format}")
        for tasks in facts.tasks.values():
            list(tasks.rows())  # columns of unequal length
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise SparkError(f"{path} cannot be read: {error}", "run again, or remove it") from error
    return facts
