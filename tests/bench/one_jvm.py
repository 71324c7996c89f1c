"""What profiling costs one busy JVM, and whether it tells the truth: beside async-profiler by hand."""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from tests.bench.commands import COMMAND, BenchError, start
from tests.bench.table import Row
from tests.burners.burner import Burner
from tests.lab import attach, procs

FREQUENCY = 300
WINDOW = 4.0
PAIRS = 9
TRUTH_SECONDS = 10
TRUTH_ROUNDS = 3
HOTTEST = 5


def throughput() -> List[Row]:
    """Rounds a second with the profiler on and off, in turns; the median of the pairs' ratios."""
    with _busy_jvm() as jvm:
        _profiled_rate(jvm)
        ratios, cpu_ratios = [], []
        for pair in range(PAIRS):
            first, second = (_profiled_rate, _plain_rate) if pair % 2 else (_plain_rate, _profiled_rate)
            rates = {measure: measure(jvm) for measure in (first, second)}
            on, off = rates[_profiled_rate], rates[_plain_rate]
            ratios.append(on[0] / off[0])
            cpu_ratios.append(on[1] / off[1])
    lost, lost_cpu = 100 * (1 - statistics.median(ratios)), 100 * (1 - statistics.median(cpu_ratios))
    measured = (
        f"{lost:.1f} % of rounds a second, {lost_cpu:.1f} % of rounds a CPU second (median of {PAIRS} pairs)"
    )
    return [Row(f"throughput lost at {FREQUENCY} Hz", measured, "under 2 %", lost < 2)]


def agreement() -> List[Row]:
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
def _busy_jvm() -> Iterator[Burner]:
    burner = Burner("mixed")
    try:
        yield burner
    finally:
        burner.kill()


def _plain_rate(jvm: Burner) -> Tuple[float, float]:
    """Rounds a wall second and rounds a CPU second over a window of time."""
    before, begin = jvm.counters(), time.monotonic()
    time.sleep(WINDOW)
    burnt, seconds = jvm.counters() - before, time.monotonic() - begin
    return burnt.rounds / seconds, burnt.rounds / burnt.nanos * 1e9


def _profiled_rate(jvm: Burner) -> Tuple[float, float]:
    """The same while hprofiler records, from the moment the profiler is on."""
    with _recording(jvm, WINDOW + 1):
        procs.wait_for(lambda: attach.profiler_libraries(jvm.outer.pid), 30, "the profiler in the JVM")
        return _plain_rate(jvm)


@contextmanager
def _recording(jvm: Burner, seconds: float) -> Iterator[Path]:
    """A run on this machine under way; at the end of the block it is waited for. Yields its run folder."""
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as said:
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
        ]
        process = start([*COMMAND, *options], folder, said)
        yield folder / "run"
        if process.wait(60):
            said.seek(0)
            raise BenchError(f"the run failed: {said.read()[-2000:].decode()}")


def _by_hprofiler(jvm: Burner) -> Dict[str, int]:
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as said:
        folder = Path(name)
        options = [
            "-f",
            str(FREQUENCY),
            "-t",
            str(TRUTH_SECONDS),
            "-j",
            f"pid:{jvm.pid}",
            "-o",
            str(folder / "run"),
        ]
        if start([*COMMAND, *options], folder, said).wait(TRUTH_SECONDS + 60):
            said.seek(0)
            raise BenchError(f"the run failed: {said.read()[-2000:].decode()}")
        return _self_counts((folder / "run/cluster/cpu.folded").read_text())


def _by_hand(jvm: Burner) -> Dict[str, int]:
    """Through the library hprofiler left mapped: a second copy would be a second profiler in the JVM."""
    (library,) = attach.profiler_libraries(jvm.outer.pid)
    attach.execute(jvm.outer.pid, "load", library, "true", f"start,event=cpu,interval={10**9 // FREQUENCY}")
    time.sleep(TRUTH_SECONDS)
    with tempfile.NamedTemporaryFile(suffix=".folded") as folded:
        attach.execute(jvm.outer.pid, "load", library, "true", f"stop,file={folded.name},collapsed")
        return _self_counts(Path(folded.name).read_text())


def _self_counts(folded: str) -> Dict[str, int]:
    """Samples by leaf method; names as `java.util.HashMap.put`, without tier."""
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = re.sub(r"_\[[0-9a-z]\]$", "", stack.rpartition(";")[2])
        counts[leaf.replace("/", ".")] += int(count)
    return counts


def _share(counts: Counter[str], method: str) -> float:
    return 100 * counts[method] / max(1, sum(counts.values()))
