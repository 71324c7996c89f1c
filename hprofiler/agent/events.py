"""The agent's events as types. `parse_*` turn checked members into them; BadEvent where something is off."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hprofiler.agent import fields
from hprofiler.agent.wire import MAX_MEMBERS, BadEvent
from hprofiler.model import HostFacts, Note, Params, Process, Samples, Sampling, Status

MAX_PROFILE = 512 << 20
MAX_RAW = 512 << 20
MAX_TIMELINE = 86_460
MAX_EVENTS = 16
MAX_FOUND = 10_000
MAX_BLOBS = 500
MAX_RECORDED = 512  # processes of one session, as agents hold it
MAX_EVENT_NAME = 255
ENGINES = ("async-profiler", "perf")
RAW_FILES = ("recording.jfr",)
STAGES = ("connect", "push", "find", "prepare", "start", "record", "fetch", "clean")
_EXTRA_SECONDS = 61  # of a recording, at most: the agent's own deadline
_SESSION = re.compile(r"[0-9]{1,10}-[0-9]{1,20}")
_LONGEST_CODE = 40
_MOST_NOTES = 1000
_STATUSES = (Status.OK.value, Status.DEGRADED.value, Status.FAILED.value)


class Ended(str, Enum):
    """What ended a recording before its time: the end of its process, or somebody while that went on."""

    PROCESS = "process"
    CUT = "cut"


_ENDED = tuple(one.value for one in Ended)


@dataclass(frozen=True)
class Hello:
    """The agent's greeting. `blobs` are the SHA-256 of what its private folder keeps already.

    `session` is its pid and start time ("4711-99812"), "" where it does not tell.
    """

    facts: HostFacts
    uid: int
    blobs: frozenset[str]
    session: str = ""


@dataclass(frozen=True)
class Listed:
    """One line of the process list."""

    pid: int
    ppid: int
    user: str
    command: str


@dataclass(frozen=True)
class Ignored:
    """A process that matched and is not taken, and why; if `doubtful` nobody knows whether it did."""

    pid: int
    reason: str
    doubtful: bool = False


@dataclass(frozen=True)
class Listing:
    """Every process the agent can see; `ignored` are those that it could not look at."""

    processes: tuple[Listed, ...]
    ignored: tuple[Ignored, ...]


@dataclass(frozen=True)
class Found:
    """What a selector found among `searched` processes."""

    searched: int
    processes: tuple[Process, ...]
    ignored: tuple[Ignored, ...]


@dataclass(frozen=True)
class ProcessOutcome:
    """How it went for a process, or for the host where `pid` is None.

    `ended` is what ended its recording before its time, `seconds` how long that had lasted: of one that was
    cut always known.
    """

    pid: int | None
    status: Status
    stage: str
    reason: str
    remedy: str
    ended: Ended | None = None
    seconds: float | None = None
    code: str = "failed"
    parameters: Params = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Started:
    """A process is being profiled by `engine`; `sources` is what it uses for each event."""

    pid: int
    engine: str
    sources: Mapping[str, str]


@dataclass(frozen=True)
class Recording:
    """All that could be started is: `processes` of them."""

    processes: int


@dataclass(frozen=True)
class Interrupted:
    """The agent had lost its coordinator, and ended the recording after so many seconds."""

    seconds: float
    reason: str


@dataclass(frozen=True)
class ProfileHeader:
    """A profile of `size` bytes follows; the other members are those of `model.Recording`."""

    pid: int
    event: str
    engine: str
    source: str
    interval: int
    seconds: float
    cpu_seconds: float
    attach_seconds: float | None
    samples: Samples
    timeline: array[int]
    sha256: str
    size: int


@dataclass(frozen=True)
class RawHeader:
    """The file `name` that an engine wrote for a process follows, `size` bytes."""

    pid: int
    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Done:
    """The recording is over; `left` are files that could not be deleted."""

    left: tuple[str, ...]


RecordEvent = Started | Recording | Interrupted | ProfileHeader | RawHeader | ProcessOutcome | Done


def parse_hello(event: Mapping[str, Any]) -> Hello:
    host = fields.member(event, "host")
    facts = HostFacts(
        name=fields.text(host, "name", 255),
        arch=fields.text(host, "arch", 64),
        kernel=fields.text(host, "kernel", 255),
        cpus=fields.integer(host, "cpus", 1, 1 << 20),
        memory_bytes=fields.integer(host, "memory_bytes"),
        user=fields.text(host, "user", 255),
        boot_id=fields.text(host, "boot_id", 64),
        pid_namespace=fields.text(host, "pid_namespace", 64),
        agent_version=fields.text(event, "version", 64),
        load=fields.number(host, "load", -1.0),
        memory_available=fields.optional_integer(host, "memory_available_bytes"),
    )
    session = fields.text(event, "session", 64)
    if session and not _SESSION.fullmatch(session):
        raise BadEvent("session is not a pid and start time")
    uid = fields.integer(host, "uid", 0, fields.UINT32)
    return Hello(facts, uid, _blobs(event), session)


def _blobs(event: Mapping[str, Any]) -> frozenset[str]:
    kept = fields.items(event, "blobs")[:MAX_BLOBS]  # what is not known to be there is sent
    return frozenset(fields.sha256({"blobs": one}, "blobs") for one in kept)


def parse_listing(event: Mapping[str, Any]) -> Listing:
    processes = tuple(
        Listed(
            pid=fields.pid(item),
            ppid=fields.integer(item, "ppid", 0, fields.PID_LIMIT),
            user=fields.text(item, "user", 255),
            command=fields.text(item, "command"),
        )
        for item in fields.objects(event, "processes", MAX_MEMBERS)
    )
    return Listing(processes, _ignored(event))


def _ignored(event: Mapping[str, Any]) -> tuple[Ignored, ...]:
    noteworthy = fields.objects(event, "ignored", MAX_MEMBERS)[:MAX_FOUND]
    return tuple(
        Ignored(fields.pid(item), fields.text(item, "reason"), item.get("doubtful") is True)
        for item in noteworthy
    )


def parse_found(event: Mapping[str, Any], host: str) -> Found:
    processes = tuple(_process(item, host) for item in fields.objects(event, "processes", MAX_FOUND))
    if len({process.pid for process in processes}) != len(processes):
        raise BadEvent("a pid was found twice")
    return Found(fields.integer(event, "searched"), processes, _ignored(event))


def _process(item: Mapping[str, Any], host: str) -> Process:
    jvm = fields.member(item, "jvm") if item.get("jvm") is not None else {}
    return Process(
        host=host,
        pid=fields.pid(item),
        start_time=fields.integer(item, "start_time"),
        uid=fields.integer(item, "uid", 0, fields.UINT32),
        user=fields.text(item, "user", 255),
        label=fields.text(item, "label", 255),
        main_class=fields.text(item, "main_class", 1024),
        command=fields.text(item, "command"),
        namespace_pid=fields.optional_pid(item, "namespace_pid"),
        jvm_version=fields.text(jvm, "version", 255),
        labels=fields.labels(item),
        is_jvm=item.get("jvm") is not None,
    )


def parse_ready(event: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(fields.pid(item) for item in fields.objects(event, "processes"))


def parse_outcome(event: Mapping[str, Any]) -> ProcessOutcome:
    ended = None if event.get("ended") is None else Ended(fields.choice(event, "ended", _ENDED))
    seconds = fields.seconds if ended is Ended.CUT else fields.optional_seconds
    return ProcessOutcome(
        pid=fields.optional_pid(event),
        status=Status(fields.choice(event, "status", _STATUSES)),
        stage=fields.choice(event, "stage", STAGES),
        reason=fields.text(event, "reason"),
        remedy=fields.text(event, "remedy"),
        ended=ended,
        seconds=seconds(event, "seconds"),
        code=fields.text(event, "code", _LONGEST_CODE),
        parameters=fields.parameters(event),
        notes=tuple(map(_note, fields.objects(event, "notes", _MOST_NOTES) if event.get("notes") else ())),
    )


def _note(item: Mapping[str, Any]) -> Note:
    return Note(
        code=fields.text(item, "code", _LONGEST_CODE),
        reason=fields.text(item, "reason"),
        remedy=fields.text(item, "remedy"),
        parameters=fields.parameters(item),
    )


def parse_left(event: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(fields.texts(event, "left"))


def parse_record_event(event: Mapping[str, Any]) -> RecordEvent:
    """One of the events between `start` and `done`."""
    kind = event["type"]
    if kind == "started":
        return _started(event)
    if kind == "recording":
        return Recording(fields.integer(event, "processes", 0, fields.PID_LIMIT))
    if kind == "interrupted":
        return Interrupted(fields.seconds(event, "seconds"), fields.text(event, "reason"))
    if kind == "outcome":
        return parse_outcome(event)
    if kind == "profile":
        return _profile_header(event)
    if kind == "raw":
        return _raw_header(event)
    if kind == "done":
        return Done(parse_left(event))
    raise BadEvent(f"unexpected event {fields.text(event, 'type', 40)!r}")


def _started(event: Mapping[str, Any]) -> Started:
    return Started(fields.pid(event), fields.choice(event, "engine", ENGINES), parse_sources(event))


def parse_sources(event: Mapping[str, Any]) -> Mapping[str, str]:
    """What is used for each event, by its name."""
    sources = fields.member(event, "sources")
    if len(sources) > MAX_EVENTS:
        raise BadEvent(f"sources has more than {MAX_EVENTS} members")
    return fields.named(sources, MAX_EVENT_NAME, 255)


def _profile_header(event: Mapping[str, Any]) -> ProfileHeader:
    samples = fields.member(event, "samples")
    return ProfileHeader(
        pid=fields.pid(event),
        event=fields.text(event, "event", MAX_EVENT_NAME),
        engine=fields.choice(event, "engine", ENGINES),
        source=fields.text(event, "source", 255),
        interval=fields.integer(event, "interval"),
        seconds=fields.seconds(event, "seconds"),
        cpu_seconds=fields.seconds(event, "cpu_seconds"),
        attach_seconds=fields.optional_seconds(event, "attach_seconds"),
        samples=Samples(*(fields.integer(samples, name) for name in ("expected", "taken", "lost"))),
        timeline=array("Q", fields.integers(event, "timeline", MAX_TIMELINE)),
        sha256=fields.sha256(event),
        size=fields.integer(event, "size", 0, MAX_PROFILE),
    )


def _raw_header(event: Mapping[str, Any]) -> RawHeader:
    return RawHeader(
        pid=fields.pid(event),
        name=fields.choice(event, "name", RAW_FILES),
        sha256=fields.sha256(event),
        size=fields.integer(event, "size", 0, MAX_RAW),
    )


def unwanted(header: ProfileHeader | RawHeader, sampling: Sampling, came: set[tuple[int, str]]) -> str:
    """Why a header is not taken: only what was asked for is, each thing once. "" where it is, and `came`."""
    if isinstance(header, RawHeader):
        what, asked = header.name, sampling.keep_raw
    else:
        what, asked = header.event, header.event in sampling.events
        if len(header.timeline) > sampling.duration + _EXTRA_SECONDS:
            return "the timeline is longer than the recording"
    if not asked:
        return f"{what!r} was not asked for"
    if (header.pid, what) in came:
        return f"{what!r} of process {header.pid} came twice"
    came.add((header.pid, what))
    return ""
