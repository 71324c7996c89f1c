"""Attaches, records and detaches a thousand times on one JVM, without lasting effects.

python -m tests.lab.chaos.loops [--loops 1000] [--jdk 17] [--engine async-profiler|perf]
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hprofiler.collect.recording import collect
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, Sampling, Selector, Status
from hprofiler.transport.local import LocalTransport
from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import attach, jdks

EVENTS = {"async-profiler": ("cpu", "alloc", "lock", "wall"), "perf": ("cpu",)}
SECONDS = 0.2
IN_VAIN = 0.01
"""The fraction of loops that may yield no profile on a busy machine."""
LOOKS = 50
"""The number of measurements of the JVM, over all loops."""
WARM_UP = 0.2
"""The fraction of loops for warm-up, while the JVM compiles and sizes its memory pools."""
OPTIONS = ("-Xms48m", "-XX:+AlwaysPreTouch", "-XX:NativeMemoryTracking=summary")
"""A pre-allocated heap does not grow; the JVM tracks its native memory."""
HERE = Host("here", "localhost")
SIGMAS = 4.5
BOUNDS: dict[str, tuple[float, float]] = {
    "memory": (3072, 12 << 20),
    "native": (2048, 8 << 20),
    "threads": (0, 1),
    "files": (0, 1),
    "mappings": (0, 12),
    "libraries": (0, 0),
    "lost pace": (0, 0.05),
}
"""The allowed growth per loop, and once, for compilers and glibc's caches. HotSpot keeps the path and options
of every loaded agent, about 200 bytes per request."""

Holdings = dict[str, float]


class LoopError(Exception):
    """A loop without a recording; the text says which and why."""


class Observer:
    """Measures a burner's resources, and its pace relative to another burner's."""

    def __init__(self, burner: Burner, control: Burner) -> None:
        self._burners = (burner, control)
        self._before = [one.counters() for one in self._burners]

    def look(self) -> Holdings:
        """Bytes and counts after a full collection, and the pace lost since the last call."""
        now = [one.counters() for one in self._burners]
        burnt = [later - earlier for later, earlier in zip(now, self._before, strict=True)]
        self._before = now
        own, usual = (one.rounds / max(1, one.hot) for one in burnt)
        pid = self._burners[0].outer.pid
        attach.execute(pid, "jcmd", "GC.run")
        process = Path(f"/proc/{pid}")
        maps = (process / "maps").read_text().splitlines()
        files = 0
        for link in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                files += not os.readlink(link).startswith("socket:")
        committed = re.search(r"committed=(\d+)KB", attach.execute(pid, "jcmd", "VM.native_memory summary"))
        resident = re.search(r"Rss:\s+(\d+) kB", (process / "smaps_rollup").read_text())
        return {
            "memory": int(resident[1]) << 10 if resident else 0,
            "native": int(committed[1]) << 10 if committed else 0,
            "threads": len(os.listdir(process / "task")),
            "files": files,
            "mappings": len(maps),
            "libraries": len({tuple(line.split(maxsplit=5)[3:]) for line in maps if "/" in line}),
            "lost pace": 1 - own / usual,
        }


def trend(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The slope of a line through the points, and its margin of error."""
    loops, values = zip(*points, strict=True)
    slope, start = statistics.linear_regression(loops, values)
    middle, free = statistics.fmean(loops), len(points) - 2
    errors = sum((value - start - slope * loop) ** 2 for loop, value in points)
    deviation = math.sqrt(errors / free / sum((loop - middle) ** 2 for loop in loops))
    # Student's t for SIGMAS, by Wallace's approximation
    exponent = SIGMAS**2 * (free - 5 / 6) / (free - 2 / 3 + 1 / (10 * free)) ** 2
    return slope, deviation * math.sqrt(free * math.expm1(exponent))


def record(target: Burner, control: Burner, engine: str, count: int) -> list[tuple[int, Holdings]]:
    """Record the target `count` times; returns some measurements of its resources."""
    selector = Selector("loops", "pids", {"kind": "pids", "pids": [target.outer.pid]})
    reach, observer, seen, in_vain = Reach(LocalTransport, real.binaries()), Observer(target, control), [], 0
    for loop in range(1, count + 1):
        sink = real.Profiles()
        (result,) = collect([HERE], selector, Sampling(EVENTS[engine], 499, SECONDS, engine), reach, sink)
        if not sink.kept:
            in_vain += 1
            reasons = [line.reason for line in result.outcomes if line.status is Status.FAILED]
            if not any(reasons) or in_vain > 1 + loop * IN_VAIN:
                raise LoopError(f"loop {loop}: {in_vain} without a profile; {'; '.join(reasons)}")
        if loop % max(1, count // LOOKS) == 0:
            seen.append((loop, observer.look()))
            print(f"  {loop}: {seen[-1][1]}", file=sys.stderr, flush=True)
    return seen


def loops(jdk: int, engine: str, count: int) -> tuple[str, bool]:
    """A text with the results, and whether the JVM has no more resources and is not slower."""
    frames = ("-XX:+PreserveFramePointer",) if engine == "perf" else ()
    options = {"java": jdks.java(jdk), "role": "mixed", "load": 0.3, "options": [*OPTIONS, *frames]}
    target, control, began = Burner(**options), Burner(**options), time.monotonic()
    try:
        seen = record(target, control, engine, count)
        target.finish()
    finally:
        target.kill()
        control.kill()
    lines, good = [f"{engine} on JDK {jdk}: {count} loops in {time.monotonic() - began:.0f} s"], True
    kept = [(loop, held) for loop, held in seen if loop >= WARM_UP * count]
    for name, (each, once) in BOUNDS.items():
        slope, chance = trend([(loop, held[name]) for loop, held in kept])
        grows = slope - chance > each + once / count
        good = good and not grows
        verdict = "GROWS: " if grows else ""
        lines.append(
            f"- {verdict}{name} {kept[0][1][name]:,.4g} to {kept[-1][1][name]:,.4g}, {slope:+.3g} a loop"
        )
    return "\n".join([*lines, ""]), good


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos.loops", description=__doc__)
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--jdk", type=int, action="append", choices=jdks.VERSIONS)
    parser.add_argument("--engine", action="append", choices=sorted(EVENTS))
    options = parser.parse_args(arguments)
    all_good = True
    for jdk in options.jdk or [17]:
        for engine in options.engine or sorted(EVENTS):
            text, good = loops(jdk, engine, options.loops)
            print(text, flush=True)
            all_good = all_good and good
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
