"""JVMs in trouble of their own: what is recorded is told as it is, and they are none the worse for it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from tests.burners import build
from tests.burners.burner import Burner, Program
from tests.contract.agent_driver import Agent, Event, Result, good
from tests.contract.conftest import Burn, as_burnt, found, is_profiled
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.nightly

EVENTS = ("cpu", "alloc", "lock", "wall")
SMALL = ["-Xmx24m", "-XX:+UseSerialGC"]
TINY_CODE = ["-XX:ReservedCodeCacheSize=2496k", "-XX:-UseCodeCacheFlushing", "-XX:-SegmentedCodeCache"]


class Troubled(Program):
    """`java Trouble KIND`, by itself."""

    def rounds(self) -> int:
        return int(self.ask("rounds=")[len("rounds=") :])


def troubled(kind: str, options: list[str]) -> Troubled:
    return Troubled(["env", f"CLASSPATH={build.classes()}", "java", *options, "Trouble", kind])


def record(agent: Agent, library: str, pid: int) -> Result:
    """What came of a recording; of one that cannot be prepared its outcome."""
    (found,) = agent.find(kind="pids", pids=[pid])["processes"]
    ready, refused = agent.prepare(library, [found], events=EVENTS)
    if not ready:
        return Result(outcomes=refused)
    agent.send("start")
    return agent.collect()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        pytest.param("threads", SMALL, id="threads born and dying"),
        pytest.param("heap", SMALL, id="GC storm"),
        pytest.param("threads", [*SMALL, *TINY_CODE], id="full code cache"),
    ],
)
def test_a_jvm_in_trouble_goes_on(agent: Agent, library: str, kind: str, options: list[str]) -> None:
    program = troubled(kind, options)
    try:
        result = record(agent, library, program.outer.pid)
        outcome = result.outcomes[program.outer.pid]
        assert outcome["status"] == "ok" or outcome["reason"], outcome
        assert outcome["status"] == "failed" or result.events[program.outer.pid], outcome
        before = program.rounds()
        wait_for("it goes on", lambda: program.rounds() > before)
        assert not is_profiled(program.outer.pid)
        assert agent.bye() == 0
    finally:
        program.kill()


@pytest.fixture
def debugged() -> Iterator[int]:
    """A JVM that waits for its debugger before it does anything."""
    debugger = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=y,address=127.0.0.1:0"
    command = ["java", *SMALL, debugger, "-cp", str(build.classes()), "Trouble", "threads"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert "Listening" in process.stdout.readline()
    yield process.pid
    process.kill()
    process.communicate()


def test_a_jvm_that_waits_for_its_debugger(agent: Agent, library: str, debugged: int) -> None:
    before = procs.Identity.of(debugged)
    outcome = record(agent, library, debugged).outcomes[debugged]
    assert outcome["status"] == "ok" or outcome["reason"], outcome
    assert agent.bye() == 0
    assert before and before.alive()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root chooses the next pid")
def test_a_pid_that_was_given_away_between_find_and_prepare(agent: Agent, library: str) -> None:
    first = troubled("threads", SMALL)
    (found,) = agent.find(kind="pids", pids=[first.outer.pid])["processes"]
    first.kill()
    second = successor(first.outer.pid)
    try:
        ready, refused = agent.prepare(library, [found])
        assert not ready
        assert re.search("another process|ended|gone", refused[second.outer.pid]["reason"]), refused
        before = second.rounds()
        wait_for("it goes on", lambda: second.rounds() > before)
        assert "libasyncProfiler" not in open(f"/proc/{second.outer.pid}/maps").read()
        assert not [line for line in second.other_lines if "dump" in line], "it was signalled"
    finally:
        second.kill()
    agent.send("stop")
    agent.collect()


def successor(pid: int) -> Troubled:
    """A JVM that gets this number; others, too, start processes all the time."""

    def take() -> list[Troubled]:
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(pid - 1))
        made = troubled("threads", SMALL)
        if made.outer.pid == pid:
            return [made]
        made.kill()
        return []

    return procs.wait_for(f"a process with the number {pid}", take, procs.PATIENCE)[0]


def test_one_that_stands_still_at_the_end_and_goes_on_soon_loses_nothing(
    agent: Agent, library: str, burn: Burn
) -> None:
    outcome, profile = stopped_at_the_end(agent, library, burn(), goes_on=True)
    assert good(outcome), outcome
    assert profile and as_burnt(profile)


def test_one_that_goes_on_standing_still_is_told(agent: Agent, library: str, burn: Burn) -> None:
    outcome, profile = stopped_at_the_end(agent, library, burn(), goes_on=False)
    assert (outcome["status"], profile) == ("failed", None), outcome
    assert "is stopped (state T)" in outcome["reason"] and "kill -CONT" in outcome["remedy"]


def stopped_at_the_end(
    agent: Agent, library: str, burner: Burner, goes_on: bool
) -> tuple[Event, bytes | None]:
    """Its outcome and profile; one that goes on does so well within the time that it is given."""
    agent.prepare(library, found(agent, burner), duration=60)
    agent.start()
    time.sleep(2)  # recorded
    burnt = procs.Identity.of(burner.outer.pid)
    assert burnt
    burnt.suspend()
    timer = threading.Timer(0.5, burnt.kill, (signal.SIGCONT,))
    if goes_on:
        timer.start()
    agent.send("stop")
    result = agent.collect()
    if goes_on:
        timer.join()
    burnt.kill(signal.SIGCONT)
    return result.outcomes[burner.outer.pid], result.profiles.get(burner.outer.pid)
