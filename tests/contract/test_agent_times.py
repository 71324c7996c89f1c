"""When samples were taken, beside a program that does something else every half second and says when."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from hprofiler import Profile
from tests.burners import build
from tests.burners.burner import Program
from tests.contract.agent_driver import Agent, running
from tests.contract.conftest import EACH_ENGINE_ONCE
from tests.contract.test_agent_perf import FRAME_POINTERS
from tests.lab import jdks
from tests.lab.procs import cpu_seconds, wait_for

BUCKET = 20_000
"""Microseconds."""
RIGHT = 0.98
"""Of the samples of whole buckets."""
LEAST = 100
"""Samples of each kind of phase: a busy machine lets the program run for a part of it only."""
PHASES, CPU_PHASES = 10, 6
"""Phases to record."""
CPU_SECONDS = 1.5
"""To record, however busy the machine is."""
NAMES = {"one": "One", "two": "Two"}


class Phase(NamedTuple):
    """What the program did; from and to in microseconds since 1970."""

    kind: str
    begin: int
    end: int


class Phases(Program):
    """The program of `Phases.java` on a JDK."""

    def __init__(self, jdk: int) -> None:
        java = str(jdks.home(jdk) / "bin" / "java")
        flags = ["-Xmx48m", "-XX:+UseSerialGC", FRAME_POINTERS]
        super().__init__(["env", f"CLASSPATH={build.classes()}", java, *flags, "Phases"])

    def phases(self) -> list[Phase]:
        """The last ones that are over."""
        found = re.findall(r"(\w+)=(\d+)-(\d+)", self.ask("phases"))
        return [Phase(kind, 1000 * int(begin), 1000 * int(end)) for kind, begin, end in found]


@pytest.fixture
def start(keep_program) -> Callable[[int], Phases]:
    return lambda jdk: keep_program(Phases(jdk))


def record(agent: Agent, program: Phases, event: str = "cpu", **members: object) -> Profile:
    """A recording of some whole phases."""
    agent.begin(program, duration=300, events=[event], **members)
    begin, used = program.phases()[-1].end, cpu_seconds(program.outer.pid)
    phases, seconds = (CPU_PHASES, CPU_SECONDS) if event == "cpu" else (PHASES, 0.0)
    wait_for("phases", lambda: sum(one.begin > begin for one in program.phases()) >= phases)
    wait_for("work", lambda: cpu_seconds(program.outer.pid) - used >= seconds)
    return agent.stop().of(program).profile(event)


def within(profile: Profile, phases: list[Phase], edge: int = BUCKET) -> list[tuple[Phase, Profile]]:
    """The part of the profile in each phase that was recorded as a whole, without its edges."""
    times = profile.times
    assert times and times.width == BUCKET
    whole = [one for one in phases if times.start <= one.begin and one.end <= times.end]
    return [(one, profile.in_range(one.begin + edge - BUCKET, one.end - edge)) for one in whole]


def count(profile: Profile, word: str) -> int:
    """The samples of stacks in which a frame holds the word."""
    return sum(path.values[0] for path in profile.paths() if any(word in frame for frame in path.frames))


def assert_each_in_its_phase(parts: list[tuple[Phase, Profile]], method: str) -> None:
    right, wrong = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for phase, part in parts:
        for kind, name in NAMES.items():
            counts = right if kind == phase.kind else wrong
            counts[phase.kind] += count(part, f"Phases.{method}{name}")
    assert min(right.values()) >= LEAST, (right, wrong)
    assert sum(wrong.values()) <= (1 - RIGHT) * sum(right.values()), (right, wrong)


@EACH_ENGINE_ONCE
def test_a_range_finds_the_method_that_ran(agent, start, jdk, engine):
    program = start(jdk)
    profile = record(agent, program, engine=engine)
    assert profile.times.samples == profile.total("samples")
    parts = within(profile, program.phases())
    assert_each_in_its_phase(parts, "burn")


@pytest.mark.nightly  # a busy machine's wall-clock sampler falls behind, and its samples come late
def test_wall_clock_samples_that_come_together_are_spread(agent, start):
    """A thread that sleeps has one event for many samples."""
    program = start(17)
    profile = record(agent, program, "wall")
    assert_each_in_its_phase(within(profile, program.phases()), "rest")


def test_waits_for_locks_have_their_durations(agent, start):
    """5 ms are from 4096 to 8192 µs, 40 ms from 32,768 to 65,536: a busy machine may make them longer."""
    program = start(17)
    profile = record(agent, program, "lock")
    bands = {"one": (13, 16), "two": (16, 18)}
    all_, right = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for phase, part in within(profile, program.phases(), edge=100_000):
        waits = part.focus("Phases.waitForLock")
        all_[phase.kind] += waits.total("contentions")
        right[phase.kind] += waits.in_bands(*bands[phase.kind]).total("contentions")
    assert all(all_[kind] >= 10 and right[kind] >= 0.9 * all_[kind] for kind in NAMES), (all_, right)
    assert profile.times.has_amounts


SLEEPING = 'import time; print("ready", flush=True)\nwhile True: time.sleep(0.04)'


def test_waits_that_perf_sees_have_their_durations(agent):
    with running(sys.executable, "-c", SLEEPING, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        (found,) = agent.find(native=True, kind="pids", pids=[process.pid])["processes"]
        agent.begin(found, engine="perf", events=["offcpu"], duration=3)
        profile = agent.collect().of(process.pid).profile("offcpu")
    waits = profile.times.samples
    assert profile.times.has_amounts and waits == profile.total("offcpu_samples") >= 20
    assert profile.in_bands(16, 18).total("offcpu_samples") >= 0.9 * waits
    seconds = [
        profile.in_range(profile.times.start + begin, profile.times.start + begin + 1_000_000)
        for begin in (0, 1_000_000)
    ]
    for second in seconds:
        assert 0.5e9 < second.total("offcpu") < 1.5e9
