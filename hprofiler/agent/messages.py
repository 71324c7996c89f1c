"""Events of the agent, as bounded types."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from hprofiler.base.text import printable
from hprofiler.model import Count, HostFacts, Name, Note, Pauses, Process, Samples, Status
from hprofiler.model.dump import ThreadNumber
from hprofiler.model.memory import Memory
from hprofiler.model.metrics import Metrics
from hprofiler.model.recording import MOST_PAUSES

MAX_EVENTS = 16
MAX_FOUND = 10_000
MAX_LISTED = 400_000
MAX_FOLLOWED = 1_000_000
"""Processes that one session names."""
MAX_RECORDED = 512
"""Processes of one session. Agents have the same limit."""
MAX_TEXT = 17 << 20
"""Bytes of the text of a process's threads, compressed or not. Agents cut it a little earlier."""
TEXT_LIMIT = 4096
_REFUSAL_LIMIT = 300

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Pid = Annotated[int, Meta(ge=1, le=1 << 22)]
Uid = Annotated[int, Meta(ge=0, lt=1 << 32)]
Size = Annotated[int, Meta(ge=0, le=512 << 20)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
ClockTime = Annotated[float, Meta(ge=0, le=1e11)]
"""Seconds since 1970."""
Microseconds = Annotated[int, Meta(ge=0, le=1 << 53)]
Engine = Literal["async-profiler", "perf", "pyspy"]
Sources = Annotated[Mapping[Name, Name], Meta(max_length=MAX_EVENTS)]
"""What is used for each event, by its name."""
Labels = Annotated[Mapping[Name, str], Meta(max_length=64)]
Integer = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Parameters = Annotated[Mapping[Name, str | Integer | float], Meta(max_length=64)]
Paths = Annotated[tuple[str, ...], Meta(max_length=10_000)]


M = TypeVar("M", bound=msgspec.Struct)
T = TypeVar("T")


class BadEvent(ValueError):
    """The agent broke the protocol."""


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    """Texts are cut at `TEXT_LIMIT` characters, without control characters."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, (str, dict, tuple, HostFacts)):
                force_setattr(self, name, _shown(value))

    def replace(self: M, **changes: Any) -> M:
        """The same message with other values."""
        return msgspec.structs.replace(self, **changes)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else printable(value[:TEXT_LIMIT])
    if isinstance(value, dict):
        return {_shown(name): _shown(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, (Note, HostFacts)):
        return replace(value, **{name: _shown(one) for name, one in vars(value).items()})
    return value


# Greeting and files


class Hello(Message, frozen=True, tag="hello"):
    """The agent's greeting. `blobs` are the SHA-256 of the files in its private folder.

    `session` is its pid and start time ("4711-99812"), or "".
    """

    protocol: int
    host: HostFacts
    blobs: Annotated[tuple[Sha256, ...], Meta(max_length=10_000)]
    session: Annotated[str, Meta(pattern=r"^([0-9]{1,10}-[0-9]{1,20})?\Z")] = ""


class Resumed(Message, frozen=True, tag="resumed"):
    """Whether the agent of the session whose connection was lost is still there."""

    found: bool


class ClockTold(Message, frozen=True, tag="clock"):
    """What the host's clock says."""

    time: ClockTime


class Stored(Message, frozen=True, tag="stored"):
    sha256: Sha256


class Error(Message, frozen=True, tag="error"):
    """The agent gives up."""

    reason: str = "the agent gave up"
    remedy: str = ""
    code: Annotated[str, Meta(max_length=40)] = "failed"
    parameters: Parameters = {}


class Action(Message, frozen=True, tag="audit"):
    """Something that an agent did; `time` by its host's clock."""

    time: ClockTime
    what: Name
    pid: Pid | None
    detail: str


# Processes


class Ignored(Message, frozen=True):
    """A process that is left out, and the reason. `doubtful`: it should perhaps be recorded.

    `container` is the one that it is in, or claims to be in, if the reason is about it.
    """

    pid: Pid
    reason: str
    doubtful: bool = False
    container: str = ""


class Listed(Message, frozen=True):
    """One line of the process list."""

    pid: Pid
    ppid: Annotated[int, Meta(ge=0, le=1 << 22)]
    user: Name
    command: str


class Listing(Message, frozen=True, tag="processes"):
    """Every process that the agent can see; `ignored` are those that it could not look at."""

    processes: Annotated[tuple[Listed, ...], Meta(max_length=MAX_LISTED)]
    ignored: Annotated[tuple[Ignored, ...], Meta(max_length=MAX_LISTED)]


class Jvm(Message, frozen=True):
    version: Name = ""


class FoundProcess(Message, frozen=True):
    pid: Pid
    start_time: Count
    uid: Uid
    user: Name
    label: str
    main_class: str = ""
    command: str = ""
    namespace_pid: Pid | None = None
    jvm: Jvm | None = None
    labels: Labels = {}

    def on(self, host: str) -> Process:
        return Process(
            host=host,
            pid=self.pid,
            start_time=self.start_time,
            uid=self.uid,
            user=self.user,
            label=self.label[:255],
            main_class=self.main_class[:1024],
            command=self.command,
            namespace_pid=self.namespace_pid,
            jvm_version=self.jvm.version if self.jvm else "",
            labels={name: value[:1024] for name, value in self.labels.items()},
            is_jvm=self.jvm is not None,
        )


class FoundMessage(Message, frozen=True, tag="found"):
    """What a selector found among `searched` processes."""

    searched: Count
    processes: Annotated[tuple[FoundProcess, ...], Meta(max_length=MAX_FOUND)]
    ignored: Annotated[tuple[Ignored, ...], Meta(max_length=MAX_LISTED)]

    def __post_init__(self) -> None:
        if len({process.pid for process in self.processes}) != len(self.processes):
            raise ValueError("a pid was found twice")


class AppearedMessage(Message, frozen=True, tag="appeared"):
    """What a `follow` found since: processes that the session has not named before."""

    processes: Annotated[tuple[FoundProcess, ...], Meta(max_length=MAX_FOUND)]
    ignored: Annotated[tuple[Ignored, ...], Meta(max_length=MAX_LISTED)]


class PidMessage(Message, frozen=True):
    pid: Pid


class Ready(Message, frozen=True, tag="ready"):
    """The processes that can be recorded."""

    processes: Annotated[tuple[PidMessage, ...], Meta(max_length=MAX_RECORDED)]


# Outcomes


class Ended(str, Enum):
    """What ended a recording before its time: the end of its process, or the agent, which cut it short."""

    PROCESS = "process"
    CUT = "cut"


class ProcessOutcome(Message, frozen=True, tag="outcome"):
    """The outcome of a process, or of the host if `pid` is None.

    `ended`: what ended the recording early; `seconds`: its length, always given if it was cut short.
    """

    pid: Pid | None
    status: Status
    stage: Annotated[
        str, Meta(pattern=r"^(connect|push|find|prepare|start|record|dump|measure|fetch|clean)\Z")
    ]
    reason: str = ""
    remedy: str = ""
    ended: Ended | None = None
    seconds: Seconds | None = None
    code: Annotated[str, Meta(max_length=40)] = "failed"
    parameters: Parameters = {}
    notes: Annotated[tuple[Note, ...], Meta(max_length=1000)] = ()

    def __post_init__(self) -> None:
        if self.status is Status.IDLE:
            raise ValueError("`status` of an outcome is not `idle`")
        if self.ended is Ended.CUT and self.seconds is None:
            raise ValueError("Object missing required field `seconds`")
        super().__post_init__()


class Finding(Message, frozen=True):
    """A fact about a host or a process; `about` is one word (perf, jvm, clock ...)."""

    severity: Annotated[str, Meta(pattern=r"^(error|warning|info|ok)\Z")]
    about: Annotated[str, Meta(max_length=40)]
    text: str
    remedy: str = ""


class CheckedProcess(ProcessOutcome, frozen=True, kw_only=True, tag=False):
    """The outcome of a process as far as it is known before anything is recorded.

    `engine` is what would record it, "" where nothing would.
    """

    engine: Literal["", "async-profiler", "perf", "pyspy"] = ""
    sources: Sources = {}
    findings: Annotated[tuple[Finding, ...], Meta(max_length=100)] = ()

    def __post_init__(self) -> None:
        if self.pid is None:
            raise ValueError("`pid` is null")
        super().__post_init__()

    @classmethod
    def of(cls, outcome: ProcessOutcome) -> CheckedProcess:
        return cls(**msgspec.structs.asdict(outcome))


class Checked(Message, frozen=True, tag="checked"):
    """The check of one host. `time` is its clock."""

    time: ClockTime
    findings: Annotated[tuple[Finding, ...], Meta(max_length=100)]
    processes: Annotated[tuple[CheckedProcess, ...], Meta(max_length=10_000)]


# Recording


class Started(Message, frozen=True, tag="started"):
    """A process is being profiled by `engine`. It has lived `age` seconds, and used `cpu_before`."""

    pid: Pid
    engine: Engine
    sources: Sources
    age: Seconds | None = None
    cpu_before: Seconds | None = None


class Recording(Message, frozen=True, tag="recording"):
    """The recording of `processes` processes has started."""

    processes: Annotated[int, Meta(ge=0, le=1 << 22)]


class Interrupted(Message, frozen=True, tag="interrupted"):
    """The agent lost its coordinator, and ended the recording after `seconds`."""

    seconds: Seconds
    reason: str


class ProfileHeader(Message, frozen=True, tag="profile"):
    """A profile of `size` bytes follows. The other members are those of `model.Recording`.

    With `more` it is a part of a recording that goes on, and they are those of the part.
    """

    pid: Pid
    event: Name
    engine: Engine
    source: Name
    interval: Count
    seconds: Seconds
    cpu_seconds: Seconds
    resident_bytes: Count
    attach_seconds: Seconds | None
    samples: Samples
    sha256: Sha256
    size: Size
    callers_unsure: bool = False
    more: bool = False


class RawHeader(Message, frozen=True, tag="raw"):
    """The file `name` that an engine wrote for a process follows, `size` bytes."""

    pid: Pid
    name: Literal["recording.jfr"]
    sha256: Sha256
    size: Size


class PausesMessage(Message, frozen=True, tag="pauses"):
    """See `model.Pauses`. With `more` the recording goes on, and others may follow."""

    pid: Pid
    collectors: Annotated[tuple[Name, ...], Meta(max_length=8)]
    collector: Annotated[Sequence[Annotated[int, Meta(ge=0, lt=8)]], Meta(max_length=MOST_PAUSES)]
    end: Annotated[Sequence[Microseconds], Meta(max_length=MOST_PAUSES)]
    duration: Annotated[Sequence[Microseconds], Meta(max_length=MOST_PAUSES)]
    left_out: Count
    more: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.collector) == len(self.end) == len(self.duration):
            raise ValueError("`collector`, `end` and `duration` differ in length")
        if any(number >= len(self.collectors) for number in self.collector):
            raise ValueError("`collector` has the number of no collector")
        # Few bytes for each, not a hundred.
        force_setattr(self, "collector", array("B", self.collector))
        force_setattr(self, "end", array("Q", self.end))
        force_setattr(self, "duration", array("Q", self.duration))

    @property
    def pauses(self) -> Pauses:
        return _without_more(Pauses, self)


class MetricsMessage(Metrics, frozen=True, tag_field="type", tag="metrics"):
    """See `model.metrics.Metrics`. With `more` it has the last readings of a recording that goes on. At the
    end all come."""

    more: bool = False

    @property
    def metrics(self) -> Metrics:
        return _without_more(Metrics, self)


def _without_more(type_: type[T], message: PausesMessage | MetricsMessage) -> T:
    members = msgspec.structs.asdict(message)
    del members["more"]
    return type_(**members)


class Done(Message, frozen=True, tag="done"):
    """The recording is over; `left` are files that could not be deleted."""

    left: Paths


RecordEvent = (
    Started
    | Recording
    | Interrupted
    | ProfileHeader
    | RawHeader
    | PausesMessage
    | MetricsMessage
    | ProcessOutcome
    | Done
)


# Threads


class DumpHeader(Message, frozen=True, tag="dump"):
    """The text of a process's threads follows, compressed to `size` bytes. See `model.dump.Dump`.

    `time` is by the host's clock; `cpu` has numbers of threads and their seconds.
    """

    pid: Pid
    kind: Literal["jvm", "python", "native"]
    time: ClockTime
    seconds: Seconds
    cpu: Annotated[tuple[tuple[ThreadNumber, Seconds], ...], Meta(max_length=10_000)]
    size: Annotated[int, Meta(ge=0, le=MAX_TEXT)]


class Dumped(Message, frozen=True, tag="dumped"):
    """Every process of a `dump` has an outcome; `left` are files that could not be deleted."""

    left: Paths


DumpEvent = DumpHeader | ProcessOutcome | Dumped


# Memory


class MemoryOutcome(ProcessOutcome, frozen=True, kw_only=True, tag=False):
    """Where the memory of a process is, or why that is not known."""

    memory: Memory | None = None

    def __post_init__(self) -> None:
        if self.pid is None:
            raise ValueError("`pid` is null")
        super().__post_init__()


class MemoryMessage(Message, frozen=True, tag="memory"):
    """The memory of the processes of one request. `time` is the host's clock."""

    time: ClockTime
    processes: Annotated[tuple[MemoryOutcome, ...], Meta(max_length=MAX_RECORDED)]


# Cleaning


class Left(Message, frozen=True, tag="left"):
    """The session is over; `left` are files that could not be deleted."""

    left: Paths


class Leftover(Message, frozen=True):
    """One thing. `state` is "left" (to be removed), "used" (by a session), "foreign" or "unknown".

    `path` of an agent is its program, of a profiler its library. `seconds` is its age, where that is known.
    `result` is what a cleanup did: "removed" (a folder, a file), "emptied" (a folder that stays with what is
    not ours), "ended" (an agent), "stopped" (a profiler), "failed" (`reason` says why), or None for nothing.
    """

    kind: Literal["agent", "profiler", "folder", "file"]
    path: str
    pid: Pid | None
    user: Name
    seconds: Count | None
    bytes: Count | None
    state: Literal["left", "unknown", "used", "foreign"]
    reason: str
    result: Literal["removed", "emptied", "ended", "stopped", "failed"] | None = None

    @property
    def what(self) -> str:
        return self.path if self.pid is None else f"process {self.pid}"


class Failure(Message, frozen=True):
    """Something that could not be cleaned up, or not be looked at."""

    what: str
    reason: str


class OutOfReach(Message, frozen=True):
    """JVMs of a user that the agent cannot become."""

    user: Name
    jvms: Count


class Leftovers(Message, frozen=True, tag="leftovers"):
    """All that was found; `failed` could not be checked."""

    entries: Annotated[tuple[Leftover, ...], Meta(max_length=10_000)]
    failed: Annotated[tuple[Failure, ...], Meta(max_length=10_000)] = ()
    out_of_reach: Annotated[tuple[OutOfReach, ...], Meta(max_length=10_000)] = ()

    @property
    def failures(self) -> tuple[Failure, ...]:
        failed = (Failure(one.what, one.reason) for one in self.entries if one.result == "failed")
        return (*failed, *self.failed)

    def count(self, result: str) -> int:
        return sum(one.result == result for one in self.entries)


Event = (
    Hello
    | Resumed
    | ClockTold
    | Stored
    | Error
    | Action
    | Listing
    | FoundMessage
    | AppearedMessage
    | Ready
    | Checked
    | RecordEvent
    | MemoryMessage
    | DumpHeader
    | Dumped
    | Left
    | Leftovers
)
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def decode(line: bytes) -> Event:
    """The event on a line. Raises BadEvent."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise BadEvent(printable(str(error)[:_REFUSAL_LIMIT])) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(f"not a JSON line: {printable(line[:60].decode('utf-8', 'replace'))!r}") from error


def tag_of(event: type[msgspec.Struct]) -> str:
    return str(event.__struct_config__.tag)
