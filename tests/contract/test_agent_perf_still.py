"""JVMs that stand still when perf's recording ends, and should tell how their code is called."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent, good
from tests.contract.conftest import Burn
from tests.contract.held import still
from tests.contract.perf_engine import FRAME_POINTERS, Recorded, prepare, processes
from tests.lab import procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: perf of other processes"),
]

NAMELESS = "Java methods have no names"
# What the agent gives a JVM, and its own work before and after on a busy machine.
BOUND = 12 + 10


def to_the_end(agent: Agent, burner: Burner, stands: Callable[[], AbstractContextManager[None]]) -> Recorded:
    """A recording that is ended while the JVM stands still."""
    ready, refused = prepare(agent, processes(agent, burner), duration=60)
    assert ready == [burner.outer.pid], refused
    agent.start()
    time.sleep(1.5)  # recorded
    with stands():
        begin = time.monotonic()
        agent.send("stop")
        done = Recorded(burner.outer.pid, agent.collect())
        assert time.monotonic() - begin < BOUND
        return done


class Stopped:
    """A JVM that is stopped by a signal for so long at most."""

    def __init__(self, burner: Burner, seconds: float) -> None:
        burnt = procs.Identity.of(burner.outer.pid)
        assert burnt
        self.burnt, self.timer = burnt, threading.Timer(seconds, burnt.kill, (signal.SIGCONT,))

    def __enter__(self) -> None:
        self.burnt.suspend()
        self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        self.burnt.kill(signal.SIGCONT)


def test_one_that_goes_on_soon_has_its_names(agent: Agent, burn: Burn) -> None:
    burner = burn(options=[FRAME_POINTERS])
    done = to_the_end(agent, burner, lambda: Stopped(burner, 0.5))
    assert good(done.outcome), done.outcome
    assert done.share("Burner.") > 0.9


def test_of_one_that_stays_stopped_the_samples_come_without_names(agent: Agent, burn: Burn) -> None:
    burner = burn(options=[FRAME_POINTERS])
    done = to_the_end(agent, burner, lambda: Stopped(burner, 600))
    told(done, "is stopped (state T)")
    assert "kill -CONT" in done.outcome["remedy"]


def test_of_one_that_hangs_the_samples_come_without_names(agent: Agent, burn: Burn) -> None:
    burner = burn(options=[FRAME_POINTERS])
    # It opens its socket there, so it never does; to everybody else it runs.
    done = to_the_end(agent, burner, lambda: still(burner.outer.pid, "Signal Dispatch"))
    told(done, "did not open /tmp/.java_pid")


def told(done: Recorded, why: str) -> None:
    """Degraded, with all samples, and why their Java methods have no names."""
    outcome, samples = done.outcome, done.head()["samples"]
    assert outcome["status"] == "degraded", outcome
    assert f"{NAMELESS}: process {done.pid} {why}" in outcome["reason"], outcome
    assert samples["taken"] > 0.5 * samples["expected"], samples
    assert sum(count for _, count in done.stacks()) == samples["taken"]
