"""A JVM that is stopped before it looks at what the agent's signal means."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.contract.conftest import still
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: threads of other processes"),
]

SLEEPS = ("230", "115")
"""The number of clock_nanosleep(2) on x86-64, and on arm64."""


def sleeps(agent):
    """Whether a thread of the agent is between two looks."""
    for task in Path(f"/proc/{agent.process.pid}/task").iterdir():
        try:
            if (task / "syscall").read_text().split()[0] in SLEEPS:
                return True
        except OSError:  # it has ended
            pass
    return False


def dumps(burner):
    """Whether the JVM has dumped its threads, up to an answer."""
    burner.counters()
    return any("Full thread dump" in line for line in burner.other_lines)


@pytest.fixture
def signalled(burn):
    """Stops a JVM before it looks at what its signal means; where that, and its socket, are to be."""
    burner = burn()
    trigger, socket = Path(f"/tmp/.attach_pid{burner.pid}"), Path(f"/tmp/.java_pid{burner.pid}")

    def stop(agent):
        (process,) = agent.found(burner)
        agent.library()
        with ThreadPoolExecutor() as pool, still(burner.outer.pid, "Signal Dispatch"):
            prepared = pool.submit(agent.prepare, process)
            wait_for("the agent to wait for the JVM", lambda: trigger.exists() and sleeps(agent))
            burner.outer.suspend()
            _, refused = prepared.result()
        assert "is stopped" in refused[burner.outer.pid]["reason"], refused
        return burner, trigger, socket

    return stop


def test_an_agent_stays_until_the_jvm_that_it_signalled_goes_on(agent, signalled):
    """What tells it what the signal means stays until it has looked: it would dump its threads."""
    burner, trigger, socket = signalled(agent)
    agent.send("start")
    (line,) = agent.collect().left
    assert line.startswith(f"{trigger}: process {burner.outer.pid} has not read it yet")
    agent.send("bye")
    assert agent.expect("left")["left"] == []
    agent.expect_end()
    assert trigger.exists() and agent.process.poll() is None
    burner.outer.kill(signal.SIGCONT)
    assert agent.wait() == 0
    assert socket.exists() and not trigger.exists() and not dumps(burner)


@pytest.mark.parametrize("ends", ["lease", "signal"])
def test_an_agent_stays_no_longer_than_a_lease(new_agent, signalled, ends):
    agent = new_agent(lease=10 if ends == "lease" else 3600)
    burner, trigger, socket = signalled(agent)
    agent.close_stdin()
    agent.expect_end()
    assert trigger.exists() and agent.process.poll() is None
    if ends == "signal":
        agent.process.terminate()
    assert agent.wait() == 0
    burner.outer.kill(signal.SIGCONT)
    wait_for("the socket", socket.exists)
    trigger.unlink()
    assert not dumps(burner)
