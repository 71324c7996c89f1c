"""Runs the `hprofiler` command for the bench and measures it: wall time, peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.lab import cache

COMMAND = [sys.executable, "-m", "hprofiler"]
Wrap = Callable[[Sequence[str]], list[str]]


class BenchError(Exception):
    """A command that should have been measured failed."""


@dataclass(frozen=True)
class Measured:
    """One run of a command: seconds of wall time, peak memory of its largest process, seconds of CPU time."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float


def measure(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run to the end in an empty folder; BenchError with its last words unless it exits with 0."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        begin = time.monotonic()
        process = start(argv, Path(folder), said, environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise BenchError(f"{' '.join(argv)}: exit code {process.returncode}\n{_tail(said)}")
    return Measured(seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def start(
    argv: Sequence[str], folder: Path, said: IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a command in a folder, with this checkout's code; what it says goes to a file."""
    own = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), **(environment or {})}
    return subprocess.Popen(argv, cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=said, stderr=said)


def seconds_until_recording(argv: Sequence[str], environment: Mapping[str, str], places: int) -> float:
    """From the start of a run until so many hosts or pods record; a run that has nothing to show is fine."""
    own = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), **environment}
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=folder, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines, seconds = [], 0.0
        for line in process.stderr or ():
            lines.append(line)
            if ": recording" in line:
                seconds = time.monotonic() - begin
        process.wait()
    if sum(": recording" in line for line in lines) < places:
        raise BenchError(f"{' '.join(argv)}: exit code {process.returncode}\n{''.join(lines)[-2000:]}")
    return seconds


def _tail(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read()[-2000:].decode("utf-8", "replace")
