"""Runs the real command on programs that count what they do, and holds its profiles against their counts."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hprofiler import Profile
from tests.burners.burner import Program
from tests.engines.jfr_times import jfr_times
from tests.engines.trail import Trail, Watch
from tests.lab import cache

COMMAND = [sys.executable, "-m", "hprofiler"]
MARK = f"HPROFILER_ENGINES_TEST={os.getpid()}"
"""Stands in the environment of all that these tests' runs start."""
TICKS = 2 * 1e9 / os.sysconf("SC_CLK_TCK")
"""Nanoseconds: CPU time is told in ticks (JVMs ask for no more), here at the begin and at the end."""
MOST_SLACK = 0.5
"""However far a wall-clock sampler falls behind, what it makes up for is the truth within a half."""
HEARD = 0.3
"""Seconds in which a line of the command's is heard."""
FREQUENCY = 997
"""Hz; no multiple of any rhythm of the programs."""


class Stacks:
    """The stacks of one profile and one of its values; frames outermost first, with their annotations."""

    def __init__(self, profile: Profile, value: str) -> None:
        index = [name for name, _ in profile.values].index(value)
        self.stacks = [(stack.frames, stack.values[index]) for stack in profile.paths()]

    @property
    def total(self) -> int:
        return sum(value for _, value in self.stacks)

    def value(self, holds: Callable[[Sequence[str]], bool]) -> int:
        """The sum of the stacks for which this holds."""
        return sum(value for frames, value in self.stacks if holds(frames))

    def of(self, *words: str) -> int:
        """The sum of the stacks in which every word is part of some frame."""
        return self.value(lambda frames: all(any(word in frame for frame in frames) for word in words))

    def of_leaf(self, kind: str, *words: str) -> int:
        """The same, of the stacks whose last frame is of a kind: "k" kernel, "" native and plain, …"""
        return self.value(
            lambda frames: (
                kind_of(frames[-1]) == kind and all(any(word in frame for frame in frames) for word in words)
            )
        )


def kind_of(frame: str) -> str:
    """What a frame's annotation says: j, i, 0, 1, k; "" for none."""
    found = re.search(r"_\[([0-9a-z])\]$", frame)
    return found[1] if found else ""


class Run:
    """What one run of the command left, and what the programs counted meanwhile."""

    def __init__(self, folder: Path, code: int, said: str, began: float, trails: dict[int, Trail]) -> None:
        self.folder = folder
        self.code = code
        self.said = said
        self.began = began
        self._trails = trails

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.said}"

    @property
    def record(self) -> dict[str, Any]:
        """run.json."""
        content: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return content

    @property
    def host(self) -> dict[str, Any]:
        """The one host's part of it."""
        (host,) = self.record["hosts"]
        return dict(host)

    def recordings(self, program: Program) -> dict[str, dict[str, Any]]:
        """The process's recordings by event."""
        mine = [one for one in self.host["recordings"] if one["process"]["pid"] == program.outer.pid]
        return {one["event"]: one for one in mine}

    def recording(self, program: Program, event: str = "cpu") -> dict[str, Any]:
        found = self.recordings(program).get(event)
        assert found, f"no recording of {event}: {self.outcome(program)}\n{self}"
        return found

    def outcome(self, program: Program) -> dict[str, Any]:
        """The process's last line of the ledger."""
        lines = [one for one in self.host["outcomes"] if one["pid"] == program.outer.pid]
        assert lines, f"nothing is said of {program.outer.pid}\n{self}"
        return dict(lines[-1])

    def told(self, program: Program) -> str:
        """All that the ledger says of the process."""
        lines = [one for one in self.host["outcomes"] if one["pid"] == program.outer.pid]
        return "; ".join(f"{one['reason']} ({one['remedy']})" for one in lines)

    def grown(self, program: Program, event: str = "cpu") -> dict[str, float]:
        """What the program's own counters grew by while it was recorded."""
        raw = self._raw(program)
        kept = jfr_times(raw, event) if raw else None
        begin, end = kept or (self.began, self.began + self._seconds(program, event))
        return self._trails[program.outer.pid].grown(begin, end)

    def cpu_seconds_agree(self, program: Program) -> bool:
        """That the profile's nanoseconds and the agent's seconds are within 5 % of the program's own count.

        They are of the agent's own clock, of which it is known how long it went, and within narrow bounds
        when it began: at one of these moments both must be right. AssertionError has the numbers.
        """
        told = (self.stacks(program, "cpu", "cpu").total, 1e9 * self.recording(program)["cpu_seconds"])
        return self.agree(program, "cpu", "process.ns", 0.05, *told, slack=TICKS)

    def agree(
        self, program: Program, event: str, counter: str, within: float, *told: float, slack: float = 0
    ) -> bool:
        """That what is told is so near to what a counter grew by while the agent's clock went.

        `slack` is for what the counter itself is inexact by.
        """
        seconds, trail = self._seconds(program, event), self._trails[program.outer.pid]
        first, last = self._clock_began(program, seconds)
        begins = [first + (last - first) * part / 20 for part in range(21)]
        truths = [trail.grown(begin, begin + seconds)[counter] for begin in begins]
        agrees = any(all(abs(one - truth) <= within * truth + slack for one in told) for truth in truths)
        assert agrees, f"{told} beside {min(truths):.0f} to {max(truths):.0f} ({last - first:.2f} s apart)"
        return agrees

    def counted(self, program: Program, event: str, counter: str) -> tuple[int, int]:
        """The least and the most that a counter which grows in bursts can have grown by meanwhile."""
        raw, trail = self._raw(program), self._trails[program.outer.pid]
        if raw:
            return trail.bounds(counter, *jfr_times(raw, event))
        seconds = self._seconds(program, event)
        first, last = self._clock_began(program, seconds)
        least, _ = trail.bounds(counter, last, first + seconds)
        _, most = trail.bounds(counter, first, last + seconds + HEARD)
        return least, most

    def wall_slack(self, program: Program, event: str = "wall", asked: int = 10) -> float:
        """By what part wall-clock time may be off: a tenth, and more where the sampler fell behind.

        The interval tells, which should have been `asked` milliseconds. What was missed is made up for by
        what was missed of the thread that was seen most, and not every thread was missed alike.
        """
        behind = float(self.recording(program, event)["interval"] / (asked * 1e6) - 1)
        return min(0.10 + behind, MOST_SLACK)

    def _clock_began(self, program: Program, seconds: float) -> tuple[float, float]:
        """The earliest and the latest moment at which the agent's clock began.

        It goes only while the engine records. Where the engine does not say when that was: after the command
        had asked for the start, and before it said that all processes are recorded.
        """
        raw = self._raw(program)
        if raw:
            begin, end = jfr_times(raw)
            return begin, max(begin, end - seconds)
        return self.began - self.host["timings"]["start"] - HEARD, self.began

    def _seconds(self, program: Program, event: str) -> float:
        return float(self.recording(program, event)["seconds"])

    def _raw(self, program: Program) -> bytes | None:
        """async-profiler's own recording, where that was kept."""
        path = next(self.folder.glob(f"hosts/*/{program.outer.pid}/recording.jfr"), None)
        return path.read_bytes() if path else None

    def path(self, program: Program, name: str) -> Path:
        (path,) = self.folder.glob(f"hosts/*/{program.outer.pid}/{name}")
        return path

    def profile(self, program: Program, event: str = "cpu", threads: bool = True) -> Profile:
        """The process's profile; with `threads` the outermost frame of each stack is its thread group."""
        # the file of an event whose name is not a file's has another one, and a hash
        path = self.path(program, re.sub(r"[^\w.-]", "_", event) + ("*" if ":" in event else "") + ".pb.gz")
        return Profile.open(path, threads="groups") if threads else Profile.open(path)

    def stacks(self, program: Program, event: str, value: str) -> Stacks:
        return Stacks(self.profile(program, event), value)


class Runner:
    """Runs `hprofiler` on programs of this machine; each run has a folder of its own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0

    def __call__(
        self,
        programs: Sequence[Program],
        *options: str,
        seconds: float = 4,
        meanwhile: Callable[[], None] | None = None,
    ) -> Run:
        """Record the programs; `meanwhile` is called as soon as sampling has begun."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        pids = ",".join(str(program.outer.pid) for program in programs)
        words = ["-j", f"pid:{pids}", "-f", str(FREQUENCY), "-t", str(seconds), "-o", str(folder), *options]
        watch = Watch(programs)
        with watch:
            code, said, began = _command(words, meanwhile)
        return Run(folder, code, said, began, watch.trails)


def _command(words: Sequence[str], meanwhile: Callable[[], None] | None) -> tuple[int, str, float]:
    """Exit code, what was said on both channels, and when sampling had begun (0 when it never did)."""
    process = subprocess.Popen(
        [*COMMAND, *words],
        env={**os.environ, "PYTHONPATH": str(cache.CHECKOUT), **dict([MARK.split("=")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, began = [], 0.0
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            said.append(line)
            if not began and re.search(r": recording\b", line):
                began = time.monotonic()
                if meanwhile:
                    meanwhile()
    return process.wait(60), "".join(said), began


def near(value: float, truth: float, within: float) -> bool:
    """Whether a value is the truth within a part of it."""
    return abs(value - truth) <= within * truth


def points(samples: float, share: float, slack: float = 0.02) -> float:
    """By how much a share of so many samples may be off: what is not chance, and what chance does."""
    return slack + SIGMAS * (share * (1 - share) / max(1.0, samples)) ** 0.5


SIGMAS = 4.5
"""Standard deviations that chance is given: one test in 150,000 is further off."""


def scatter(amount: float, size: int, interval: int) -> float:
    """The standard deviation, as a part, of an estimate of so many bytes from samples `interval` bytes apart.

    They were allocated as objects of `size` bytes, each of which is sampled or not.
    """
    chance = -math.expm1(-size / interval)
    return float(((1 - chance) / chance * size / max(1.0, amount)) ** 0.5)
