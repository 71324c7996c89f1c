"""spark.json: what Spark knows of an application, written and read with the same types.

All times are milliseconds since 1970 by the driver's clock, as Spark has them; 0 is unknown or not yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from hprofiler.base import bounded_json
from hprofiler.base.errors import HprofilerError
from hprofiler.base.paths import is_file
from hprofiler.base.text import printable
from hprofiler.runfolder import SPARK_FILE, replacing

FORMAT = 1
MOST_BYTES = 256 << 20
MOST_TASKS = 1_000_000
"""Tasks that are kept: those of a recording, which is shorter than most applications."""

LARGEST = 1 << 53
Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Text = Annotated[str, msgspec.Meta(max_length=1000)]


class SparkError(HprofilerError):
    """What Spark knows cannot be read."""

    code = "spark-unknown"


class DriverClock(msgspec.Struct, frozen=True):
    """The driver's clock against the coordinator's, in seconds: how far it is ahead, and by how much that may
    be wrong. `source` is what it was measured with."""

    offset: float
    uncertainty: Annotated[float, msgspec.Meta(ge=0)]
    source: Text = ""


class Executor(msgspec.Struct, frozen=True):
    id: Text
    host: Text = ""
    cores: Number = 0


class Job(msgspec.Struct, frozen=True, rename={"from_": "from"}):
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


class Stage(msgspec.Struct, frozen=True, rename={"from_": "from"}):
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
    executors: tuple[Executor, ...] = ()
    jobs: tuple[Job, ...] = ()
    stages: tuple[Stage, ...] = ()
    tasks: Mapping[Text, Tasks] = {}
    damaged: Number = 0
    notes: tuple[Text, ...] = ()

    @property
    def until(self) -> int:
        """When it was read, by the driver's clock: what has no end ran until then."""
        return self.read + round(self.clock.offset * 1000) if self.clock else self.read


class Collected:
    """Facts in the making: only tasks that ran between two moments (milliseconds by the driver's clock), and
    the jobs and stages that did."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self.executors: dict[str, Executor] = {}
        self.jobs: dict[int, Job] = {}
        self.stages: dict[tuple[int, int], Stage] = {}
        self.tasks: dict[str, Tasks] = {}
        self._count = 0
        self.left_out = 0

    def is_meant(self, from_: int, to: int) -> bool:
        """Whether something that lasted so long overlaps the recording; `to` is 0 if it has not ended."""
        return 0 < from_ < self._until and (to == 0 or to >= self._since)

    def add_task(
        self, executor: str, tid: int, stage: int, attempt: int, launch: int, finish: int, cpu: int
    ) -> None:
        if not self.is_meant(launch, finish):
            return
        if self._count >= MOST_TASKS:
            self.left_out += 1
            return
        self._count += 1
        self.tasks.setdefault(executor, Tasks()).add(tid, stage, attempt, launch, finish, cpu)

    def notes(self) -> list[str]:
        if not self.left_out:
            return []
        return [f"the recording had more than {MOST_TASKS:,} tasks; {self.left_out:,} of them are left out"]


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
        facts = msgspec.convert(_printable(bounded_json.read(path.read_bytes(), MOST_BYTES)), SparkFacts)
        if facts.format != FORMAT:
            raise ValueError(f"format {facts.format}")
        for tasks in facts.tasks.values():
            list(tasks.rows())  # columns of unequal length
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise SparkError(f"{path} cannot be read: {error}", "run again, or remove it") from error
    return facts


def _printable(value: object) -> object:
    """A JSON value without control characters; columns of numbers stay as they are."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(name)): _printable(one) for name, one in value.items()}
    if isinstance(value, list) and not (value and isinstance(value[0], int)):
        return [_printable(one) for one in value]
    return value
