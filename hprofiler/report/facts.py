"""run.json as the report needs it: typed, with text that can be written anywhere.

The file speaks of hosts nobody vouches for, and may be old or damaged: what is missing or of another
type becomes empty, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hprofiler.base.text import printable
from hprofiler.model import Outcome, Samples, Status
from hprofiler.report.roots import ANY_ROOT
from hprofiler.runfolder import events_of

ASYNC_PROFILER = "async-profiler"
PERF = "perf"
"""The engines of recordings."""
_MOST_ROOTS = 100
_MOST_LABELS = 20
_MOST_TIMINGS = 20
_LONGEST_LABEL = 500


@dataclass(frozen=True)
class RecordingFacts:
    """One event of one process that was recorded; `totals` are the profile's sums by value name.

    `labels` are what the selector and the resolver know of the process, and its user.
    """

    host: str
    pid: int
    label: str
    labels: Mapping[str, str]
    main_class: str
    jvm_version: str
    event: str
    engine: str
    source: str
    interval: int
    samples: Samples
    seconds: float
    cpu_seconds: float
    totals: Mapping[str, int]
    attach_seconds: float | None
    bytes_received: int | None


@dataclass(frozen=True)
class HostFacts:
    """One host of the run: `name` for people, `key` as run.json and the folder know it.

    `pids` are of the processes that were found: recorded, or failed on the way. `unseen` is how many more are
    known to be there, on a host that nobody could look at. `timings` are seconds by stage.
    """

    key: str
    name: str
    pids: frozenset[int]
    recordings: tuple[RecordingFacts, ...]
    outcomes: tuple[Outcome, ...]
    unseen: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)
    bytes_sent: int = 0
    bytes_received: int = 0

    @property
    def idle(self) -> bool:
        """Reached, and nothing there matched the selector."""
        return not self.pids and any(one.status is Status.IDLE for one in self.outcomes)

    @property
    def needless(self) -> bool:
        """Not looked into, and nothing is missing: the ledger has a note, and speaks of no failure."""
        told = {one.status for one in self.outcomes}
        return not self.processes and not self.idle and told == {Status.DEGRADED}

    @property
    def recorded(self) -> int:
        """How many processes have a recording."""
        return len({one.pid for one in self.recordings})

    @property
    def short(self) -> tuple[Outcome, ...]:
        """The ledger lines of processes that were recorded, and not for all of the time."""
        recorded = {one.pid for one in self.recordings}
        return tuple(one for one in self.outcomes if one.seconds is not None and one.pid in recorded)

    @property
    def processes(self) -> int:
        """How many processes there are."""
        return len(self.pids) + self.unseen


@dataclass(frozen=True)
class RunFacts:
    """The run: what was asked for, when, and how it went on each host.

    `event` is the one that is looked at, the first of `events` at the beginning. `roots` are the frames
    at which the job's own stacks begin (`report.roots`); with `trimmed` only those are looked at. `places` is
    what `hosts` are: "on hosts", or "in containers". `recorded` is how many processes have each event.
    """

    version: str
    command: tuple[str, ...]
    target: str
    selector: str
    engine: str
    events: tuple[str, ...]
    event: str
    frequency: int
    duration: float
    started: str
    finished: str
    interrupted: bool
    hosts: tuple[HostFacts, ...]
    roots: tuple[str, ...]
    trimmed: bool = False
    places: str = "on hosts"
    recorded: Mapping[str, int] = field(default_factory=dict)

    @property
    def expected(self) -> int:
        """How many samples the CPU time of all recordings stands for."""
        return sum(one.samples.expected for host in self.hosts for one in host.recordings)

    def of(self, event: str) -> RunFacts:
        """The facts of one event: only its recordings, and all outcomes."""
        return replace(self, event=event, hosts=tuple(_only(host, event) for host in self.hosts))


def _only(host: HostFacts, event: str) -> HostFacts:
    return replace(host, recordings=tuple(one for one in host.recordings if one.event == event))


def clean(text: object) -> str:
    """Text without control characters, also of direction, and lone surrogates; "" for what is no text."""
    return printable(text) if isinstance(text, str) else ""


def read_facts(run: Mapping[str, Any]) -> RunFacts:
    """The facts of a run.json's content."""
    sampling = _mapping(run.get("sampling"))
    target = _mapping(run.get("target"))
    events = tuple(dict.fromkeys(map(clean, events_of(run)))) or ("cpu",)
    hosts = tuple(_host(_mapping(host)) for host in _list(run.get("hosts")))
    return RunFacts(
        version=clean(run.get("hprofiler")),
        command=tuple(clean(word) for word in _list(run.get("command"))),
        target=clean(target.get("name")) or clean(target.get("kind")),
        selector=clean(run.get("selector")),
        engine=clean(sampling.get("engine")),
        events=events,
        event=events[0],
        frequency=int(_number(sampling.get("frequency"))),
        duration=_number(sampling.get("duration")),
        started=clean(run.get("started")),
        finished=clean(run.get("finished")),
        interrupted=run.get("interrupted") is True,
        hosts=hosts,
        roots=tuple(filter(None, map(clean, _list(run.get("roots"))[:_MOST_ROOTS]))) or ANY_ROOT,
        places=_places(target, _list(run.get("hosts"))),
        recorded={event: sum(_only(host, event).recorded for host in hosts) for event in events},
    )


def _places(target: Mapping[str, Any], hosts: list[Any]) -> str:
    """Pods are visited on their nodes, or in containers, whose addresses are NAMESPACE/POD/CONTAINER."""
    addresses = [clean(_mapping(host).get("address")) for host in hosts]
    inside = target.get("kind") == "kubernetes" and any(one.count("/") == 2 for one in addresses)
    return "in containers" if inside else "on hosts"


def _host(host: Mapping[str, Any]) -> HostFacts:
    key = host.get("name") if isinstance(host.get("name"), str) else ""
    name = clean(key)
    labels = _mapping(host.get("labels"))
    recordings = tuple(_recording(name, labels, _mapping(one)) for one in _list(host.get("recordings")))
    outcomes = tuple(_outcome(name, _mapping(one)) for one in _list(host.get("outcomes")))
    told = {one.pid for one in outcomes if one.pid is not None}
    return HostFacts(
        key=str(key),
        name=name,
        pids=frozenset(told | {one.pid for one in recordings}),
        recordings=recordings,
        outcomes=outcomes,
        unseen=len(_list(host.get("unseen"))),
        timings={clean(stage): _number(value) for stage, value in _timings(host)},
        bytes_sent=int(_number(host.get("bytes_sent"))),
        bytes_received=int(_number(host.get("bytes_received"))),
    )


def _recording(host: str, labels: Mapping[str, Any], recording: Mapping[str, Any]) -> RecordingFacts:
    process = _mapping(recording.get("process"))
    samples = _mapping(recording.get("samples"))
    received = _known(recording.get("bytes_received"))
    return RecordingFacts(
        host=host,
        pid=int(_number(process.get("pid"))),
        label=clean(process.get("label")),
        labels=_labels(process, labels),
        main_class=clean(process.get("main_class")),
        jvm_version=clean(process.get("jvm_version")),
        event=clean(recording.get("event")),
        engine=clean(recording.get("engine")),
        source=clean(recording.get("source")),
        interval=int(_number(recording.get("interval"))),
        samples=Samples(*(int(_number(samples.get(name))) for name in ("expected", "taken", "lost"))),
        seconds=_number(recording.get("seconds")),
        cpu_seconds=_number(recording.get("cpu_seconds")),
        totals={
            clean(name): int(_number(value)) for name, value in _mapping(recording.get("totals")).items()
        },
        attach_seconds=_known(recording.get("attach_seconds")),
        bytes_received=None if received is None else int(received),
    )


def _timings(host: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(_mapping(host.get("timings")).items())[:_MOST_TIMINGS]


def _labels(process: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, str]:
    own = _mapping(process.get("labels"))
    given = list({**own, **host, **own}.items())[:_MOST_LABELS]
    labels = {clean(key)[:_LONGEST_LABEL]: clean(value)[:_LONGEST_LABEL] for key, value in given}
    labels.setdefault("user", clean(process.get("user"))[:_LONGEST_LABEL])
    return {key: value for key, value in labels.items() if key and value}


def _outcome(host: str, outcome: Mapping[str, Any]) -> Outcome:
    known = {status.value: status for status in Status}
    pid: object | None = outcome.get("pid")
    return Outcome(
        host=host,
        status=known.get(clean(outcome.get("status")), Status.FAILED),
        stage=clean(outcome.get("stage")),
        reason=clean(outcome.get("reason")),
        remedy=clean(outcome.get("remedy")),
        pid=pid if isinstance(pid, int) and not isinstance(pid, bool) else None,
        label=clean(outcome.get("label")),
        seconds=_known(outcome.get("seconds")),
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _known(value: object) -> float | None:
    """None where runs of earlier versions say nothing."""
    return None if value is None else _number(value)


def _number(value: object) -> float:
    """A finite number not below zero, else 0."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63:
        return float(value)
    return 0.0
