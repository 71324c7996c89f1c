"""Runs the `hprofiler` command for the bench and measures it: wall time, peak memory, CPU time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache, procs

COMMAND = [sys.executable, "-m", "hprofiler"]


class BenchError(Exception):
    """A command that should have been measured failed."""


@dataclass(frozen=True)
class Measured:
    """One run of a command: seconds of wall time, peak memory of its largest process, seconds of CPU time."""

    seconds: float
    peak_bytes: float
    cpu_seconds: float


class Run:
    """A command under way in an empty folder, with this checkout's code."""

    def __init__(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._argv = argv
        self._said = folder / "said"
        own = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), **(environment or {})}
        self.began = time.monotonic()
        with self._said.open("wb") as said:
            null = subprocess.DEVNULL
            self.process = subprocess.Popen(argv, cwd=folder, env=own, stdin=null, stdout=said, stderr=said)

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def wait_until_recording(self, places: int = 1) -> float:
        """Seconds until so many hosts or pods record; a run that has nothing to show is fine."""

        def all_record() -> bool:
            if self.said().count(": recording") >= places:
                return True
            if self.process.poll() is not None:
                raise BenchError(f"{' '.join(self._argv)} ended early\n{self.said()[-2000:]}")
            return False

        procs.wait_for("the recording to begin", all_record)
        return time.monotonic() - self.began

    def cpu(self, first: int = 0) -> float:
        """CPU seconds of the command and what it started; from the `first` of these processes on."""
        return sum(map(procs.cpu_seconds, procs.family(self.process.pid)[first:]))

    def result(self) -> Measured:
        """Run to its end; BenchError with its last words unless it exits with 0."""
        _, status, usage = os.wait4(self.process.pid, 0)
        seconds = time.monotonic() - self.began
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            command = " ".join(self._argv)
            raise BenchError(f"{command}: exit code {self.process.returncode}\n{self.said()[-2000:]}")
        return Measured(seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


@contextmanager
def running(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Run]:
    """A command under way in a folder of its own; it is ended with the block."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(argv, Path(folder), environment)
        try:
            yield run
        finally:
            if run.process.returncode is None:
                run.process.terminate()
                run.process.wait(30)


def measure(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run to the end."""
    with running(argv, environment) as run:
        return run.result()


def median_of(rounds: int, act: Callable[[], float]) -> float:
    return statistics.median(act() for _ in range(rounds))


def in_turns(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Measured]:
    """Runs commands in turns, once to warm up; the median of each figure."""
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            measured = measure(command)
            if turn:
                runs[name].append(measured)

    def median(figure: Callable[[Measured], float], of: list[Measured]) -> float:
        return statistics.median(map(figure, of))

    return {
        name: Measured(
            median(lambda run: run.seconds, of),
            median(lambda run: run.peak_bytes, of),
            median(lambda run: run.cpu_seconds, of),
        )
        for name, of in runs.items()
    }
