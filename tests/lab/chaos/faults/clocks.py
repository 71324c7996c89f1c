"""The coordinator's wall clock off by an hour against all hosts: a library before libc answers for it.

A machine has one wall clock, and this one's is not to be set.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab import cache
from tests.lab.chaos.fault import BEFORE, Circumstances, Fault, Moment
from tests.lab.coordinator import Running

SOURCE = Path(__file__).parents[1] / "clock_off.c"
HOUR = 3600


def clock_library() -> Path:
    """The library, compiled once."""

    def compiled(folder: Path) -> None:
        output = str(folder / "clock_off.so")
        subprocess.run(["gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", output, str(SOURCE)], check=True)

    return cache.made(cache.folder("chaos"), "clock_off", SOURCE.read_bytes(), compiled) / "clock_off.so"


class WallClockOff(Fault):
    """The coordinator's wall clock is an hour off from the start, or set by an hour in the middle."""

    name = "clock off by an hour"

    def choose_moment(self) -> Moment | None:
        self._off = self.chance.choice((-HOUR, HOUR))
        self._after = self.chance.choice((0, 1, 2, 3))
        return BEFORE

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.environment.update(
            LD_PRELOAD=str(clock_library()), CLOCK_OFF=str(self._off), CLOCK_OFF_AFTER=str(self._after)
        )

    def begin(self, running: Running | None) -> None:
        """The environment does it."""

    def where(self) -> str:
        return f"the coordinator, by {self._off:+} s after {self._after} s"


FAULTS: list[type[Fault]] = [WallClockOff]
