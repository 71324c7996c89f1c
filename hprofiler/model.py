"""The words of the house: what a target, a host, a process, a recording and an outcome are.

Frozen dataclasses, no I/O, standard library only. Every other room speaks in these types; the same
words stand in `agents/PROTOCOL.md`, in `run.json` and in the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Mapping, Optional, Sequence, Tuple

Labels = Mapping[str, str]
PROCESS = "process"
"""The label that is a process's short name."""
OWNER = "owner"
"""Of a container that is not certain: whose processes are its. Others' are not believed to be."""
RUN_FOR = "run_for"
"""Of a container: its application's user, whose word that a process is in it goes before other users'."""
MANAGER_PORT = "manager_port"
"""Of a container: where its node's manager listens, as whose user it may run."""


@dataclass(frozen=True)
class Target:
    """What the user asked for: `kind` is local, hosts, yarn or kubernetes; `name` is what they typed."""

    kind: str
    name: str


@dataclass(frozen=True)
class Host:
    """One machine as a resolver yields it. `name` is what the reports show; `address` is where to connect.

    `containers` is what the resolver knows of the processes there: labels by container id. Where there are
    any, only their processes are meant. An `optional` host is one that nobody named: where it has no
    shell nothing is missing.

    By the API server of Kubernetes a host is a container, and its address NAMESPACE/POD/CONTAINER.
    """

    name: str
    address: str
    user: Optional[str] = None
    port: Optional[int] = None
    labels: Labels = field(default_factory=dict)
    containers: Mapping[str, Labels] = field(default_factory=dict)
    optional: bool = False


@dataclass(frozen=True)
class Selector:
    """Which processes are meant. `text` is what the user typed; `query` is the protocol's selector object.

    `kind` is one of `rule` (a YAML selector), `pipe` (a shell pipe over the process list),
    `text` (a substring of the command line), `regex`, `pids` and `containers` (everything in the hosts'
    containers). With `native` processes that are no JVMs may match too. `roots` are the frames at which the
    job's own stacks begin, as `report.roots` reads them; none where they are not known.
    """

    text: str
    kind: str
    query: Mapping[str, Any]
    native: bool = False
    roots: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Process:
    """One process on one host. `start_time` (clock ticks since boot) guards against a reused pid.

    Of some JVMs the version is not known ("").
    """

    host: str
    pid: int
    start_time: int
    uid: int
    user: str
    label: str
    main_class: str = ""
    command: str = ""
    namespace_pid: Optional[int] = None
    jvm_version: str = ""
    labels: Labels = field(default_factory=dict)
    is_jvm: bool = False


@dataclass(frozen=True)
class Sampling:
    """What to record and how, for `duration` seconds. `events` are at least one, no two alike.

    `frequency` is in Hz of CPU time. None leaves an interval to the agent: `alloc_interval` in bytes,
    `lock_threshold` and `wall_interval` in nanoseconds. `keep_raw` asks for the engine's own recordings too.
    """

    events: Tuple[str, ...]
    frequency: int
    duration: float
    engine: str = "auto"
    alloc_interval: Optional[int] = None
    lock_threshold: Optional[int] = None
    wall_interval: Optional[int] = None
    keep_raw: bool = False


@dataclass(frozen=True)
class Samples:
    """How many samples a recording should have had, had, and missed (process CPU seconds x Hz; counts)."""

    expected: int
    taken: int
    lost: int


@dataclass(frozen=True)
class Recording:
    """A process x an event: what was really used and how much it yielded.

    `event` is as it was asked for, `source` what `engine` used for it (`perf_events`, `ctimer` ...).
    `interval` is what one sample stands for, in the event's own unit (nanoseconds or bytes), 0 where that
    means nothing. `timeline` counts the samples of each second; `totals` are the profile's sums by name.
    `attach_seconds` is how long the process was attached to for it, None where nothing was;
    `bytes_received` is the size of the profile as it came.
    """

    process: Process
    event: str
    engine: str
    source: str
    interval: int
    samples: Samples
    seconds: float
    cpu_seconds: float = 0.0
    timeline: Sequence[int] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    attach_seconds: Optional[float] = None
    bytes_received: Optional[int] = None


class Status(str, Enum):
    """How it went for a host or a process."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    IDLE = "idle"


DOING: Mapping[str, str] = {
    "connect": "connecting",
    "push": "pushing what is not there yet",
    "find": "looking for processes",
    "prepare": "preparing",
    "start": "starting",
    "record": "recording",
    "fetch": "fetching profiles",
    "clean": "cleaning up",
}
"""What goes on at a host at each stage of `Outcome`."""


@dataclass(frozen=True)
class Outcome:
    """One line of the ledger. Data, not an exception: one dead host never ends a run.

    `pid` is None when the line speaks of the whole host. `stage` says how far it came:
    connect, push, find, prepare, start, record, fetch, clean, report. A process that is `lost` was so with
    its host, whose own line says why. One that is `gone` had ended before all of it was recorded. `seconds`
    is how long its recording lasted where that was cut short while the process went on: by us, or by a
    connection that was lost.
    """

    host: str
    status: Status
    stage: str
    reason: str = ""
    remedy: str = ""
    pid: Optional[int] = None
    label: str = ""
    lost: bool = False
    seconds: Optional[float] = None
    gone: bool = False

    @property
    def where(self) -> str:
        """For people: "n1", "n1 pid 7 (executor 3)"."""
        if self.pid is None:
            return self.host
        return f"{self.host} pid {self.pid}" + (f" ({self.label})" if self.label else "")


@dataclass(frozen=True)
class HostFacts:
    """What the agent says of its machine when it greets.

    A pid means the same process where `boot_id` and `pid_namespace` are the same. `load` is the number of
    tasks that want to run (-1 where it is not known), `memory_available` in bytes.
    """

    name: str
    arch: str
    kernel: str
    cpus: int
    memory_bytes: int
    user: str
    boot_id: str = ""
    pid_namespace: str = ""
    agent_version: str = ""
    load: float = -1.0
    memory_available: Optional[int] = None


@dataclass(frozen=True)
class HostResult:
    """All that came back from one host: facts, recordings, ledger lines, timings in seconds by stage.

    `unseen` are the names of processes that the resolver knows there, and that nobody could look for.
    """

    host: Host
    facts: Optional[HostFacts]
    recordings: Tuple[Recording, ...]
    outcomes: Tuple[Outcome, ...]
    timings: Mapping[str, float] = field(default_factory=dict)
    bytes_sent: int = 0
    bytes_received: int = 0
    unseen: Tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """The host had nothing to offer."""
        return any(line.pid is None and line.status is Status.IDLE for line in self.outcomes)

    @property
    def found_nothing(self) -> bool:
        """It was searched to the end, and no process there was meant. One that timed out, say, was not."""
        return self.facts is not None and self.idle
