"""The last seconds of a recording that goes on (`--keep-last`): older parts are dropped as new ones come."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import reduce
from pathlib import Path

import msgspec

from hprofiler._flamegraph import Profile
from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file
from hprofiler.model import HostRecord, Pauses, Recording, Samples, SampleTimes
from hprofiler.runfolder import RunFolder, replacing
from hprofiler.runfolder.metrics_file import read_metrics, write_metrics
from hprofiler.runfolder.parts import MOST, Parts

_SLACK = 10.0
"""Seconds that a part is kept longer than it must be: it may come late."""


@dataclass(frozen=True)
class _Part:
    recording: Recording
    arrived: float


@dataclass(frozen=True)
class Kept:
    """What is left of a run: it began at `start` (microseconds since 1970), for so many `seconds`, and was
    recorded for `recorded` seconds in all. Its last process had ended `quiet` seconds before the end."""

    hosts: tuple[HostRecord, ...]
    start: int
    seconds: float
    recorded: float
    quiet: float


class Window:
    """Knows the parts that are kept of each profile, by its path. From any thread."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._kept: dict[Path, list[_Part]] = {}
        self._ended: dict[tuple[str, int], float] = {}
        self._lock = threading.Lock()

    def add(self, parts: Parts, arrived: Path, recording: Recording) -> None:
        """Take a file as the next part of a profile, and drop those that are too old."""
        now = time.monotonic()
        parts.add(arrived, recording, join=False)
        with self._lock:
            kept = self._kept.setdefault(parts.profile, [])
            kept.append(_Part(recording, now))
            # What came at a moment was recorded before it.
            old = sum(one.arrived < now - self.seconds - _SLACK for one in kept)
            del kept[:old]
        for file in parts.files[:old]:
            file.remove()

    def figures(self, folder: RunFolder, hosts: Iterable[HostRecord]) -> list[HostRecord]:
        """The hosts with the figures of what is kept. Called often: it notes when processes ended, and drops
        all of those that ended long before."""
        hosts = tuple(hosts)
        now, length = time.monotonic(), self.seconds + 2 * _SLACK
        for host in hosts:
            for one in host.outcomes:
                if one.gone and one.pid is not None:
                    self._ended.setdefault((host.name, one.pid), now)
        past = {who for who, when in self._ended.items() if when < now - length}
        self._drop({folder.host_dir(name) / str(pid) for name, pid in past})
        with self._lock:
            known = {path: [part.recording for part in parts] for path, parts in self._kept.items()}
        start = min((one.times.start for parts in known.values() for one in parts if one.times), default=0)

        def kept(host: HostRecord, one: Recording) -> Recording:
            parts = known.get(folder.profile_path(host.name, one.pid, one.event))
            if not parts:
                return one
            first = parts[0].times.start if parts[0].times else start
            return replace(_last_of(one, parts), joined=(first - start) / 1e6)

        def all_of(host: HostRecord) -> HostRecord:
            gone = {pid for name, pid in past if name == host.name}
            since = round((time.time() - length) * 1e6)
            return msgspec.structs.replace(
                host,
                recordings=tuple(kept(host, one) for one in host.recordings if one.pid not in gone),
                outcomes=tuple(one for one in host.outcomes if one.pid not in gone),
                pauses=tuple(_since(one, since) for one in host.pauses if one.pid not in gone),
            )

        return [all_of(host) for host in hosts]

    def _drop(self, folders: Collection[Path]) -> None:
        """Delete the parts of processes, by their folders."""
        with self._lock:
            old = [path for path in self._kept if path.parent in folders]
            for path in old:
                del self._kept[path]
        for path in old:
            Parts(path).remove()

    def cut(self, folder: RunFolder, hosts: Sequence[HostRecord], ended: float | None) -> Kept | None:
        """Cut everything to the last seconds before the run's end; None if no time is known.

        The end is that of the recordings that lasted until then, or until their host was lost. If none did,
        the run `ended` at this moment (seconds since 1970); None: with its last process. A part that began
        before is divided by its samples, and so are its figures. Processes that ended by themselves before
        are left out. Raises ValueError and OSError.
        """
        parts = [one.recording for kept in self._kept.values() for one in kept]
        recordings = [one for host in hosts for one in host.recordings]
        known = [one for one in parts if one.times] or [one for one in recordings if one.times]
        if not recordings or not known:
            return None
        latest = max(map(_end, known))
        lasted = [end for host in hosts for end in self._lasted(folder, host)]
        end = max(lasted, default=latest if ended is None else max(latest, round(ended * 1e6)))
        first = min(one.times.start for one in known if one.times)
        start = max(end - round(self.seconds * 1e6), first)  # it may have lasted for less
        began = time.monotonic() - (time.time() - start / 1e6)
        cut = tuple(self._cut_host(folder, host, start, began) for host in hosts)
        quiet = max(0.0, (end - latest) / 1e6)
        recorded = max(one.ended for one in recordings) + quiet
        return Kept(cut, start, (end - start) / 1e6, recorded, quiet)

    def _lasted(self, folder: RunFolder, host: HostRecord) -> Iterator[int]:
        """When recordings ended that did not end before the run."""
        over = {one.pid for one in host.outcomes if one.gone or one.seconds is not None}
        for one in host.recordings:
            parts = self._kept.get(folder.profile_path(host.name, one.pid, one.event), ())
            if one.pid not in over:
                yield from (_end(part.recording) for part in parts if part.recording.times)

    def _cut_host(self, folder: RunFolder, host: HostRecord, start: int, began: float) -> HostRecord:
        """`began` is the start by the clock of arrivals."""
        recordings = []
        for one in host.recordings:
            path = folder.profile_path(host.name, one.pid, one.event)
            parts: Sequence[_Part] = self._kept.get(path, ())
            kept = list(_cut_parts(path, parts, start, began))
            if kept:
                first = kept[0].times.start if kept[0].times and kept[0] is parts[0].recording else start
                recordings.append(replace(_last_of(one, kept), joined=max(0, first - start) / 1e6))
            else:
                with suppress(OSError):  # other events may be there
                    path.parent.rmdir()
        metrics = folder.metrics_path(host.name)
        if is_file(metrics):
            with suppress(RunFolderError):  # the report says that they cannot be read
                write_metrics(metrics, read_metrics(metrics).since(start))
        known = {one.pid: one for one in recordings}
        ended = {pid for (name, pid), when in self._ended.items() if name == host.name and when < began}
        gone = {one.pid for one in host.outcomes if one.gone} & (host.recorded | ended) - known.keys()
        outcomes = tuple(
            replace(one, seconds=min(one.seconds, known[one.pid].seconds))
            if one.seconds is not None and one.pid in known
            else one
            for one in host.outcomes
            if one.pid not in gone
        )
        pauses = tuple(_since(one, start) for one in host.pauses if one.pid not in gone)
        return msgspec.structs.replace(host, recordings=tuple(recordings), outcomes=outcomes, pauses=pauses)


def _last_of(one: Recording, kept: Sequence[Recording]) -> Recording:
    """What is left of a recording: its last parts."""
    whole = reduce(Recording.with_part, kept)
    return replace(
        whole,
        process=one.process,
        age=None if one.age is None else one.age + max(0.0, one.seconds - whole.seconds),
        cpu_before=None
        if one.cpu_before is None
        else one.cpu_before + max(0.0, one.cpu_seconds - whole.cpu_seconds),
    )


def _cut_parts(profile: Path, kept: Sequence[_Part], start: int, began: float) -> Iterator[Recording]:
    for file, part in zip(Parts(profile).files, kept, strict=True):
        one = part.recording
        is_old = _end(one) <= start if one.times else part.arrived <= began
        if is_old:
            file.remove()
        elif one.times and one.times.start < start:
            yield _cut_part(file.path, one, start)
        else:
            yield one


def _cut_part(path: Path, one: Recording, start: int) -> Recording:
    whole = Profile.open(path, "compact", **MOST._asdict())
    later = whole.since(start)
    assert whole.times is not None and later.times is not None
    with replacing(path) as file:
        later.write(file, "compact")
    seconds = (_end(one) - start) / 1e6
    before, after = whole.times.samples, later.times.samples
    share = after / before if before else seconds / one.seconds
    return replace(
        one,
        samples=Samples(*(round(share * count) for count in astuple(one.samples))),
        seconds=seconds,
        cpu_seconds=share * one.cpu_seconds,
        totals={name: later.total(name) for name, _ in later.values},
        times=SampleTimes(later.times.start, later.times.width),
    )


def _end(one: Recording) -> int:
    return (one.times.start if one.times else 0) + round(one.seconds * 1e6)


def _since(pauses: Pauses, start: int) -> Pauses:
    """Those that ended later. What is left out of an agent's list are the last ones of a long recording."""
    rows = zip(pauses.collector, pauses.end, pauses.duration, strict=False)
    columns = list(zip(*(row for row in rows if row[1] > start), strict=True)) or [(), (), ()]
    return replace(pauses, collector=columns[0], end=columns[1], duration=columns[2])
