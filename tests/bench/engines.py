"""What the engines cost: the JVM, the agent, the time until a profile is there; and what they cannot name."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hprofiler import Profile
from tests.bench import one_jvm
from tests.bench.commands import COMMAND, BenchError, start
from tests.bench.table import Row
from tests.burners.counting import Truth
from tests.lab import procs

ENGINES = ("async-profiler", "perf")
FRAME_POINTER = "-XX:+PreserveFramePointer"
THREADS = 8
FREQUENCY = 300
COST_SECONDS = 20
LATENCY_SECONDS = 60
UNKNOWN_SECONDS = 15


def overhead() -> list[Row]:
    """What a busy JVM loses, method as for the main job."""
    lost, hertz = one_jvm.throughput_lost, f"at {FREQUENCY} Hz"
    return [
        lost(f"throughput lost to cpu {hertz}", 2),
        lost(f"throughput lost to cpu, alloc and lock {hertz}", 4, ["-e", "cpu,alloc,lock"]),
        lost(f"throughput lost to perf {hertz}", 2, ["--engine", "perf"], [FRAME_POINTER]),
    ]


def agent_cost() -> list[Row]:
    """The agent, and the perf it runs, while 8 busy threads are sampled."""
    return [row for engine in ENGINES for row in _agent_cost(engine)]


def _agent_cost(engine: str) -> list[Row]:
    with _busy() as jvm, _run(jvm, engine, FREQUENCY, COST_SECONDS) as run:
        before, begin = run.agent_cpu(), time.monotonic()
        time.sleep(COST_SECONDS - 2)  # what is measured is sampling, not its begin and end
        percent = 100 * (run.agent_cpu() - before) / (time.monotonic() - begin)
        run.wait()
        peaks = ", ".join(f"{name} {peak / 1e6:.0f} MB" for name, peak in sorted(run.peaks.items()))
    what = f"{THREADS} threads at {FREQUENCY} Hz by {engine}"
    return [
        Row(f"agent's memory, {what}", f"{peaks} at most", "agent under 100 MB", run.peaks["agent"] < 100e6),
        Row(f"agent's CPU time, {what}", f"{percent:.2f} % of a core", "under 3 %", percent < 3),
    ]


def latency() -> list[Row]:
    """From the end of sampling until the profile is in the run folder."""
    return [_latency(engine) for engine in ENGINES]


def _latency(engine: str) -> Row:
    """As many samples as 8 threads on 8 CPUs have, whatever this machine has."""
    raised = FREQUENCY * THREADS // min(THREADS, os.cpu_count() or 1)
    with _busy() as jvm, _run(jvm, engine, raised, LATENCY_SECONDS) as run:
        end = run.began + LATENCY_SECONDS
        time.sleep(max(0.0, end - time.monotonic()))
        path = procs.wait_for("the profile", lambda: next(run.folder.glob("hosts/*/*/cpu.pb.gz"), None), 60)
        seconds = time.monotonic() - end
        run.wait()
        profile = Profile.open(path)
    measured = (
        f"{seconds:.2f} s for {profile.total('samples'):,} samples of {len(profile.paths()):,} stacks, "
        f"agent's peak {run.peaks['agent'] / 1e6:.0f} MB"
    )
    what = f"end of sampling to profile, {LATENCY_SECONDS} s × {FREQUENCY} Hz × {THREADS} threads by {engine}"
    return Row(what, measured, "under 1 s", seconds < 1)


def unknown_frames() -> list[Row]:
    """perf's frames without a name in a JVM that keeps frame pointers; each as often as it was seen.

    That is `[unknown]` and what has no more than its file's name, `[libz.so.1]`.
    """
    with _busy() as jvm, _run(jvm, "perf", FREQUENCY, UNKNOWN_SECONDS) as run:
        run.wait()
        profile = Profile.open(next(run.folder.glob("hosts/*/*/cpu.pb.gz")))
    seen: dict[bool, int] = {False: 0, True: 0}
    for stack in profile.paths(annotate=False):
        for frame in stack.frames:
            seen[frame.startswith("[")] += stack.values[0]
    percent = 100 * seen[True] / max(1, sum(seen.values()))
    measured = f"{percent:.2f} % of {sum(seen.values()):,} frames"
    return [Row(f"unknown frames of perf with {FRAME_POINTER}", measured, "under 2 %", percent < 2)]


@contextmanager
def _busy() -> Iterator[Truth]:
    jvm = Truth(f"busy={THREADS}", options=[FRAME_POINTER])
    try:
        yield jvm
    finally:
        jvm.kill()


class _Run:
    """A run under way; the peak memory of what it runs on the host is watched until it ends."""

    def __init__(self, folder: Path, words: Sequence[str], said: Path) -> None:
        self.folder = folder
        self.peaks: dict[str, int] = {}
        self._said = said
        with said.open("wb") as output:
            self._process = start([*COMMAND, *words], folder.parent, output)
        self._watch = threading.Thread(target=self._watch_peaks, daemon=True)
        self._watch.start()
        procs.wait_for("the recording to begin", lambda: b": recording" in said.read_bytes(), 30)
        self.began = time.monotonic()

    def agent_cpu(self) -> float:
        """CPU seconds of the agent and of what it started."""
        return sum(map(procs.cpu_seconds, self._on_the_host()))

    def wait(self) -> None:
        if self._process.wait(120):
            raise BenchError(f"the run failed: {self._said.read_text()[-2000:]}")
        self._watch.join()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._watch.join()

    def _on_the_host(self) -> list[int]:
        return procs.family(self._process.pid)[1:]

    def _watch_peaks(self) -> None:
        while self._process.poll() is None:
            for pid in self._on_the_host():
                name, peak = _peak(pid) or ("", 0)
                if name in ("agent", "perf"):
                    self.peaks[name] = max(peak, self.peaks.get(name, 0))
            time.sleep(0.02)


def _peak(pid: int) -> tuple[str, int] | None:
    """The program of a process, by its kind, and its peak memory in bytes; None when it is gone."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
        peak = 1024 * int(procs.status(pid)["VmHWM"][0])
    except (OSError, KeyError):
        return None
    return ("agent" if program.startswith(("agent-", "hprofiler-agent")) else program.partition("_")[0], peak)


@contextmanager
def _run(jvm: Truth, engine: str, frequency: int, seconds: int) -> Iterator[_Run]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        words = f"-j pid:{jvm.outer.pid} -f {frequency} -t {seconds} --engine {engine} -o {folder}".split()
        run = _Run(folder, words, Path(name) / "said")
        try:
            yield run
        finally:
            run.end()
