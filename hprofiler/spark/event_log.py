"""Spark's event logs: one file, or the folder of a rolling log. Read line by line; no field is required."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import field

from hprofiler.base.paths import is_file, is_folder
from hprofiler.base.text import printable
from hprofiler.spark.facts import Collected, Executor, Job, Number, SparkError, SparkFacts, Stage
from hprofiler.spark.rest import ClockOf

_LONGEST_LINE = 64 << 20
_LONGEST_TEXT = 1000
_MOST_RUNNING = 1_000_000
_MOST_STAGES = 5000
_SLACK = 120.0  # seconds around the recording: the driver's clock may differ from ours
_EVENTS = re.compile(rb'\{"Event":"SparkListener(\w+)"')
_ROLLED = re.compile(r"events_(\d{1,9})_.*")
_MARKS = (".inprogress", ".compact")
_CODECS = ("zstd", "lz4", "lzf", "snappy")


class _TaskInfo(msgspec.Struct):
    tid: Number = field(default=0, name="Task ID")
    executor: str = field(default="", name="Executor ID")
    launch: Number = field(default=0, name="Launch Time")
    getting_result: Number = field(default=0, name="Getting Result Time")
    finish: Number = field(default=0, name="Finish Time")


class _TaskMetrics(msgspec.Struct):
    cpu: Number = field(default=0, name="Executor CPU Time")
    deserialize: Number = field(default=0, name="Executor Deserialize CPU Time")


class _Task(msgspec.Struct):
    """TaskStart and TaskEnd."""

    stage: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    info: _TaskInfo = field(default_factory=_TaskInfo, name="Task Info")
    metrics: _TaskMetrics | None = field(default=None, name="Task Metrics")


class _StageInfo(msgspec.Struct):
    id: Number = field(default=0, name="Stage ID")
    attempt: Number = field(default=0, name="Stage Attempt ID")
    name: str = field(default="", name="Stage Name")
    tasks: Number = field(default=0, name="Number of Tasks")
    from_: Number = field(default=0, name="Submission Time")
    to: Number = field(default=0, name="Completion Time")


class _Stage(msgspec.Struct):
    info: _StageInfo = field(default_factory=_StageInfo, name="Stage Info")


class _Job(msgspec.Struct):
    """JobStart and JobEnd."""

    id: Number = field(default=0, name="Job ID")
    from_: Number = field(default=0, name="Submission Time")
    to: Number = field(default=0, name="Completion Time")
    stages: list[Number] = field(default_factory=list, name="Stage IDs")
    infos: list[_StageInfo] = field(default_factory=list, name="Stage Infos")
    properties: dict[str, Any] | None = field(default=None, name="Properties")


class _ExecutorInfo(msgspec.Struct):
    host: str = field(default="", name="Host")
    cores: Number = field(default=0, name="Total Cores")


class _Executor(msgspec.Struct):
    id: str = field(default="", name="Executor ID")
    info: _ExecutorInfo = field(default_factory=_ExecutorInfo, name="Executor Info")


class _BlockManager(msgspec.Struct):
    id: str = field(default="", name="Executor ID")
    host: str = field(default="", name="Host")


class _BlockManagerAdded(msgspec.Struct):
    manager: _BlockManager = field(default_factory=_BlockManager, name="Block Manager ID")


class _Application(msgspec.Struct):
    name: str = field(default="", name="App Name")
    id: str | None = field(default=None, name="App ID")
    attempt: str | None = field(default=None, name="App Attempt ID")


class _LogStart(msgspec.Struct):
    version: str = field(default="", name="Spark Version")


_DECODERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(kind)
    for name, kind in {
        b"LogStart": _LogStart,
        b"ApplicationStart": _Application,
        b"ExecutorAdded": _Executor,
        b"BlockManagerAdded": _BlockManagerAdded,
        b"JobStart": _Job,
        b"JobEnd": _Job,
        b"StageSubmitted": _Stage,
        b"StageCompleted": _Stage,
        b"TaskStart": _Task,
        b"TaskEnd": _Task,
    }.items()
}


def read_event_log(path: Path, since: float, until: float, clock_of: ClockOf) -> SparkFacts:
    """The facts of a recording from an event log. Raises SparkError if there is none, or it cannot be read.

    `since` and `until` are the recording, in seconds since 1970 by this machine's clock. `clock_of` gives the
    clock of the driver's host.
    """
    log = _Log(Collected((since - _SLACK) * 1000, (until + _SLACK) * 1000))
    try:
        for file in log_files(path):
            with _opened(file) as lines:
                for line in _lines(lines):
                    log.take(line)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SparkError(f"{path}: {reason}", "check the path, and that you may read it") from error
    if not log.events:
        raise SparkError(f"{path} is not an event log of Spark: it has none of its events", "check the path")
    facts = log.facts()
    return msgspec.structs.replace(facts, clock=clock_of(facts.driver))


def log_files(path: Path) -> list[Path]:
    """The files of an event log, oldest first: itself, or those of a rolling log's folder."""
    if is_file(path):
        return [path]
    if not is_folder(path):
        raise SparkError(f"{path} does not exist", "name an event log, or the address of the Spark driver")
    numbered = sorted(
        (int(match.group(1)), ".compact" in file.name, file)
        for file in path.iterdir()
        if (match := _ROLLED.fullmatch(file.name)) and is_file(file)
    )
    if not numbered:
        remedy = "name the event log of one application, a file or a folder eventlog_v2_…"
        raise SparkError(f"{path} holds no event log", remedy)
    # A compacted file has what is left of all files before it, and of the one with its own number.
    compact = max((number for number, is_compact, _ in numbered if is_compact), default=-1)
    return [
        file
        for number, is_compact, file in numbered
        if number > compact or (number == compact and is_compact)
    ]


def _opened(path: Path) -> BinaryIO:
    name = path.name
    for mark in _MARKS:
        name = name.removesuffix(mark)
    codec = name.rpartition(".")[2]
    if codec in _CODECS:
        remedy = "unpack it first, or name the address of the driver or the history server"
        raise SparkError(f"{path} is compressed with {codec}, which hprofiler does not read yet", remedy)
    opener = gzip.open if codec == "gz" else open
    return cast(BinaryIO, opener(path, "rb"))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines; of one that is too long only the beginning, which is no JSON."""
    while line := file.readline(_LONGEST_LINE):
        whole = line.endswith(b"\n") or len(line) < _LONGEST_LINE
        yield line
        while not whole:
            rest = file.readline(_LONGEST_LINE)
            whole = rest.endswith(b"\n") or not rest


class _Log:
    """Facts in the making, event by event. Damaged lines are counted."""

    def __init__(self, found: Collected) -> None:
        self.events = 0
        self._found = found
        self._damaged = 0
        self._start = _Application()
        self._version = ""
        self._driver = ""
        self._running: dict[int, _Task] = {}
        self._take: dict[bytes, Callable[[Any], None]] = {
            b"LogStart": self._log_start,
            b"ApplicationStart": self._application,
            b"ExecutorAdded": self._executor,
            b"BlockManagerAdded": self._block_manager,
            b"JobStart": self._job_start,
            b"JobEnd": self._job_end,
            b"StageSubmitted": self._stage,
            b"StageCompleted": self._stage,
            b"TaskStart": self._task_start,
            b"TaskEnd": self._task_end,
        }

    def take(self, line: bytes) -> None:
        kind = _EVENTS.match(line)
        if kind is None:
            # Events of other libraries have full class names.
            self._damaged += not line.startswith(b'{"Event":"') and not line.isspace()
            return
        self.events += 1
        decoder = _DECODERS.get(kind.group(1))
        if decoder is None:
            return
        try:
            event = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._damaged += 1
        else:
            self._take[kind.group(1)](event)

    def facts(self) -> SparkFacts:
        found = self._found
        for task in self._running.values():
            stage = found.stages.get((task.stage, task.attempt))
            if stage is not None:  # where it is over, the end of its task was lost
                self._add(task, stage.to)
        return SparkFacts(
            application=_short(self._start.id),
            attempt=_short(self._start.attempt),
            name=_short(self._start.name),
            version=_short(self._version),
            read=int(time.time() * 1000),
            driver=_short(self._driver),
            executors=tuple(found.executors.values()),
            jobs=tuple(one for one in found.jobs.values() if found.is_meant(one.from_, one.to)),
            stages=tuple(one for one in found.stages.values() if found.is_meant(one.from_, one.to)),
            tasks=found.tasks,
            damaged=self._damaged,
            notes=tuple(found.notes()),
        )

    def _log_start(self, event: _LogStart) -> None:
        self._version = event.version

    def _application(self, event: _Application) -> None:
        self._start = event

    def _executor(self, event: _Executor) -> None:
        key = _short(event.id)
        self._found.executors[key] = Executor(key, _short(event.info.host), event.info.cores)

    def _block_manager(self, event: _BlockManagerAdded) -> None:
        if event.manager.id in ("driver", "<driver>"):
            self._driver = event.manager.host

    def _job_start(self, event: _Job) -> None:
        described = (event.properties or {}).get("spark.job.description")
        if not isinstance(described, str):  # as Spark does: the call site of its last stage
            described = max(event.infos, key=lambda one: one.id, default=_StageInfo()).name
        stages = tuple(event.stages[:_MOST_STAGES])
        self._found.jobs[event.id] = Job(event.id, event.from_, 0, _short(described), stages)

    def _job_end(self, event: _Job) -> None:
        started = self._found.jobs.pop(event.id, Job(event.id))
        done = msgspec.structs.replace(started, to=event.to)
        if self._found.is_meant(done.from_, done.to):
            self._found.jobs[event.id] = done

    def _stage(self, event: _Stage) -> None:
        info = event.info
        key = (info.id, info.attempt)
        if self._found.is_meant(info.from_, info.to):
            name = _short(info.name)
            self._found.stages[key] = Stage(info.id, info.attempt, name, info.from_, info.to, info.tasks)
        else:
            self._found.stages.pop(key, None)

    def _task_start(self, event: _Task) -> None:
        if len(self._running) < _MOST_RUNNING:
            self._running[event.info.tid] = event

    def _task_end(self, event: _Task) -> None:
        self._running.pop(event.info.tid, None)
        self._add(event, event.info.getting_result or event.info.finish)

    def _add(self, task: _Task, finish: int) -> None:
        info, metrics = task.info, task.metrics or _TaskMetrics()
        cpu = metrics.cpu + metrics.deserialize
        executor = _short(info.executor)
        self._found.add_task(executor, info.tid, task.stage, task.attempt, info.launch, finish, cpu)


def _short(text: str | None) -> str:
    return printable((text or "")[:_LONGEST_TEXT])
