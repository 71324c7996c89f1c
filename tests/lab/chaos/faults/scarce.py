"""Disks of a host or the coordinator on which there is no room, or nothing may be written or run."""

from __future__ import annotations

import os
import random

from tests.lab.chaos.fault import BEFORE, Circumstances, Excuse, Fault, Moment, any_moment
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running
from tests.lab.hosts import WRITABLE_FOLDERS, LabError

USERS_OWN = ("/home", "/data")
"""Where the JVM's own user keeps things: they are left as they are."""
TRIES = 10


class _Scarce(Fault):
    """Something is scarce on a host from before the start, or from some moment on."""

    def choose_moment(self) -> Moment | None:
        before = self.chance.random() < 0.5
        return BEFORE if before else any_moment(self.chance, Circumstances.duration)

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}))


class _Remounted(_Scarce):
    """Folders of a host that are mounted otherwise for a while."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        everywhere = [folder for folder in WRITABLE_FOLDERS if folder not in USERS_OWN]
        self.folders = ["/tmp"] if chance.random() < 0.5 else everywhere

    def begin(self, running: Running | None) -> None:
        for folder in self.folders:
            self._make_scarce(folder)

    def _make_scarce(self, folder: str) -> None:
        """No mount gets smaller than what is in it, which may grow after it was looked at."""
        for tries_left in reversed(range(TRIES)):
            try:
                self.ground.host(self.host).run(["mount", "-o", f"remount,{self.scarce(folder)}", folder])
                return
            except LabError:
                if not tries_left:
                    raise

    def end(self) -> None:
        for folder in self.folders:
            self.ground.host(self.host).run(["mount", "-o", f"remount,{self.usual}", folder])

    usual = "size=50%,nr_inodes=100000"

    def scarce(self, folder: str) -> str:
        """The options of the mount while it lasts."""
        raise NotImplementedError

    def where(self) -> str:
        return f"{self.host}, {' '.join(self.folders)}"

    def _used(self, folder: str) -> os.statvfs_result:
        return os.statvfs(self.ground.host(self.host).path(folder))


class FullDisk(_Remounted):
    """No room for more than some kilobytes."""

    name = "disk full"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self._room = 4 + chance.choice((0, 0, 256, 4096))

    def scarce(self, folder: str) -> str:
        used = self._used(folder)
        taken = (used.f_blocks - used.f_bfree) * used.f_frsize >> 10
        return f"size={taken + self._room}k"


class NoInodes(_Remounted):
    """No room for one more file."""

    name = "no inodes"

    def scarce(self, folder: str) -> str:
        used = self._used(folder)
        return f"nr_inodes={max(2, used.f_files - used.f_ffree)}"


class ReadOnly(_Remounted):
    """Nothing can be written, and nothing that is there deleted, until it is over."""

    name = "read-only"

    def begin(self, running: Running | None) -> None:
        for folder in self.folders:
            self.ground.host(self.host).run(["mount", "--bind", folder, folder])
            self.ground.host(self.host).run(["mount", "-o", "remount,bind,ro", folder])

    def end(self) -> None:
        for folder in self.folders if self.struck else ():
            self.ground.host(self.host).run(["umount", "-l", folder])

    def choose_moment(self) -> Moment | None:
        return BEFORE  # what is open stays in the folder below, and could not be cleaned


FAULTS: list[type[Fault]] = [FullDisk, NoInodes, ReadOnly]
