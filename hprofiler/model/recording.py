"""What was recorded: one event of one process, and everything of one host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from hprofiler.model.outcome import Outcome, Status
from hprofiler.model.target import Host, Process

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


@dataclass(frozen=True)
class Samples:
    """How many samples a recording should have had, had, and missed (process CPU seconds x Hz; counts)."""

    expected: Count
    taken: Count
    lost: Count


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
    interval: Count
    samples: Samples
    seconds: Seconds
    cpu_seconds: Seconds = 0.0
    timeline: Sequence[int] = ()
    totals: Mapping[str, Count] = field(default_factory=dict)
    attach_seconds: Seconds | None = None
    bytes_received: Count | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def label(self) -> str:
        return self.process.label


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
    memory_available: int | None = None


@dataclass(frozen=True)
class HostResult:
    """All that came back from one host: facts, recordings, ledger lines, timings in seconds by stage.

    `unseen` are the names of processes that the resolver knows there, and that nobody could look for.
    """

    host: Host
    facts: HostFacts | None
    recordings: tuple[Recording, ...]
    outcomes: tuple[Outcome, ...]
    timings: Mapping[str, float] = field(default_factory=dict)
    bytes_sent: int = 0
    bytes_received: int = 0
    unseen: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """The host had nothing to offer."""
        return any(line.pid is None and line.status is Status.IDLE for line in self.outcomes)

    @property
    def found_nothing(self) -> bool:
        """It was searched to the end, and no process there was meant. One that timed out, say, was not."""
        return self.facts is not None and self.idle
