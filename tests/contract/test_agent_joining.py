"""Processes that start during a recording: the agent names them, and they join it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.burners.burner import Burner, Wrap, arguments
from tests.burners.counting import FORKING, Counting
from tests.contract.agent_driver import Agent, Result, good
from tests.contract.conftest import contained, is_profiled
from tests.contract.test_agent_perf import FRAME_POINTERS
from tests.lab import procs

LATE = 1.5
"""Seconds that may be missing at the beginning of a JVM's life: of CPU time, on a machine that is busy."""
LONG = 600


class ShortLived(Burner):
    """A JVM with a word for selectors. Nobody waits until it is ready, nor tells it to end."""

    def __init__(self, word: str, wrap: Wrap = list, **more: Any) -> None:
        self.argv = wrap(arguments(**{"extra": [word], "load": 0.5, **more}))
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.begun = time.monotonic()
        self.other_lines: list[str] = []
        self._unread = b""

    def lives_on(self, nanos: float = 1e9) -> float:
        """Let it burn CPU time and end by itself; how much it burnt meanwhile, in nanoseconds."""
        before = self.counters()
        procs.wait_for("CPU time of a burner", lambda: (self.counters() - before).nanos > nanos)
        burnt = (self.finish() - before).nanos
        assert self.process.returncode == 0, "it must not be harmed"
        return burnt


@pytest.fixture
def launch() -> Iterator[Callable[..., ShortLived]]:
    launched: list[ShortLived] = []

    def start(word: str, **more: Any) -> ShortLived:
        launched.append(ShortLived(word, **more))
        return launched[-1]

    yield start
    for one in launched:
        one.process.kill()
        one.process.wait(procs.PATIENCE)
        for pipe in (one.process.stdin, one.process.stdout):
            pipe.close()


_numbers = itertools.count()


@pytest.fixture
def word() -> str:
    return f"word-{os.getpid()}-{next(_numbers)}"


def record(agent: Agent, word: str, native: bool = False, **members: Any) -> None:
    """Record nothing yet, and follow what has this word in its command line."""
    assert agent.prepare(**{"engine": "auto", "duration": LONG, **members}) == ([], {})
    agent.follow(word, native)
    assert agent.start() == {}


def join(agent: Agent) -> int:
    """Let what appears next join; its pid, once it is recorded."""
    (process,) = agent.appeared()
    agent.join(process)
    pid, result = int(process["pid"]), Result()
    while pid not in result.started | result.outcomes:
        result = agent.collect(until=["started", "outcome"])
    assert pid in result.started, result.outcomes[pid]
    return pid


def assert_recorded(result: Result, pid: int, burnt: float) -> None:
    """To the end of the process: its profile has the CPU time of its methods, by its own word."""
    outcome = result.outcomes[pid]
    assert (outcome["status"], outcome.get("ended")) == ("degraded", "process"), outcome
    methods = ("Burner.hotAlpha", "Burner.warm", "Burner.cool")
    stacks = result.of(pid).stacks(value=1)
    nanos = sum(n for stack, n in stacks if any(frame.startswith(methods) for frame in stack))
    assert nanos > 0.85 * burnt, (nanos, burnt, result.of(pid).head(), outcome["reason"], stacks[:20])


def test_short_jvms_are_recorded_from_soon_after_their_start_to_their_end(agent, launch, word):
    """Ten, a new one as soon as the one before is recorded. None is harmed."""
    record(agent, word, metrics=True)
    late, missed, burnt = [], [], {}
    for _ in range(10):
        jvm = launch(word)
        pid = join(agent)
        late.append(time.monotonic() - jvm.begun)
        missed.append(procs.cpu_seconds(pid))
        burnt[pid] = jvm.lives_on(2e8)
    for pid in burnt:
        agent.outcome(pid)
    result = agent.stop()
    print("recorded", sorted(round(one, 2) for one in late), "s after their start")
    assert max(missed) < LATE, (missed, late)
    for pid, nanos in burnt.items():
        assert_recorded(result, pid, nanos)
    assert result.left == [] and len(result.appeared) == len(burnt)
    measured = {one["id"] for one in result.metrics["series"] if one["of"] == "process"}
    assert measured and measured <= set(map(str, burnt)), "once a second"


def test_a_short_jvm_by_perf(agent, launch, word):
    record(agent, word, engine="perf", frequency=99)
    jvm = launch(word, options=[FRAME_POINTERS])
    pid = join(agent)
    burnt = jvm.lives_on()
    agent.outcome(pid)
    head = agent.stop().of(pid).head()
    # The CPU time of its last second is that of the samples at least.
    assert head["cpu_seconds"] > 0.5 * burnt / 1e9, head


def test_a_short_jvm_whose_container_is_gone(agent, launch, word):
    """Its namespaces and its /tmp end with it."""
    record(agent, word)
    jvm = launch(word, wrap=contained())
    pid = join(agent)
    burnt = jvm.lives_on()
    agent.outcome(pid)
    result = agent.stop()
    assert_recorded(result, pid, burnt)
    assert result.left == []


def test_a_jvm_that_still_fills_its_heap_is_waited_for(agent, launch, word):
    """Until then it answers nobody who attaches, for more than a second."""
    record(agent, word)
    jvm = launch(word, options=["-Xms3g", "-Xmx3g", "-XX:+AlwaysPreTouch"])
    assert join(agent) == jvm.process.pid
    jvm.lives_on(2e8)


def test_one_that_is_killed_leaves_the_others(agent, launch, word):
    record(agent, word)
    killed = launch(word)
    pid = join(agent)
    other = launch(word)
    other_pid = join(agent)
    killed.process.kill()
    burnt = other.lives_on()
    agent.outcome(pid), agent.outcome(other_pid)
    result = agent.stop()
    assert result.outcomes[pid]["ended"] == "process"
    assert_recorded(result, other_pid, burnt)
    assert result.left == []


def test_a_python_process_joins_with_what_it_forks(agent, keep_program):
    """The forked process is recorded with its parent, so it is not named."""
    record(agent, "forking.py", native=True, frequency=99)
    forking = keep_program(Counting([sys.executable, str(FORKING)]))
    assert join(agent) == forking.outer.pid
    forking.ask("forked")
    used = forking.counters()["hot"]
    result = agent.stop()
    done = result.of(forking)
    assert good(done.outcome) and len(result.appeared) == 1, (done.outcome, result.appeared)
    assert 0.7 * used < done.profile().total(1) < 1.2 * used


def test_a_script_that_executes_a_jvm_appears_as_one(agent, launch, word):
    """Also when the script is no longer young."""
    record(agent, word)
    launch(word, wrap=lambda command: ["sh", "-c", 'sleep 6; exec "$@"', "sh", *command])
    (process,) = agent.appeared()
    assert process["jvm"] is not None


def test_a_followed_recording_lasts_for_its_time(agent, word, untouched):
    begun = time.monotonic()
    record(agent, word, duration=1.5)
    result = agent.collect()
    assert time.monotonic() - begun > 1.5 and (result.outcomes, result.appeared) == ({}, [])
    agent.join(untouched)
    assert agent.expect("outcome")["code"] == "recording-over"


def test_another_follow_replaces_the_first(agent, word, launch):
    record(agent, "never")
    agent.follow(word)
    launch(word)
    (process,) = agent.appeared()
    assert word in process["command"]
    agent.follow(word)
    assert len(agent.stop().appeared) == 1, "it was named already"


@pytest.mark.nightly
def test_nothing_outlives_a_killed_agent(new_agent, launch, word):
    """The profiler of a JVM that joined ends half a minute after the end of the recording."""
    agent = new_agent()
    record(agent, word, duration=4)
    launch(word)
    pid = join(agent)
    agent.kill()
    assert is_profiled(pid)
    procs.wait_for("the end of its lease", lambda: not is_profiled(pid), timeout=60)
    assert new_agent().clean()["failed"] == []
