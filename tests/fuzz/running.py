"""Runs a fuzz target for a given CPU time, so that other work on the machine does not shorten it."""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_RUNS = re.compile(r"^(?:stat::number_of_executed_units|runs): *(\d+)", re.MULTILINE)
_ENOUGH = 0.98
"""The fraction of the CPU time that is enough: the last seconds are not worth another start."""


@dataclass(frozen=True)
class Target:
    """A fuzz target. `command` gets the seconds that are left; `corpus` holds its inputs in git."""

    name: str
    corpus: Path
    command: Callable[[int], list[str]]
    environment: Mapping[str, str]
    folder: Path


@dataclass(frozen=True)
class Result:
    """`failed` has the end of the log if something was found."""

    target: str
    seconds: float
    runs: int
    failed: str = ""


def fuzz(target: Target, seconds: float, logs: Path) -> Result:
    """Run it for `seconds` of CPU time, or until something is found."""
    used, runs, log = 0.0, 0, logs / f"{target.name}.log"
    while used < seconds * _ENOUGH:
        with log.open("wb") as file:
            process = subprocess.Popen(
                target.command(math.ceil(seconds - used)),
                cwd=target.folder,
                env={**os.environ, **target.environment},
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.nice(10) and None,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        used += usage.ru_utime + usage.ru_stime
        text = log.read_text(errors="replace")
        runs += sum(map(int, _RUNS.findall(text)))
        if status:
            return Result(target.name, used, runs, _words(text) or f"it ended with status {status}")
    return Result(target.name, used, runs)


def _words(log: str) -> str:
    """The useful lines of a log: panics, exceptions and libFuzzer's verdict."""
    telling = ("panicked", "Error", "ERROR", "assertion", "Test unit written", "deadly")
    lines = [line for line in log.splitlines() if any(word in line for word in telling)]
    return "\n".join(lines[-8:])
