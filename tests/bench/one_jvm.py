"""What profiling costs one busy JVM and its host."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hprofiler import Profile
from tests.bench.commands import COMMAND, Run, running
from tests.bench.cost import estimate, percent_lost, verdict
from tests.bench.table import Row, under
from tests.burners import build
from tests.burners.burner import Burner, Program
from tests.burners.counting import Truth
from tests.lab import procs

ENGINES = ("async-profiler", "perf")
FREQUENCY = 300
FRAME_POINTER = "-XX:+PreserveFramePointer"
THREADS = 8
RAISED = FREQUENCY * THREADS // min(THREADS, os.cpu_count() or 1)
"""As many samples as 8 threads on 8 CPUs have, whatever this machine has."""
WINDOW = 2.0
PAIRS = 32
"""Even: as many begin with the profiler as without."""
FOLLOWER = "hprofiler threa"
"""The thread that looks at the names of others, as the kernel cuts its name."""
NAMES_PERCENT = 0.5
NAMED_THREADS, IDLE_THREADS = 2, 38
TASK_MILLISECONDS = 200
LIBRARIES, SYMBOLS = 80, 5000
ATTACHES = 5
SAFEPOINT = 150
"""Milliseconds."""
REACHING = re.compile(r"Reaching safepoint: +(\d+) ns")
METRICS_JVMS = 8
METRICS_SECONDS = 60
_STAGES = r"""
name: MARK
summary: a JVM with tasks of two stages
any: [{main_class: [Stages], arguments: 'MARK$'}]
slices: [{prefix: Executor task launch worker, regex: ' in stage (\d+\.\d+) \(TID \d+\)$', name: 'stage {}'}]
"""


@contextmanager
def recording(
    what: Program | str, seconds: float, options: Sequence[str] = (), frequency: int = FREQUENCY
) -> Iterator[tuple[Run, Path]]:
    """A run on this machine, of a program or by a selector, that records already, and its folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        chosen = what if isinstance(what, str) else f"pid:{what.outer.pid}"
        words = f"-f {frequency} -t {seconds} -j {chosen} -o {folder}".split()
        with running([*COMMAND, *words, *options]) as run:
            run.wait_until_recording()
            yield run, folder


@contextmanager
def ended(jvm: Program) -> Iterator[Program]:
    """It ends with the block."""
    try:
        yield jvm
    finally:
        jvm.kill()


# What a busy JVM loses


@dataclass(frozen=True)
class Rate:
    """What a JVM got done in a window: rounds a second of wall time, rounds a second of its CPU time."""

    by_wall: float
    by_cpu: float


Pairs = list[tuple[Rate, Rate]]


def overhead() -> Iterator[Row]:
    """Rounds with the profiler on and off in many short pairs, each in the opposite order."""
    what = f"at {FREQUENCY} Hz"
    yield _lost(f"throughput lost to cpu {what}", 2)
    yield _lost(f"throughput lost to cpu, alloc and lock {what}", 4, ["-e", "cpu,alloc,lock"])
    yield _lost(f"throughput lost to perf {what}", 2, ["--engine", "perf"], [FRAME_POINTER])


def _lost(what: str, promised: float, options: Sequence[str] = (), flags: Sequence[str] = ()) -> Row:
    """`options` are hprofiler's, `flags` the JVM's, `promised` is in percent.

    Others on the machine move the wall-clock figure by far more than 2 %. So the verdict is on what is ours
    for sure: work done for each second of CPU time the JVM got, and the CPU time that hprofiler took. Two
    windows without the profiler follow each other between pairs: what they seem to lose shows how far the
    comparison can be trusted.
    """
    own: list[float] = []
    with ended(Burner("mixed", options=flags)) as jvm:
        _profiled_rate(jvm, own, options)
        own.clear()
        compared = pairs_of(lambda: _rate(jvm), lambda: _profiled_rate(jvm, own, options))
    lost_wall = percent_lost([(off.by_wall, on.by_wall) for off, on in compared[0]])
    taken = 100 * statistics.fmean(own)
    more = f" and {taken:.1f} % of a CPU for hprofiler itself; by wall clock {lost_wall}"
    return lost_row(what, compared, more, promised, taken)


def lost_row(
    what: str, compared: tuple[Pairs, Pairs], more: str, promised: float | None, taken: float = 0.0
) -> Row:
    """What is lost of the work for a CPU second, and `taken` from it by the profiler itself, in percent."""
    pairs, beside = compared
    lost = percent_lost([(off.by_cpu, on.by_cpu) for off, on in pairs])
    noise = percent_lost([(before.by_cpu, after.by_cpu) for before, after in beside])
    measured = f"{lost} of a CPU second's rounds (off beside off: {noise}){more}; {len(pairs)} pairs"
    if promised is None:
        return Row(what, measured, "", None)
    holds = verdict(lost.high + taken, noise.farthest, promised)
    words = measured if holds is not None else f"too noisy to tell: {measured}"
    return Row(what, words, f"under {promised:g} %", holds)


def pairs_of(without: Callable[[], Rate], with_it: Callable[[], Rate]) -> tuple[Pairs, Pairs]:
    """Pairs of off and on: off, on, on, off, …; and those of off and off where one pair follows another."""
    pairs: Pairs = []
    beside: Pairs = []
    for turn in range(PAIRS):
        if turn % 2:
            on = with_it()
            off = without()
        else:
            off = without()
            if pairs:
                beside.append((pairs[-1][0], off))
            on = with_it()
        pairs.append((off, on))
    return pairs, beside


def _rate(jvm: Burner) -> Rate:
    return rate_of(jvm.outer.pid, lambda: jvm.counters().rounds)


def rate_of(pid: int, counted: Callable[[], int]) -> Rate:
    before, used, begin = counted(), _nanos_of(pid), time.monotonic()
    time.sleep(WINDOW)
    rounds, seconds = counted() - before, time.monotonic() - begin
    return Rate(rounds / seconds, rounds / (_nanos_of(pid) - used) * 1e9)


def _nanos_of(pid: int, name: str = "") -> int:
    """CPU time of all threads, those that collect garbage or belong to a profiler included; of those whose
    name begins so."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(
        int(thread.read_text().split()[0])
        for thread in threads
        if not name or thread.with_name("comm").read_text().startswith(name)
    )


def _profiled_rate(jvm: Burner, own: list[float], options: Sequence[str]) -> Rate:
    """The same while hprofiler records; its own CPU share is added to `own`."""
    with recording(jvm, WINDOW + 1, options) as (run, _):
        before, begin = run.cpu(), time.monotonic()
        rate = _rate(jvm)
        own.append((run.cpu() - before) / (time.monotonic() - begin))
        run.result()
        return rate


# What it costs to follow the names of threads


def thread_names() -> list[Row]:
    """Recordings of a JVM whose threads take the names of tasks, in turns with names followed and without."""
    mark = f"bench-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder, ended(_stages(mark)) as jvm:
        Path(folder, "stages.yaml").write_text(_STAGES.replace("MARK", mark))
        own: list[float] = []
        where = ["--selectors", folder]

        def rate(*options: str) -> Rate:
            with recording(mark, WINDOW + 1, [*where, *options]) as (run, _):
                used, names = _nanos_of(jvm.outer.pid), _nanos_of(jvm.outer.pid, FOLLOWER)
                found = rate_of(jvm.outer.pid, lambda: int(jvm.ask("tasks=").rpartition("=")[2]))
                followed = _nanos_of(jvm.outer.pid, FOLLOWER) - names
                if "--thread-names" in options:
                    own.append(100 * followed / (_nanos_of(jvm.outer.pid) - used))
                run.result()
                return found

        rate("--thread-names")
        own.clear()
        compared = pairs_of(lambda: rate("--slices", "none"), lambda: rate("--thread-names"))
    span = f"{min(own):.2f} to {max(own):.2f}"
    more = f", of which {estimate(own).mean:.2f} % ({span}) is the thread that looks"
    what = f"throughput lost to --thread-names, {NAMED_THREADS} threads with tasks of {TASK_MILLISECONDS} ms"
    return [lost_row(what, compared, more, NAMES_PERCENT)]


def _stages(mark: str) -> Program:
    words = [str(NAMED_THREADS), str(IDLE_THREADS), str(TASK_MILLISECONDS), mark]
    return Program(["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", str(build.classes()), "Stages", *words])


# What it costs to read metrics


@contextmanager
def _metered_jvms() -> Iterator[str]:
    """Eight JVMs that do little, as a selector."""
    with ExitStack() as jvms:
        burners = [jvms.enter_context(ended(Burner("alloc", load=0.02))) for _ in range(METRICS_JVMS)]
        yield f"pid:{','.join(str(one.outer.pid) for one in burners)}"


def _reading(jvms: str, *options: str) -> tuple[float, float]:
    """Percent of a core that the agent's thread takes that reads metrics, and their kilobytes a minute."""
    with recording(jvms, METRICS_SECONDS, options) as (run, folder):
        time.sleep(METRICS_SECONDS / 4)
        before, begin = _metrics_nanos(), time.monotonic()
        time.sleep(METRICS_SECONDS / 2)
        share = 100 * (_metrics_nanos() - before) / 1e9 / (time.monotonic() - begin)
        run.result()
        (stored,) = folder.glob("hosts/*/metrics.json.gz")
        return share, len(gzip.decompress(stored.read_bytes())) * 60 / METRICS_SECONDS / 1000


def metrics() -> list[Row]:
    """CPU time of the agent's thread that reads metrics, and their size on the wire."""
    with _metered_jvms() as jvms:
        share, size = _reading(jvms)
    what = f"metrics of a host with {METRICS_JVMS} JVMs"
    return [
        Row(f"CPU time to read {what}", f"{share:.2f} % of one core", "under 0.2 %", share < 0.2),
        Row(f"{what} on the wire", f"{size:.0f} kB a minute", "under 100 kB", size < 100),
    ]


def counters() -> list[Row]:
    """What this machine counts, beside `perf stat`; CPU time of the agent's thread that reads it."""
    with _metered_jvms() as jvms:
        command = [*COMMAND, "doctor", "--counters", "--json", "-j", jvms]
        checked = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
        of_host = checked["hosts"][0]["findings"]
        rows = [
            Row(f"counters of this machine ({one['severity']})", one["text"], "", None)
            for one in of_host
            if one["about"] == "counters"
        ]
        share, _ = _reading(jvms, "--counters", "ipc,cache")
    what = f"CPU time to read metrics and counters of a host with {METRICS_JVMS} JVMs"
    return [*rows, Row(what, f"{share:.2f} % of one core", "", None)]


def _metrics_nanos() -> int:
    """CPU time of the threads of agents that read metrics."""
    found = 0
    for name in Path("/proc").glob("[0-9]*/task/*/comm"):
        with suppress(OSError):  # it has ended
            if name.read_text() == "metrics\n":
                found += int(name.with_name("schedstat").read_text().split()[0])
    return found


# What the agent takes, and how long a profile takes


class Peaks:
    """The peak memory, in bytes, of the agent and the perf of a run, while it is watched."""

    def __init__(self, run: Run) -> None:
        self.of: Counter[str] = Counter()
        self._run = run
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for pid in procs.family(self._run.process.pid)[1:]:
                with suppress(OSError, KeyError):  # it has ended
                    program = Path(f"/proc/{pid}/exe").readlink().name
                    kind = "agent" if "agent" in program else program.partition("_")[0]
                    self.of[kind] = max(self.of[kind], 1024 * int(procs.status(pid)["VmHWM"][0]))


@contextmanager
def _busy(
    engine: str, frequency: int, seconds: int, options: Sequence[str] = ()
) -> Iterator[tuple[Run, Path, Peaks]]:
    """A recording of a JVM with busy threads."""
    with (
        ended(Truth(f"busy={THREADS}", options=[FRAME_POINTER])) as jvm,
        recording(jvm, seconds, ["--engine", engine, *options], frequency) as (run, folder),
    ):
        peaks = Peaks(run)
        try:
            yield run, folder, peaks
        finally:
            peaks.end()


def agent_cost() -> Iterator[Row]:
    """The agent, and the perf it runs, while busy threads are sampled."""
    for engine in ENGINES:
        yield from _agent_cost(engine, 20)


def _agent_cost(engine: str, seconds: int) -> list[Row]:
    with _busy(engine, FREQUENCY, seconds) as (run, _, peaks):
        before, begin = run.cpu(1), time.monotonic()
        time.sleep(seconds - 2)  # what is measured is sampling, not its begin and end
        percent = 100 * (run.cpu(1) - before) / (time.monotonic() - begin)
        run.result()
    memory = ", ".join(
        f"{name} {peaks.of[name] / 1e6:.0f} MB" for name in ("agent", "perf") if peaks.of[name]
    )
    what = f"{THREADS} threads at {FREQUENCY} Hz by {engine}"
    small = peaks.of["agent"] < 100e6
    return [
        Row(f"agent's memory, {what}", f"{memory} at most", "agent under 100 MB", small),
        Row(f"agent's CPU time, {what}", f"{percent:.2f} % of a core", "under 3 %", percent < 3),
    ]


def timeline() -> Iterator[Row]:
    """What it costs to know when samples were taken and when garbage was collected."""
    return (_timeline(engine, 30) for engine in ENGINES)


def _timeline(engine: str, seconds: int) -> Row:
    percent: list[float] = []
    sent: list[int] = []
    taken: list[int] = []
    for options in (["--no-timeline"], []):
        with _busy(engine, RAISED, seconds, options) as (run, folder, _):
            agent = procs.family(run.process.pid)[1]
            before, begin = _nanos_of(agent), time.monotonic()
            time.sleep(seconds - 2)
            percent.append((_nanos_of(agent) - before) / (time.monotonic() - begin) / 1e7)
            run.result()
            (host,) = json.loads((folder / "run.json").read_text())["hosts"]
            (recorded,) = host["recordings"]
        sent.append(recorded["bytes_received"])
        taken.append(recorded["samples"]["taken"])
    more, each = percent[1] - percent[0], (sent[1] - sent[0]) / taken[1]
    measured = f"{each:.2f} bytes a sample, {more:.2f} % of a core ({percent[0]:.2f} to {percent[1]:.2f} %)"
    what = f"times of samples and GC pauses, {THREADS} threads at {FREQUENCY} Hz by {engine}"
    # The wire's promise is for as many samples as eight processors have: core-wire.
    return Row(what, measured, "1 % of a core", more <= 1)


def latency() -> Iterator[Row]:
    """From the end of sampling until the profile is in the run folder."""
    return (_latency(engine, 60) for engine in ENGINES)


def _latency(engine: str, lasts: int) -> Row:
    with _busy(engine, RAISED, lasts) as (run, folder, peaks):
        time.sleep(lasts)
        end = time.monotonic()
        path = procs.wait_for("the profile", lambda: next(folder.glob("hosts/*/*/cpu.pb.gz"), None))
        seconds = time.monotonic() - end
        run.result()
        profile = Profile.open(path)
    more = (
        f"for {profile.total('samples'):,} samples of {len(profile.paths()):,} stacks, "
        f"agent's peak {peaks.of['agent'] / 1e6:.0f} MB"
    )
    what = f"end of sampling to profile, {lasts} s × {FREQUENCY} Hz × {THREADS} threads by {engine}"
    return under(1, what, seconds, more)


def unknown_frames() -> list[Row]:
    """perf's frames without a name in a JVM that keeps frame pointers; each as often as it was seen.

    That is `[unknown]` and what has no more than its file's name, `[libz.so.1]`.
    """
    with _busy("perf", FREQUENCY, 15) as (run, folder, _):
        run.result()
        profile = Profile.open(next(folder.glob("hosts/*/*/cpu.pb.gz")))
    seen: Counter[bool] = Counter()
    for stack in profile.paths(annotate=False):
        for frame in stack.frames:
            seen[frame.startswith("[")] += stack.values[0]
    percent = 100 * seen[True] / max(1, seen.total())
    measured = f"{percent:.2f} % of {seen.total():,} frames"
    return [Row(f"unknown frames of perf with {FRAME_POINTER}", measured, "under 2 %", percent < 2)]


# How long an attach stops a JVM


def attach() -> Iterator[Row]:
    """The longest time to a safepoint while the profiler is started, without and with many libraries."""
    return (_attach(libraries) for libraries in (0, LIBRARIES))


def _attach(libraries: int) -> Row:
    longest = [_to_safepoint(libraries) for _ in range(ATTACHES)]
    span = f"{min(longest):.0f} to {max(longest):.0f} ms in {ATTACHES} JVMs"
    what = f"time to a safepoint at an attach, {libraries} libraries of {SYMBOLS:,} symbols"
    middle = statistics.median(longest)
    return Row(what, f"{middle:.0f} ms ({span})", f"under {SAFEPOINT} ms", middle < SAFEPOINT)


def _to_safepoint(libraries: int) -> float:
    """Milliseconds, of a JVM that collects garbage all the time."""
    with tempfile.TemporaryDirectory() as name:
        log, java = Path(name, "safepoints"), Path(name, "java")
        preloaded = ":".join(_libraries(libraries, Path(name)))
        java.write_text(f'#!/bin/sh\nLD_PRELOAD={preloaded} exec java "$@"\n')
        java.chmod(0o755)
        options = [f"-Xlog:safepoint:file={log}:none"]
        with ended(Burner("alloc", java=str(java), options=options)) as jvm, recording(jvm, 1) as (run, _):
            run.result()
        return max(map(int, REACHING.findall(log.read_text()))) / 1e6


def _libraries(count: int, folder: Path) -> list[str]:
    """So many different libraries, with symbols to read."""
    paths = [folder / f"lib{number}.so" for number in range(count)]
    if paths:
        source = "".join(f"void symbol_of_a_library_{number}(void) {{}}\n" for number in range(SYMBOLS))
        command = ["cc", "-x", "c", "-shared", "-fPIC", "-o", str(paths[0]), "-"]
        subprocess.run(command, input=source, text=True, check=True)
    for path in paths[1:]:
        shutil.copy(paths[0], path)
    return list(map(str, paths))
