"""Which hosts and processes of an event are unlike the others, and in which methods; docs/outliers.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hprofiler._flamegraph import Difference, Distance, Outliers, Profile
from hprofiler.analysis.attribution import counts_waits, with_waits_named, without_idle
from hprofiler.analysis.waits import Wait
from hprofiler.analysis.words import percent, short_name
from hprofiler.model import HostRecord, Recording
from hprofiler.model.measures import measure_of

# What is compared where the first column of the event is an estimate; a sample stands for bytes, not objects.
_COMPARED = {"alloc": "alloc_space", "live": "inuse_space"}
# Events whose first column counts samples: of others only the recording knows how many there were.
_COUNTED = ("cpu", "wall", "offcpu")


@dataclass(frozen=True)
class Unlike:
    """How far a host, or with `pid` a process, is from the others, as `samples` show it.

    `waits` says what names of waits mean.
    """

    host: str
    samples: int
    distance: Distance
    waits: Mapping[str, Wait]
    pid: int | None = None
    label: str = ""

    @property
    def outlier(self) -> bool:
        return self.distance.outlier

    @property
    def most_different(self) -> Difference | None:
        """The method that makes most of the difference; the rare ones only where there is no other."""
        methods = self.distance.methods
        return next((one for one in methods if not one.name.startswith("(rare ")), next(iter(methods), None))


@dataclass(frozen=True)
class Compared:
    """Hosts and processes with samples; outliers first, then by how much farther than chance they are."""

    hosts: tuple[Unlike, ...] = ()
    processes: tuple[Unlike, ...] = ()

    @property
    def odd_hosts(self) -> tuple[Unlike, ...]:
        return tuple(one for one in self.hosts if one.outlier)

    @property
    def odd_processes(self) -> tuple[Unlike, ...]:
        return tuple(one for one in self.processes if one.outlier)


class Comparison:
    """Takes the profiles of an event one by one, and keeps their methods' samples only."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._value = _COMPARED.get(event, measure_of(event).columns[0][0])
        self._waits: dict[str, Wait] = {}
        self._hosts = _Ranking(self._waits)
        self._processes: dict[bool, _Ranking] = {}  # JVMs, and others: their frames have nothing in common

    def add_process(self, host: HostRecord, recording: Recording, profile: Profile, whole: int) -> int:
        """Add a process, whose total was `whole` before trimming; returns its number of samples."""
        profile = self._named(profile)
        samples = self._samples(recording, profile, whole)
        ranking = self._processes.setdefault(recording.process.is_jvm, _Ranking(self._waits))
        ranking.add(profile, self._value, samples, host, recording)
        return samples

    def add_host(self, host: HostRecord, profile: Profile, samples: int) -> None:
        """The profile of a host, all its processes together, and the sum of their samples."""
        self._hosts.add(self._named(profile), self._value, samples, host, None)

    def whole(self, profile: Profile) -> int:
        """The total of what is compared."""
        return profile.total(self._value)

    def finish(self) -> Compared:
        processes = (one for ranking in self._processes.values() for one in ranking.ranked())
        return Compared(self._hosts.ranked(), tuple(sorted(processes, key=_rank)))

    def _named(self, profile: Profile) -> Profile:
        """Waits by their names, without idle threads; what only idles is compared by what it waits for."""
        if not counts_waits(self._event):
            return profile
        busy = without_idle(self._event, profile)
        named, waits = with_waits_named(self._event, busy if busy.total(self._value) else profile)
        self._waits |= waits
        return named

    def _samples(self, recording: Recording, profile: Profile, whole: int) -> int:
        left = profile.total(self._value)
        taken = recording.samples.taken
        if self._event in _COUNTED or taken <= 0 or whole <= 0:
            return left
        return min(left, max(1, round(taken * left / whole))) if left else 0


class _Ranking:
    """Distances within one group."""

    def __init__(self, waits: Mapping[str, Wait]) -> None:
        self._waits = waits
        self._outliers = Outliers()
        self._rows: list[tuple[HostRecord, Recording | None, int]] = []

    def add(
        self,
        profile: Profile,
        value: str,
        samples: int,
        host: HostRecord,
        recording: Recording | None,
    ) -> None:
        self._outliers.add(profile, value, samples=samples)
        self._rows.append((host, recording, samples))

    def ranked(self) -> tuple[Unlike, ...]:
        found = zip(self._rows, self._outliers.distances(), strict=False)
        rows = [
            Unlike(
                host.name, samples, distance, self._waits, one.pid if one else None, one.label if one else ""
            )
            for (host, one, samples), distance in found
            if distance is not None
        ]
        return tuple(sorted(rows, key=_rank))


def _rank(one: Unlike) -> tuple[bool, float]:
    """Divergence relative to what chance explains: with few samples both are large."""
    distance = one.distance
    return not one.outlier, -distance.divergence / distance.noise if distance.noise else 0.0


def who(one: Unlike) -> str:
    """ "host7", "executor 3 on host7", "pid 4711 on host7"."""
    if one.pid is None:
        return one.host
    return f"{one.label or f'pid {one.pid}'} on {one.host}"


def what_differs(one: Unlike) -> str:
    """ "GC.copy 31 % here, 9 % usually"; "" where nothing differs."""
    most = one.most_different
    if most is None:
        return ""
    wait = one.waits.get(most.name)
    return f"{wait.short if wait else short_name(most.name)} {shares_of(most)}"


def shares_of(most: Difference) -> str:
    return f"{percent(most.share, 1)} here, {percent(most.usual, 1)} usually"
