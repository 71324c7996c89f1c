"""A Spark application: its jobs, stages, tasks and executors, whatever they were read from.

All times are milliseconds since 1970 by the driver's clock, and all durations milliseconds, except where a
name says nanoseconds; 0 is unknown or not yet.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import field

from hprofiler.base.text import some
from hprofiler.spark.causes import Cause
from hprofiler.spark.streams import StreamQuery

MOST_JOBS = 200_000
MOST_STAGES = 200_000
MOST_EXECUTORS = 100_000
MOST_TASKS = 10_000_000
_RESOURCE = re.compile(r"spark\.(task|executor)\.resource\.([\w-]+)\.amount")
_AMOUNT = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_ROWS = 1024
"""Tasks of one packed part of a table."""
_WORTH_PACKING = 64
_CODES = ("B", "H", "I", "Q", "Bz", "Hz", "Iz", "Qz")

TASK_COLUMNS = (
    "tid",
    "index",
    "attempt",
    "partition",
    "executor",
    "launch",
    "finish",
    "getting_result",
    "status",
    "speculative",
    "locality",
    "run_time",
    "cpu_time",
    "deserialize_time",
    "deserialize_cpu_time",
    "gc_time",
    "serialize_time",
    "fetch_wait",
    "shuffle_write_time",
    "remote_requests",
    "result_size",
    "peak_memory",
    "memory_spilled",
    "disk_spilled",
    "input_bytes",
    "input_records",
    "output_bytes",
    "output_records",
    "shuffle_remote_bytes",
    "shuffle_local_bytes",
    "shuffle_remote_bytes_to_disk",
    "shuffle_remote_blocks",
    "shuffle_local_blocks",
    "shuffle_read_records",
    "shuffle_write_bytes",
    "shuffle_write_records",
    "python_time",
)
"""What is known of a task. `cpu_time`, `deserialize_cpu_time` and `shuffle_write_time` are nanoseconds;
`getting_result` is a point in time; `executor` is a number in `Application.executor_ids`; `python_time` is
that of SQL's Python workers, at most the task's duration (0 before Spark 4)."""
DERIVED_COLUMNS = ("duration", "getting", "scheduler_delay")
"""What follows from the others, as Spark's own pages have it."""
READ_COLUMNS = ("input_bytes", "shuffle_remote_bytes", "shuffle_local_bytes")
"""All bytes that a task reads, from outside and from shuffles."""
_PEAKS = msgspec.msgpack.Decoder(dict[str, tuple[int, str]])
_PART = msgspec.msgpack.Decoder(list[int | tuple[str, int, bytes]])
_NUMBERS = {name: number for number, name in enumerate(TASK_COLUMNS)}

RUNNING, SUCCESS, FAILED, KILLED = range(4)
"""Values of the column `status`."""
DRIVERS = ("driver", "<driver>")
"""The driver's id among executors; Spark 1 wrote it with brackets."""
LOCALITIES = ("PROCESS_LOCAL", "NODE_LOCAL", "RACK_LOCAL", "ANY", "NO_PREF")
"""Values of the column `locality`."""


class Note(msgspec.Struct, frozen=True):
    """Something that is missing or wrong in what was read. `code` is a key of `report.spark.words.NOTES`."""

    code: str
    count: int = 0
    detail: str = ""


def other_attempts(read: str, others: Sequence[str]) -> Note:
    """That an application has other attempts than the one that was read."""
    return Note("other-attempts", len(others), f"{read}, not {some(list(others), 5)}")


class TaskTable:
    """The tasks of one attempt of a stage, in columns of equal length (TASK_COLUMNS), kept packed.

    Rows are in the order in which the tasks ended. Where `launch` is 0, nothing is known of a task's times.
    """

    __slots__ = ("_count", "_open", "_packed")

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[int, ...]] = []
        self._packed: list[bytes] = []

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, int]]) -> TaskTable:
        """A table of these rows; columns that a row lacks are 0."""
        table = cls()
        for row in rows:
            unknown = set(row) - set(TASK_COLUMNS)
            if unknown:
                raise KeyError(f"no column of a task: {sorted(unknown)}")
            table.add(tuple(row.get(name, 0) for name in TASK_COLUMNS))
        return table

    def add(self, row: tuple[int, ...]) -> None:
        """Add a task: its values in the order of TASK_COLUMNS, each below 2^63."""
        self._open.append(row)
        self._count += 1
        if len(self._open) >= _ROWS:
            self.pack()

    def pack(self) -> None:
        """Keep the tasks so far in a tenth of the memory."""
        if self._open:
            columns = [_packed(column) for column in zip(*self._open, strict=True)]
            self._packed.append(msgspec.msgpack.encode([*columns, len(self._open)]))
            self._open = []

    def packed(self) -> list[bytes]:
        """All tasks, for `unpacked`."""
        self.pack()
        return self._packed

    @classmethod
    def unpacked(cls, parts: list[bytes]) -> TaskTable:
        """Raises ValueError for parts that `packed` has not made."""
        table = cls()
        for part in parts:
            *columns, count = _PART.decode(part)
            if len(columns) != len(TASK_COLUMNS) or not isinstance(count, int) or not 0 <= count <= _ROWS:
                raise ValueError("not a table of tasks")
            for column in columns:
                _check(column, count)
            table._count += count
        table._packed = list(parts)
        return table

    def __len__(self) -> int:
        return self._count

    def column(self, name: str) -> array[int]:
        """The values of a column, one of TASK_COLUMNS or DERIVED_COLUMNS."""
        values = array("q")
        for (part,) in self.parts(name):
            values.extend(part)
        return values

    def columns(self, *names: str) -> Iterator[tuple[int, ...]]:
        """The values of several columns, task by task."""
        for part in self.parts(*names):
            yield from zip(*part, strict=True)

    def parts(self, *names: str) -> Iterator[list[array[int]]]:
        """The values of several columns for a part of the tasks at a time, each part decoded once."""
        for packed in self.packed():
            *columns, count = msgspec.msgpack.decode(packed)
            part = _Part(columns, count)
            yield [part.values(name) for name in names]

    def rows(self) -> Iterator[dict[str, int]]:
        """All tasks, as dictionaries."""
        for values in self.columns(*TASK_COLUMNS):
            yield dict(zip(TASK_COLUMNS, values, strict=True))

    def total(self, name: str) -> int:
        return sum(self.column(name))


class _Part:
    """A part of a table, unpacked column by column."""

    def __init__(self, columns: list[Any], count: int) -> None:
        self._columns, self._count = columns, count
        self._known: dict[str, array[int]] = {}

    def values(self, name: str) -> array[int]:
        if name not in self._known:
            derived = name in DERIVED_COLUMNS
            found = self._derived(name) if derived else _unpacked(self._columns[_NUMBERS[name]], self._count)
            self._known[name] = array("q", found)
        return self._known[name]

    def _derived(self, name: str) -> Iterable[int]:
        if name == "duration":
            pairs = zip(*map(self.values, ("launch", "finish")), strict=True)
            return (finish - launch if finish else 0 for launch, finish in pairs)
        if name == "getting":
            pairs = zip(*map(self.values, ("getting_result", "finish")), strict=True)
            return (finish - since if since and finish else 0 for since, finish in pairs)
        # Of a task whose executor was lost Spark has no times, and counts no delay.
        names = ("status", "duration", "getting", "run_time", "deserialize_time", "serialize_time")
        return (
            max(0, whole - getting - sum(known)) if any(known) or status == SUCCESS else 0
            for status, whole, getting, *known in zip(*map(self.values, names), strict=True)
        )


def _packed(column: tuple[int, ...]) -> int | tuple[str, int, bytes]:
    """Equal values are one number. Others are a type of array, the least of them, and what is above it."""
    least = int(min(column))  # some are bool
    span = max(column) - least
    if not span:
        return least
    code = "B" if span < 1 << 8 else "H" if span < 1 << 16 else "I" if span < 1 << 32 else "Q"
    values = array(code, [value - least for value in column] if least else column).tobytes()
    if len(values) < _WORTH_PACKING:
        return code, least, values
    return f"{code}z", least, zlib.compress(values, 1)


def _unpacked(column: Any, count: int) -> Iterable[int]:
    if isinstance(column, int):
        return array("q", (column,)) * count
    code, least, values = column
    above = _above(code, values, count)
    return map(int(least).__add__, above) if least else above


def _above(code: str, values: bytes, count: int) -> array[int]:
    """What values are above their least. Raises ValueError if they are not as many."""
    above = array(code[0])
    size = count * above.itemsize
    if code.endswith("z"):
        values = zlib.decompressobj().decompress(values, size + 1)
    if len(values) != size:
        raise ValueError("not a column of tasks")
    above.frombytes(values)
    return above


def _check(column: int | tuple[str, int, bytes], count: int) -> None:
    """Raises ValueError for a column that `_packed` has not made."""
    if isinstance(column, int):
        least, most = column, column
    else:
        code, least, values = column
        if code not in _CODES:
            raise ValueError("not a column of tasks")
        try:
            most = least + max(_above(code, values, count), default=0)
        except zlib.error as error:
            raise ValueError("not a column of tasks") from error
    if least < -(1 << 63) or most >= 1 << 63:
        raise ValueError("a number of a task is too large")


class Executor(msgspec.Struct):
    """An executor, or the driver.

    `peak` are the maxima of its memory metrics by Spark's names. It is empty if Spark did not log them; 0
    means that it was not sampled.

    Counts are as Spark counts: of tasks that ended before the executor was removed.
    """

    id: str
    host: str = ""
    port: int = 0
    added: int = 0
    removed: int = 0
    reason: str = ""
    cores: int = 0
    max_memory: int = 0
    max_onheap: int = 0
    resource_profile: int = 0
    peak: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    active_tasks: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    total_tasks: int = 0
    total_duration: int = 0
    total_gc_time: int = 0
    total_input_bytes: int = 0
    total_shuffle_read: int = 0
    total_shuffle_write: int = 0


class Job(msgspec.Struct):
    """A job. `status` is SUCCEEDED, FAILED, RUNNING or UNKNOWN; `failure` is Spark's reason of a failed one.

    `sql` is the id of its SQL execution, if it has one. `stage_ids` hold the stages that it skipped, too.
    `num_tasks` are those of stages that had not ended when it began.
    """

    id: int
    start: int = 0
    end: int = 0
    status: str = "UNKNOWN"
    name: str = ""
    description: str = ""
    group: str = ""
    stage_ids: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    num_tasks: int = 0
    num_skipped_tasks: int = 0
    sql: int | None = None
    failure: str = ""


class Stage(msgspec.Struct):
    """One attempt of a stage. `status` is ACTIVE, COMPLETE, FAILED, PENDING or SKIPPED.

    `failures` count its failed tasks by reason, `kills` its killed ones; `resubmitted` are tasks that were
    done, and lost with their executor. `causes` are those of the task that failed too often, or else last;
    `lost_blocks` are executors whose shuffle blocks its tasks could not fetch. `scopes` are names of
    the operators of a failed stage. `python` is whether its tasks run Python workers. `jobs` are those that
    waited for it.
    """

    id: int
    attempt: int = 0
    name: str = ""
    details: str = ""
    description: str = ""
    pool: str = "default"
    start: int = 0
    end: int = 0
    status: str = "PENDING"
    num_tasks: int = 0
    parents: tuple[int, ...] = ()
    rdds: tuple[int, ...] = ()
    failure: str = ""
    resource_profile: int = 0
    jobs: tuple[int, ...] = ()
    first_task_launched: int = 0
    tasks: TaskTable = field(default_factory=TaskTable)
    failures: dict[str, int] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    resubmitted: int = 0
    causes: tuple[Cause, ...] = ()
    lost_blocks: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    python: bool = False
    packed_peaks: bytes = b""

    @property
    def peaks(self) -> dict[str, tuple[int, str]]:
        """Memory metrics by Spark's names: the largest value, and the executor that had it."""
        return _PEAKS.decode(self.packed_peaks) if self.packed_peaks else {}

    @property
    def key(self) -> tuple[int, int]:
        return self.id, self.attempt


class Application(msgspec.Struct):
    """A whole application. `end` is 0 if it runs, or its end is not known. `version` is Spark's.
    `last_event` is the newest moment that any event has. `unplanned` are SQL queries that failed before they
    had a plan, by id: when, and their error. Secrets in `properties` are masked."""

    id: str = ""
    name: str = ""
    attempt: str = ""
    user: str = ""
    version: str = ""
    start: int = 0
    end: int = 0
    exit_code: int | None = None
    last_event: int = 0
    driver: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    executors: dict[str, Executor] = field(default_factory=dict)
    executor_ids: list[str] = field(default_factory=list)
    resource_profiles: dict[int, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    stages: dict[tuple[int, int], Stage] = field(default_factory=dict)
    sql: dict[int, Any] = field(default_factory=dict)
    streams: dict[str, StreamQuery] = field(default_factory=dict)
    unplanned: dict[int, tuple[int, str]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def until(self) -> int:
        """The end of what is known: of the application, else of its last event."""
        return self.end or self.last_event

    @property
    def workers(self) -> list[Executor]:
        """Executors that run tasks: without the driver, except in local mode."""
        without = [one for one in self.executors.values() if one.id not in DRIVERS]
        return without or list(self.executors.values())

    @property
    def most_cores(self) -> int:
        """Those of executors at the same time, at most."""
        changes = []
        for one in self.workers:
            changes.append((one.added, max(0, one.cores)))
            if one.removed:
                changes.append((one.removed, -max(0, one.cores)))
        return max(accumulate(by for _, by in sorted(changes)), default=0)


def task_slots(application: Application, executor: Executor) -> int:
    """How many tasks the executor can run at the same time, by its cores and other resources such as GPUs."""
    profile = application.resource_profiles.get(executor.resource_profile, {})
    of_executor = {**_resources(application, "executor"), **profile.get("executor", {})}
    of_task = {**_resources(application, "task"), **profile.get("task", {})}
    slots = [executor.cores // task_cpus(application, executor)]
    for name, amount in of_task.items():
        has = of_executor.get(name, 0)
        if name != "cpus" and amount > 0 and has > 0:
            # A part of a resource is a part of one GPU: three tasks of 0.4 do not share two.
            slots.append(int(has) * int(1 / amount + 1e-9) if amount < 1 else int(has // amount))
    return max(0, min(slots))


def _resources(application: Application, of: str) -> dict[str, float]:
    """Amounts of GPUs and the like, from settings such as `spark.task.resource.gpu.amount`."""
    found = {}
    for name, value in application.properties.items():
        match = _RESOURCE.fullmatch(name)
        if match and match.group(1) == of and _AMOUNT.fullmatch(value):
            found[match.group(2)] = float(value)
    return found


def task_cpus(application: Application, executor: Executor) -> int:
    """The CPUs of a task: of the executor's resource profile, else of the settings."""
    profile = application.resource_profiles.get(executor.resource_profile, {}).get("task", {})
    text = application.properties.get("spark.task.cpus", "1")
    of_settings = int(text) if text.isdecimal() and len(text) < 6 else 1
    return max(1, int(profile.get("cpus", of_settings)))
