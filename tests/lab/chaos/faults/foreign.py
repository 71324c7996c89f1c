"""Somebody else's files where ours are, or are about to be, while a run goes on."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.lab.chaos.fault import BEFORE, Circumstances, Excuse, Fault, Moment, any_moment
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running

PRIVATE = "/tmp/.hprofiler-0"
STRANGER = 2002
TREASURE = "/home/treasure"


def _link(place: Path) -> None:
    place.symlink_to(TREASURE)


def _fifo(place: Path) -> None:
    os.mkfifo(place)


def _huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


def _folder(place: Path) -> None:
    place.mkdir()
    os.chown(place, STRANGER, STRANGER)


def _socket(place: Path) -> None:
    os.mknod(place, 0o140777)


KINDS: dict[str, Callable[[Path], None]] = {
    "a link": _link,
    "a FIFO": _fifo,
    "a huge file": _huge,
    "a stranger's folder": _folder,
    "a socket": _socket,
}


class HostileFile(Fault):
    """A thing that is not one of ours in the agent's private folder, in place of one of its files."""

    name = "hostile file in our folder"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.kind = chance.choice(list(KINDS))
        self._which = chance.random()
        self._placed: list[Path] = []
        self._changed = False
        self._treasure = ground.host(self.host).path(TREASURE)

    def choose_moment(self) -> Moment | None:
        before = self.chance.random() < 0.5
        return BEFORE if before else any_moment(self.chance, Circumstances.duration)

    def begin(self, running: Running | None) -> None:
        self._treasure.write_text("not to be touched")
        folder = self.ground.host(self.host).path(PRIVATE)
        if not folder.is_dir():
            self.struck = False
            return
        ours = sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
        for place in [*ours[int(self._which * len(ours)) :][:1], folder / ("0" * 64)]:
            _remove(place)
            KINDS[self.kind](place)
            self._placed.append(place)

    def end(self) -> None:
        for place in self._placed:
            _remove(place)
        if self._treasure.exists():
            self._changed = self._treasure.read_text() != "not to be touched"
            self._treasure.unlink()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}))

    def complaints(self) -> list[str]:
        return [f"{self.host}: what a link in our folder leads to was changed"] if self._changed else []

    def where(self) -> str:
        return f"{self.host}, {self.kind}"


class HostileFolder(HostileFile):
    """Our private folder's name is taken by something else before the run."""

    name = "hostile thing for our folder"

    def choose_moment(self) -> Moment | None:
        return BEFORE

    def begin(self, running: Running | None) -> None:
        self._treasure.write_text("not to be touched")
        folder = self.ground.host(self.host).path(PRIVATE)
        _remove(folder)
        KINDS[self.kind](folder)
        self._placed.append(folder)

    def excuse(self) -> Excuse:
        return Excuse()  # there are other places


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif place.is_symlink() or place.exists():
        place.unlink()


FAULTS: list[type[Fault]] = [HostileFile, HostileFolder]
