"""The parts of a recording that goes on: `EVENT.part-FIRST-LAST`, compact profiles that wait to become one.

Each file has the parts of these numbers. Many files become one, so that there are few, and a part is read and
written again only a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hprofiler._flamegraph import Profile
from hprofiler.model import HostRecord
from hprofiler.runfolder import RunFolder, replacing, times_name

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

    def add(self, part: Path, join: bool = True) -> None:
        """Take a file as the next part; `join` many to one."""
        number = self._files[-1].last + 1 if self._files else 0
        file = _File(number, number, self._path(number, number))
        part.replace(file.path)
        self._files.append(file)
        while join and self._are_many():
            self._join(self._files[-_TOGETHER:])

    def settle(self, labels: dict[str, str]) -> Profile:
        """Write the profile that they are together, and that with its times. They are deleted then."""
        whole = _sum(self._files)
        if whole.times:
            whole.write(self._folder / times_name(self.profile), "compact")
        whole.with_labels(labels).write(self.profile, "pprof", thread_label=True)
        self.remove()
        return whole

    def remove(self) -> None:
        for file in self._folder.glob(f"{self._event}.part-*"):
            file.unlink(missing_ok=True)
        self._files.clear()

    def _are_many(self) -> bool:
        last = self._files[-_TOGETHER:]
        return len(last) == _TOGETHER and len({file.size for file in last}) == 1

    def _join(self, files: Sequence[_File]) -> None:
        joined = _File(files[0].first, files[-1].last, self._path(files[0].first, files[-1].last))
        with replacing(joined.path) as file:
            _sum(files).write(file, "compact")
        self._files[-len(files) :] = [joined]
        for one in files:
            one.path.unlink(missing_ok=True)

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
    """Put the parts of all recordings together, if the run was cut off.

    Raises RunFolderError if the run goes on, or nothing can be written.
    """
    record = folder.record
    if record.finished or not record.hosts:
        return
    with folder.alone():
        settle(folder, record.hosts)


def settle(folder: RunFolder, hosts: Iterable[HostRecord]) -> None:
    """Put the parts of recordings together whose last one never came. Raises ValueError and OSError."""
    for host in hosts:
        for one in host.recordings:
            parts = Parts(folder.profile_path(host.name, one.pid, one.event))
            if parts:
                parts.settle(one.process.profile_labels(host.name))


def _sum(files: Sequence[_File]) -> Profile:
    parts = [Profile.open(file.path, "compact", **MOST._asdict()) for file in files]
    return Profile.of_parts(parts, rows=_ROWS)
