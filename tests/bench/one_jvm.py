"""What profiling costs one busy JVM, and whether it tells the truth: beside async-profiler by hand."""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.commands import COMMAND, BenchError, measure, start
from tests.bench.cost import percent_lost, verdict
from tests.bench.table import Row
from tests.burners.burner import Burner
from tests.lab import attach, procs

FREQUENCY = 300
WINDOW = 2.0
PAIRS = 32
"""Even: as many begin with the profiler as without."""
TRUTH_SECONDS = 10
TRUTH_ROUNDS = 3
HOTTEST = 5


@dataclass(frozen=True)
class Rate:
    """What a JVM got done in a window: rounds a second of wall time, rounds a second of its CPU time."""

    by_wall: float
    by_cpu: float


Pair = tuple[Rate, Rate]


def throughput_lost(
    what: str, promised: float, options: Sequence[str] = (), flags: Sequence[str] = ()
) -> Row:
    """Rounds with the profiler on and off in many short pairs, each the other way round than the one before.

    `options` are hprofiler's, `flags` the JVM's, `promised` is in percent.

    Whoever else runs on the machine moves the wall-clock figure by far more than 2 %. So the verdict is on
    what is ours for sure: work done for each second of CPU time the JVM got, and the CPU time that hprofiler
    itself took away. Two windows without the profiler follow each other between pairs: what they seem to
    lose is how far the comparison itself can be trusted.
    """
    own: list[float] = []
    with _busy_jvm(flags) as jvm:
        _profiled_rate(jvm, own, options)
        own.clear()
        pairs, beside = _pairs(jvm, own, options)
    lost = percent_lost([(off.by_cpu, on.by_cpu) for off, on in pairs])
    noise = percent_lost([(before.by_cpu, after.by_cpu) for before, after in beside])
    lost_wall = percent_lost([(off.by_wall, on.by_wall) for off, on in pairs])
    taken = 100 * statistics.fmean(own)
    holds = verdict(lost.high + taken, noise.farthest, promised)
    measured = (
        f"{lost} of a CPU second's rounds (off beside off: {noise}) and {taken:.1f} % of a CPU "
        f"for hprofiler itself; by wall clock {lost_wall}; {len(pairs)} pairs"
    )
    told = measured if holds is not None else f"too noisy to tell: {measured}"
    return Row(what, told, f"under {promised:g} %", holds)


def _pairs(jvm: Burner, own: list[float], options: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Pairs of off and on: off, on, on, off, …; and those of off and off where one pair follows another."""
    pairs: list[Pair] = []
    beside: list[Pair] = []
    for turn in range(PAIRS):
        if turn % 2:
            on = _profiled_rate(jvm, own, options)
            off = _rate(jvm)
        else:
            off = _rate(jvm)
            if pairs:
                beside.append((pairs[-1][0], off))
            on = _profiled_rate(jvm, own, options)
        pairs.append((off, on))
    return pairs, beside


def agreement() -> list[Row]:
    """Shares of the five methods async-profiler by hand finds hottest, beside those of the run folder."""
    with _busy_jvm() as jvm:
        ours: Counter[str] = Counter()
        by_hand: Counter[str] = Counter()
        for _ in range(TRUTH_ROUNDS):
            ours.update(_by_hprofiler(jvm))
            by_hand.update(_by_hand(jvm))
    pairs = [
        (method, _share(ours, method), _share(by_hand, method)) for method, _ in by_hand.most_common(HOTTEST)
    ]
    worst = max(abs(mine - other) for _, mine, other in pairs)
    listed = ", ".join(f"{method} {mine:.1f}/{other:.1f}" for method, mine, other in pairs)
    measured = f"{worst:.1f} points at most ({listed} %)"
    return [Row("five hottest methods beside async-profiler by hand", measured, "3 points", worst <= 3)]


@contextmanager
def _busy_jvm(flags: Sequence[str] = ()) -> Iterator[Burner]:
    burner = Burner("mixed", options=flags)
    try:
        yield burner
    finally:
        burner.kill()


def _rate(jvm: Burner) -> Rate:
    before, used, begin = jvm.counters(), _nanos_of(jvm.outer.pid), time.monotonic()
    time.sleep(WINDOW)
    burnt, seconds = jvm.counters() - before, time.monotonic() - begin
    return Rate(burnt.rounds / seconds, burnt.rounds / (_nanos_of(jvm.outer.pid) - used) * 1e9)


def _nanos_of(pid: int) -> int:
    """CPU time of all threads, those that collect garbage or belong to a profiler included."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads)


def _profiled_rate(jvm: Burner, own: list[float], options: Sequence[str] = ()) -> Rate:
    """The same while hprofiler records, from the moment it says so; its own CPU share is added to `own`."""
    with _recording(jvm, WINDOW + 1, options) as (run, pid):
        procs.wait_for("the recording to begin", lambda: b": recording" in (run / "said").read_bytes(), 30)
        before, begin = _cpu_of(pid), time.monotonic()
        rate = _rate(jvm)
        own.append((_cpu_of(pid) - before) / (time.monotonic() - begin))
        return rate


def _cpu_of(pid: int) -> float:
    return sum(map(procs.cpu_seconds, procs.family(pid)))


@contextmanager
def _recording(jvm: Burner, seconds: float, extra: Sequence[str] = ()) -> Iterator[tuple[Path, int]]:
    """A run on this machine under way, waited for at the end of the block. Yields its folder and pid."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = [
            "-f",
            str(FREQUENCY),
            "-t",
            str(seconds),
            "-j",
            f"pid:{jvm.pid}",
            "-o",
            str(folder / "run"),
            *extra,
        ]
        with (folder / "said").open("wb") as said:
            process = start([*COMMAND, *options], folder, said)
        yield folder, process.pid
        if process.wait(60):
            raise BenchError(f"the run failed: {(folder / 'said').read_text()[-2000:]}")


def _by_hprofiler(jvm: Burner) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        measure([*COMMAND, *f"-f {FREQUENCY} -t {TRUTH_SECONDS} -j pid:{jvm.pid} -o {folder}".split()])
        return _self_counts((folder / "cluster/cpu.folded").read_text())


def _by_hand(jvm: Burner) -> dict[str, int]:
    """Through the library hprofiler left mapped: a second copy would be a second profiler in the JVM."""
    (library,) = attach.profiler_libraries(jvm.outer.pid)
    attach.execute(jvm.outer.pid, "load", library, "true", f"start,event=cpu,interval={10**9 // FREQUENCY}")
    time.sleep(TRUTH_SECONDS)
    with tempfile.NamedTemporaryFile(suffix=".folded") as folded:
        attach.execute(jvm.outer.pid, "load", library, "true", f"stop,file={folded.name},collapsed")
        return _self_counts(Path(folded.name).read_text())


def _self_counts(folded: str) -> dict[str, int]:
    """Samples by leaf method; names as `java.util.HashMap.put`, without tier."""
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = re.sub(r"_\[[0-9a-z]\]$", "", stack.rpartition(";")[2])
        counts[leaf.replace("/", ".")] += int(count)
    return counts


def _share(counts: Counter[str], method: str) -> float:
    return 100 * counts[method] / max(1, sum(counts.values()))
