"""The parts of a recording that goes on: `EVENT.part-FIRST-LAST`, compact profiles that wait to become one.

Each file has the parts of these numbers. Many files become one, so that there are few, and a part is read and
written again only a few times.

Beside each lie the figures of these parts (`EVENT.part-FIRST-LAST.json`): run.json is written now and then,
and of a run that is killed it knows less than came. After the last part they stay until the run is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec

from hprofiler._flamegraph import Profile
from hprofiler.base import bounded_json
from hprofiler.base.paths import is_file
from hprofiler.model import HostRecord, Outcome, Recording, Status
from hprofiler.runfolder import Coverage, RunFolder, replacing, times_name

_TOGETHER = 16
_ROWS = 1 << 20
"""Of the times of one event, as an agent has them at most."""


class Limits(NamedTuple):
    """Of a decoded profile.

    `cells` are nodes times values; there are at most as many names as nodes. `rows` are those of its times.
    `bytes` limits the uncompressed file and all names.
    """

    cells: int
    rows: int
    bytes: int


MOST = Limits(1 << 23, 1 << 22, 128 << 20)
"""Of the largest that an agent makes (MOST_OF_EVENT, MOST_NAMES)."""


class _File(NamedTuple):
    first: int
    last: int
    path: Path

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def figures(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.figures.unlink(missing_ok=True)


class Parts:
    """Those that a process's profile of an event (`RunFolder.profile_path`) will have.

    One thread at a time may change them. Raises ValueError if a file is damaged or too large, and OSError.
    """

    def __init__(self, profile: Path) -> None:
        self.profile = profile
        self._folder, self._event = profile.parent, profile.name.removesuffix(".pb.gz")
        self._files = self._found()

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def files(self) -> Sequence[_File]:
        """In the order of their numbers."""
        return tuple(self._files)

    def add(self, part: Path, recording: Recording, join: bool = True) -> None:
        """Take a file as the next part, with its figures; `join` many to one."""
        number = self._files[-1].last + 1 if self._files else 0
        file = _File(number, number, self._path(number, number))
        file.figures.write_bytes(msgspec.json.encode(recording))  # before it: no part is without figures
        part.replace(file.path)
        self._files.append(file)
        while join and self._are_many():
            self._join(self._files[-_TOGETHER:])

    def settle(self, labels: dict[str, str]) -> Profile:
        """Write the profile that they are together, and that with its times. They are deleted then, but for
        the figures of all."""
        whole, files = _sum(self._files), tuple(self._files)
        figures = _File(files[0].first, files[-1].last, self._path(files[0].first, files[-1].last)).figures
        figures.write_bytes(_figures(files))
        if whole.times:
            whole.write(self._folder / times_name(self.profile), "compact")
        whole.with_labels(labels).write(self.profile, "pprof", thread_label=True)
        self._remove(figures)
        return whole

    def recording(self) -> Recording | None:
        """By the figures of what is there; None if there is nothing, or its run is over."""
        if self._files:
            return _recording(file.figures for file in self._files)
        figures = list(self._folder.glob(f"{self._event}.part-*.json"))
        return _recording(figures) if len(figures) == 1 and is_file(self.profile) else None

    def remove(self) -> None:
        self._remove()

    def _remove(self, but: Path | None = None) -> None:
        for file in self._folder.glob(f"{self._event}.part-*"):
            if file != but:
                file.unlink(missing_ok=True)
        self._files.clear()

    def _are_many(self) -> bool:
        last = self._files[-_TOGETHER:]
        return len(last) == _TOGETHER and len({file.size for file in last}) == 1

    def _join(self, files: Sequence[_File]) -> None:
        joined = _File(files[0].first, files[-1].last, self._path(files[0].first, files[-1].last))
        joined.figures.write_bytes(_figures(files))
        with replacing(joined.path) as file:
            _sum(files).write(file, "compact")
        self._files[-len(files) :] = [joined]
        for one in files:
            one.remove()

    def _path(self, first: int, last: int) -> Path:
        return self._folder / f"{self._event}.part-{first}-{last}"

    def _found(self) -> list[_File]:
        """Without those that are in another, which an end between two steps has left."""
        found: list[_File] = []
        for path in self._folder.glob(f"{self._event}.part-*"):
            if numbers := re.fullmatch(r"part-(\d+)-(\d+)", path.name[len(self._event) + 1 :]):
                found.append(_File(int(numbers[1]), int(numbers[2]), path))
        kept: list[_File] = []
        for file in sorted(found, key=lambda file: (file.first, -file.last)):
            if not kept or file.last > kept[-1].last:
                kept.append(file)
        return kept


def settle_run(folder: RunFolder) -> None:
    """Put the parts of all recordings together, if the run was cut off, and their figures into run.json.

    Raises RunFolderError if the run goes on, or nothing can be written.
    """
    record = folder.record
    if record.finished or not record.hosts:
        return
    events = record.sampling.events
    with folder.alone():
        hosts = tuple(_as_kept(folder, host, events) for host in record.hosts)
        hosts = _from_first(hosts, _first(hosts) - _first(record.hosts))
        if hosts != record.hosts:
            kept = Coverage.of(hosts, len(events))
            folder.write(msgspec.structs.replace(record, hosts=hosts, coverage=kept))
        settle(folder, hosts)
        forget_figures(folder)


def settle(folder: RunFolder, hosts: Iterable[HostRecord]) -> None:
    """Put the parts of recordings together whose last one never came. Raises ValueError and OSError."""
    for host in hosts:
        for one in host.recordings:
            parts = Parts(folder.profile_path(host.name, one.pid, one.event))
            if parts:
                parts.settle(one.process.profile_labels(host.name))


def forget_figures(folder: RunFolder) -> None:
    """Of recordings that are over: run.json has them now."""
    for file in (folder.path / "hosts").glob("*/*/*.part-*.json"):
        file.unlink(missing_ok=True)


def _as_kept(folder: RunFolder, host: HostRecord, events: Sequence[str]) -> HostRecord:
    """With the figures of all that came before the run was cut off."""
    known = {(one.pid, one.event): one for one in host.recordings}
    found = {one.pid for one in host.outcomes if one.pid is not None}
    for pid, event in dict.fromkeys([*known, *((pid, event) for pid in sorted(found) for event in events)]):
        kept = Parts(folder.profile_path(host.name, pid, event)).recording()
        if kept:
            before = known.get((pid, event))
            known[pid, event] = _later(before, kept) if before else kept
    outcomes = tuple(_unless_it_came(one, events, known) for one in host.outcomes)
    return msgspec.structs.replace(host, recordings=tuple(known.values()), outcomes=outcomes)


def _later(before: Recording, kept: Recording) -> Recording:
    """What run.json says of a recording, with the figures of later. Of one of which only the last seconds are
    kept, some may have been dropped since."""
    dropped = 0.0
    if before.times and kept.times:
        dropped = max(0, kept.times.start - before.times.start) / 1e6
    return replace(
        kept,
        process=before.process,
        joined=before.joined + dropped,
        age=None if before.age is None else before.age + dropped,
        cpu_before=before.cpu_before,
    )


def _first(hosts: Iterable[HostRecord]) -> float:
    return min((one.joined for host in hosts for one in host.recordings), default=0.0)


def _from_first(hosts: tuple[HostRecord, ...], later: float) -> tuple[HostRecord, ...]:
    """Of a run of which only the last seconds are kept: it begins `later` now, and nobody joined for that."""
    if later <= 0:
        return hosts

    def moved(host: HostRecord) -> HostRecord:
        recordings = (replace(one, joined=max(0.0, one.joined - later)) for one in host.recordings)
        return msgspec.structs.replace(host, recordings=tuple(recordings))

    return tuple(map(moved, hosts))


def _unless_it_came(
    line: Outcome, events: Sequence[str], known: Mapping[tuple[int, str], Recording]
) -> Outcome:
    """An outcome that says that profiles are missing, by what came until the run was cut off."""
    if line.code != "profile-missing" or line.pid is None or line.gone:
        return line
    missing = [event for event in events if (line.pid, event) not in known]
    if not missing:
        return replace(line, status=Status.OK, stage="record", reason="", code="recorded")
    what = f" ({', '.join(missing)})" if len(missing) < len(events) else ""
    return replace(
        line,
        status=Status.DEGRADED if what else Status.FAILED,
        reason=f"the run was cut off before its first part came{what}",
        remedy="record again",
    )


def _figures(files: Iterable[_File]) -> bytes:
    return msgspec.json.encode(_recording(file.figures for file in files))


def _recording(figures: Iterable[Path]) -> Recording:
    return reduce(Recording.with_part, map(_read, figures))


def _read(figures: Path) -> Recording:
    text = figures.read_bytes()
    try:
        content = bounded_json.printable_value(bounded_json.read(text, len(text)))
        return msgspec.convert(content, Recording)
    except msgspec.ValidationError as error:
        raise ValueError(f"{figures.name}: {error}") from error


def _sum(files: Sequence[_File]) -> Profile:
    parts = [Profile.open(file.path, "compact", **MOST._asdict()) for file in files]
    return Profile.of_parts(parts, rows=_ROWS)
