"""Attach, record, detach: a thousand times on one JVM, which must not notice.

python -m tests.lab.chaos.loops [--loops 1000] [--jdk 17] [--engine async-profiler|perf] [--report FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hprofiler.collect import Queue, Reach, collect
from hprofiler.model import Host, HostResult, Process, Recording, Sampling, Selector, Status
from hprofiler.transport import LocalTransport
from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import jdks
from tests.lab.chaos.holdings import Holdings, Observer, growth, settled, trends

ENGINES = ("async-profiler", "perf")
EVENTS = {"async-profiler": ("cpu", "alloc", "lock", "wall"), "perf": ("cpu",)}
SECONDS = 0.2
IN_VAIN = 0.01
"""The part of the loops that may yield nothing."""
LOOKS = 50
"""How often the JVM is looked at, over all loops."""
OPTIONS = ("-Xms48m", "-XX:+AlwaysPreTouch", "-XX:NativeMemoryTracking=summary")
"""A heap that is there from the start does not grow; the JVM keeps books of its own memory."""
HERE = Host("here", "localhost")


class LoopError(Exception):
    """A loop in which the JVM was not recorded; the text says which and why."""


class Counted:
    """A sink that keeps nothing but the number of profiles."""

    def __init__(self) -> None:
        self.profiles = 0

    def profile(
        self, host: Host, recording: Recording, pieces: Iterator[bytes], queue: Queue
    ) -> Mapping[str, int]:
        assert sum(map(len, pieces))
        self.profiles += 1
        return {}

    def raw(self, host: Host, process: Process, name: str, pieces: Iterator[bytes]) -> None:
        raise AssertionError("not asked for")


def burner(jdk: int, engine: str) -> Burner:
    """A JVM that allocates and waits for locks as well."""
    frames = ("-XX:+PreserveFramePointer",) if engine == "perf" else ()
    return Burner(java=jdks.java(jdk), role="mixed", load=0.3, options=[*OPTIONS, *frames])


def loops(target: Burner, control: Burner, engine: str, count: int) -> tuple[list[tuple[int, Holdings]], int]:
    """Record the target so often: what it held, now and then, and how many loops yielded nothing."""
    selector = Selector("loops", "pids", {"kind": "pids", "pids": [target.outer.pid]})
    reach = Reach(LocalTransport, real.binaries())
    observer, seen, in_vain = Observer(target, control), [], 0
    for loop in range(1, count + 1):
        sink = Counted()
        sampling = Sampling(EVENTS[engine], 499, SECONDS, engine)
        (result,) = collect([HERE], selector, sampling, reach, sink)
        if not sink.profiles:
            in_vain += 1
            _check(loop, in_vain, result)
        if loop % max(1, count // LOOKS) == 0:
            seen.append((loop, observer.look()))
            print(f"  {loop}: {seen[-1][1]}", file=sys.stderr, flush=True)
    return seen, in_vain


def _check(loop: int, in_vain: int, result: HostResult) -> None:
    """A machine that is too busy may cost a few recordings, where the ledger has the reason."""
    reasons = [line.reason for line in result.outcomes if line.status is Status.FAILED]
    print(f"  {loop}: {reasons}", file=sys.stderr, flush=True)
    if not any(reasons) or in_vain > 1 + loop * IN_VAIN:
        raise LoopError(f"loop {loop}: {in_vain} without a profile; {'; '.join(reasons)}")


def told(engine: str, jdk: int, seen: Sequence[tuple[int, Holdings]], seconds: float) -> str:
    """One paragraph: what was held at first and at last, and by how much it rose."""
    (first_loop, first), (last_loop, last) = settled(seen)[0], seen[-1]
    rises = "\n".join(
        f"- {name}: {t.slope:+.4g} ± {t.deviation:.2g} a loop" for name, t in trends(seen).items()
    )
    title = f"{engine} on JDK {jdk}: {last_loop} loops in {seconds:.0f} s"
    return f"{title}\n- after loop {first_loop}: {first}\n- after loop {last_loop}: {last}\n{rises}\n"


def tried(jdk: int, engine: str, count: int) -> tuple[str, bool]:
    """What the loops came to, in words, and whether the JVM took no notice."""
    target, control, began = burner(jdk, engine), burner(jdk, engine), time.monotonic()
    try:
        seen, in_vain = loops(target, control, engine, count)
        more = growth(seen)
        target.finish()
    finally:
        target.kill()
        control.kill()
    verdict = f"- without a profile: {in_vain}\n" + (f"- grows: {more}\n" if more else "- nothing grows\n")
    return told(engine, jdk, seen, time.monotonic() - began) + verdict, more is None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos.loops", description=__doc__)
    parser.add_argument("--loops", type=int, default=1000)
    parser.add_argument("--jdk", type=int, action="append", choices=jdks.VERSIONS)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(arguments)
    paragraphs, good = [], True
    for jdk in options.jdk or [17]:
        for engine in options.engine or ENGINES:
            words, unharmed = tried(jdk, engine, options.loops)
            paragraphs.append(words)
            print(words, flush=True)
            good = good and unharmed
    if options.report:
        options.report.write_text("\n".join(paragraphs), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
