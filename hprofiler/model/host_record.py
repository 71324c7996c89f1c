"""What is known of a host at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from hprofiler.model.outcome import Outcome, Status
from hprofiler.model.recording import Clock, Count, HostFacts, Pauses, Recording, Seconds


class HostRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a run, as run.json has it. `inside`: a container, reached through the API server.

    `timings` are seconds by stage. `unseen` are names of processes that the resolver knows there, but that
    could not be searched.
    """

    name: str
    address: str = ""
    inside: bool = False
    labels: Mapping[str, str] = {}
    facts: HostFacts | None = None
    timings: Mapping[str, Seconds] = {}
    bytes_sent: Count = 0
    bytes_received: Count = 0
    recordings: tuple[Recording, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unseen: tuple[str, ...] = ()
    clock: Clock | None = None
    pauses: tuple[Pauses, ...] = ()

    def part(self, recordings: Iterable[Recording], outcomes: Iterable[Outcome] | None = None) -> HostPart:
        """The host with some of its recordings, such as those of one event."""
        part = {"recordings": tuple(recordings), "pids": self.found}
        if outcomes is not None:
            part["outcomes"] = tuple(outcomes)
        return HostPart(**{**msgspec.structs.asdict(self), **part})

    def with_those_of(self, other: HostRecord) -> HostPart:
        """The host with the recordings of another run, too."""
        both = {
            "recordings": (*self.recordings, *other.recordings),
            "outcomes": (*self.outcomes, *other.outcomes),
        }
        return HostPart(**{**msgspec.structs.asdict(self), **both, "pids": self.found | other.found})

    @property
    def recorded(self) -> frozenset[int]:
        """The pids of its recorded processes."""
        return frozenset(one.process.pid for one in self.recordings)

    @property
    def found(self) -> frozenset[int]:
        """The pids of its processes, recorded or failed."""
        return self.recorded | {one.pid for one in self.outcomes if one.pid is not None}

    @property
    def processes(self) -> int:
        """How many processes it has, also those that are known but could not be searched for."""
        return len(self.found) + len(self.unseen)

    @property
    def short(self) -> tuple[Outcome, ...]:
        """The outcomes of processes whose recording ended early."""
        ended = (one for one in self.outcomes if one.seconds is not None)
        return tuple(one for one in ended if one.pid in self.recorded)

    @property
    def idle(self) -> bool:
        """Reached, and nothing there matched the selector."""
        return not self.found and any(one.pid is None and one.status is Status.IDLE for one in self.outcomes)

    @property
    def found_nothing(self) -> bool:
        """It was searched completely and has no match."""
        return self.facts is not None and self.idle

    @property
    def needless(self) -> bool:
        """It was not searched, but nothing is missing: its outcomes are notes, not failures."""
        statuses = {one.status for one in self.outcomes}
        return not self.processes and not self.idle and statuses == {Status.DEGRADED}

    @property
    def failed(self) -> bool:
        """It has a failed outcome of its own."""
        return any(one.pid is None and one.status is Status.FAILED for one in self.outcomes)


class HostPart(HostRecord, frozen=True, kw_only=True):
    """A host with some of its recordings. `pids` are of all its processes."""

    pids: frozenset[int]

    @property
    def found(self) -> frozenset[int]:
        return self.pids
