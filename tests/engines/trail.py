"""Reads programs' counters while they are recorded, to know what they did in any stretch of it."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.burners.burner import Program
from tests.burners.counting import Counting, Native
from tests.lab import procs

TURN = 0.1
"""Seconds between two readings of a program's counters."""


@dataclass
class Trail:
    """A program's counters over time, and what the kernel counts of it, to know any stretch of it.

    "process.ns", its CPU time, is the program's own word where it has one.
    """

    times: list[float] = field(default_factory=list)
    readings: list[dict[str, int]] = field(default_factory=list)

    def read(self, program: Program) -> None:
        counts = dict(program.counters()) if isinstance(program, Counting) else {}
        pid = program.outer.pid
        if "process.ns" not in counts:
            counts["process.ns"] = round(1e9 * procs.cpu_seconds(pid))
        counts["process.faults"] = procs.page_faults(pid)
        if isinstance(program, Native):  # of a JVM's many threads it would take too long
            counts["process.switches"] = procs.context_switches(pid)
        self.times.append(time.monotonic())
        self.readings.append(counts)

    def grown(self, begin: float, end: float) -> dict[str, float]:
        """What each counter grew by between two moments; readings around them are interpolated."""
        first, last = self._at(begin), self._at(end)
        return {name: last[name] - value for name, value in first.items()}

    def bounds(self, counter: str, begin: float, end: float) -> tuple[int, int]:
        """The least and the most that a counter can have grown by: by the readings within, and around."""
        at, last = self.times, len(self.times) - 1
        within = (min(last, bisect.bisect_left(at, begin)), max(0, bisect.bisect_right(at, end) - 1))
        around = (max(0, bisect.bisect_right(at, begin) - 1), min(last, bisect.bisect_left(at, end)))
        least, most = (self.readings[to][counter] - self.readings[of][counter] for of, to in (within, around))
        return max(0, least), most

    def _at(self, moment: float) -> dict[str, float]:
        place = min(max(1, bisect.bisect(self.times, moment)), len(self.times) - 1)
        before, after = self.times[place - 1], self.times[place]
        part = min(1.0, max(0.0, (moment - before) / (after - before)))
        later = self.readings[place]
        return {
            name: value + part * (later[name] - value) for name, value in self.readings[place - 1].items()
        }


class Watch:
    """Reads the counters of programs until it is told to stop; of those that end, as long as they live."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.trails = {program.outer.pid: Trail() for program in programs}
        self._programs = list(programs)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(TURN):
            for program in list(self._programs):
                try:
                    self.trails[program.outer.pid].read(program)
                except (OSError, RuntimeError):
                    self._programs.remove(program)
