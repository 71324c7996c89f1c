"""What a JVM holds after so many loops, and whether it becomes more."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.burners.burner import Burner
from tests.lab import attach

SIGMAS = 4.5
WARM_UP = 0.2
"""The part of the loops in which a JVM still settles: it compiles, its memory pools get their size."""


@dataclass(frozen=True)
class Holdings:
    """After a full collection: bytes, counts, and the rounds that a CPU second is good for."""

    memory: int
    native: int
    """Committed memory by the JVM's own books (0 where it keeps none)."""
    threads: int
    files: int
    mappings: int
    libraries: int
    """Files that are mapped, each once; one that is deleted and there again counts twice."""
    pace: float
    """Rounds that a CPU second is good for, as a part of those of a JVM that nobody attaches to."""

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:,.4g}" for name, value in asdict(self).items() if name != "memory"
        ) + (f", memory {self.memory:,} bytes")


class Observer:
    """Takes the holdings of one burner, time and again; its pace is compared to that of another one."""

    def __init__(self, burner: Burner, control: Burner) -> None:
        self._burner = burner
        self._pace, self._usual = _Pace(burner), _Pace(control)

    def look(self) -> Holdings:
        """What it holds now; the pace is that since the last look."""
        pace = self._pace.since() / self._usual.since()
        pid = self._burner.outer.pid
        attach.execute(pid, "jcmd", "GC.run")
        process = Path(f"/proc/{pid}")
        maps = (process / "maps").read_text().splitlines()
        return Holdings(
            memory=_kibibytes((process / "smaps_rollup").read_text(), r"^Rss:\s+(\d+) kB"),
            native=_kibibytes(attach.execute(pid, "jcmd", "VM.native_memory summary"), r"committed=(\d+)KB"),
            threads=len(os.listdir(process / "task")),
            files=sum(not name.startswith("socket:") for name in _open_files(process)),
            mappings=len(maps),
            libraries=len({tuple(line.split(maxsplit=5)[3:]) for line in maps if "/" in line}),
            pace=pace,
        )


class _Pace:
    def __init__(self, burner: Burner) -> None:
        self._burner, self._before = burner, burner.counters()

    def since(self) -> float:
        """Rounds of the hot method in a second of its CPU time, since it was last asked."""
        now = self._burner.counters()
        burnt, self._before = now - self._before, now
        return burnt.rounds / max(1, burnt.hot) * 1e9


def _kibibytes(text: str, pattern: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def _open_files(process: Path) -> Iterable[str]:
    for link in (process / "fd").iterdir():
        try:
            yield os.readlink(link)
        except FileNotFoundError:
            continue  # closed meanwhile


@dataclass(frozen=True)
class Trend:
    """A line through what was seen: its slope for each loop, and how far off that may be by chance."""

    slope: float
    deviation: float
    points: int

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> Trend:
        """Least squares; at least three points, not all at one place."""
        count = len(points)
        middle_x, middle_y = (sum(values) / count for values in zip(*points, strict=False))
        spread = sum((x - middle_x) ** 2 for x, _ in points)
        slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
        errors = sum((y - middle_y - slope * (x - middle_x)) ** 2 for x, y in points)
        return cls(slope, math.sqrt(errors / (count - 2) / spread), count)

    def surely_over(self, bound: float) -> bool:
        """Whether it rises by more than `bound` a loop, and not by chance."""
        return self.slope - self._chance() * self.deviation > bound

    def _chance(self) -> float:
        """SIGMAS, of an estimated deviation: Student's t as likely, by Wallace's approximation."""
        free = self.points - 2
        exponent = SIGMAS**2 * (free - 5 / 6) / (free - 2 / 3 + 1 / (10 * free)) ** 2
        return math.sqrt(free * math.expm1(exponent))


BOUNDS: dict[str, float] = {
    "memory": 3072,
    "native": 2048,
    "threads": 0.0,
    "files": 0.0,
    "mappings": 0.0,
    "libraries": 0.0,
}
"""What a loop may add. HotSpot keeps path and options of every agent that was ever loaded, some 200 bytes
for each of the four times that a recording asks async-profiler something; beside that nothing may stay."""
ONCE: dict[str, float] = {"memory": 12 << 20, "native": 8 << 20, "threads": 1, "files": 1, "mappings": 12}
"""What may come once, however many loops there are: what a compiler takes, and glibc keeps."""
SLOWER = 0.05
"""The part of its pace that a JVM may have lost after all loops."""


def settled(seen: Sequence[tuple[int, Holdings]]) -> list[tuple[int, Holdings]]:
    """Without the warm-up."""
    last = seen[-1][0]
    return [(loop, held) for loop, held in seen if loop >= WARM_UP * last]


def trends(seen: Sequence[tuple[int, Holdings]]) -> dict[str, Trend]:
    """Each thing's trend over the loops."""
    kept = settled(seen)
    names = (*BOUNDS, "pace")
    return {name: Trend.of([(loop, getattr(held, name)) for loop, held in kept]) for name in names}


def growth(seen: Sequence[tuple[int, Holdings]]) -> str | None:
    """What became more, or slower, in words; None where nothing did."""
    found, loops = trends(seen), seen[-1][0]
    wrong = [
        f"{name} {found[name].slope:+.3g} a loop"
        for name, bound in BOUNDS.items()
        if found[name].surely_over(bound + ONCE.get(name, 0) / loops)
    ]
    if replace(found["pace"], slope=-found["pace"].slope).surely_over(SLOWER / loops):
        wrong.append(f"the pace fell by {-found['pace'].slope:.3g} a loop")
    return "; ".join(wrong) or None
