"""Another tool that attaches to the JVM at the same moment, as jcmd does: by a file and a signal alike."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.conftest import Burn, StartAgent, found
from tests.contract.held import still
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: threads of other processes"),
]

SLEEPS = ("230", "115")
"""The number of clock_nanosleep(2) on x86-64, and on arm64."""


def test_what_a_tool_left_serves_as_well(agent: Agent, library: str, burn: Burn) -> None:
    burner = burn()
    trigger = Path(f"/tmp/.attach_pid{burner.pid}")
    trigger.touch()
    ready, refused = agent.prepare(library, found(agent, burner))
    assert ready == [burner.outer.pid], refused
    assert not any("Full thread dump" in line for line in lines(burner))
    trigger.unlink()


def stop_at_the_signal(
    agent: Agent, library_file: Path, burner: Burner, lease: int = 30
) -> tuple[Path, Path]:
    """The JVM is stopped before it looks at what the signal means; where that, and its socket, are to be."""
    agent.hello(lease)
    library, processes = agent.put(library_file.read_bytes()), found(agent, burner)
    trigger, socket = Path(f"/tmp/.attach_pid{burner.pid}"), Path(f"/tmp/.java_pid{burner.pid}")
    with ThreadPoolExecutor() as pool, still(burner.outer.pid, "Signal Dispatch"):
        prepared = pool.submit(agent.prepare, library, processes)
        wait_for("the agent to wait for the JVM", lambda: trigger.exists() and sleeps(agent))
        burner.outer.suspend()
        _, refused = prepared.result()
    assert "is stopped" in refused[burner.outer.pid]["reason"], refused
    return trigger, socket


def test_a_jvm_that_stops_at_the_signal_dumps_no_threads_when_it_goes_on(
    start_agent: StartAgent, library_file: Path, burn: Burn
) -> None:
    """What tells it what the signal means is there for as long as it has yet to look."""
    burner, agent = burn(), start_agent()
    trigger, socket = stop_at_the_signal(agent, library_file, burner)
    burner.outer.kill(signal.SIGCONT)
    wait_for("the socket", socket.exists)
    assert agent.bye() == 0
    assert not trigger.exists()
    assert not any("Full thread dump" in line for line in lines(burner))


@pytest.mark.parametrize("told", ["done", "left"])
def test_an_agent_stays_until_the_jvm_that_it_signalled_goes_on(
    start_agent: StartAgent, library_file: Path, burn: Burn, told: str
) -> None:
    burner, agent = burn(), start_agent()
    trigger, socket = stop_at_the_signal(agent, library_file, burner)
    if told == "done":
        agent.send("start")
        assert_left(agent.collect().left, trigger, burner)
    agent.send("bye")
    left = agent.expect("left")["left"]
    if told == "left":
        assert_left(left, trigger, burner)
    else:
        assert left == []
    agent.expect_end()
    assert trigger.exists() and agent.process.poll() is None
    burner.outer.kill(signal.SIGCONT)
    assert agent.wait() == 0
    assert socket.exists() and not trigger.exists()
    assert not any("Full thread dump" in line for line in lines(burner))


@pytest.mark.parametrize("ends", ["lease", "signal"])
def test_an_agent_stays_no_longer_than_a_lease(
    start_agent: StartAgent, library_file: Path, burn: Burn, ends: str
) -> None:
    burner, agent = burn(), start_agent()
    trigger, socket = stop_at_the_signal(agent, library_file, burner, lease=10 if ends == "lease" else 3600)
    agent.close_stdin()
    agent.expect_end()
    assert trigger.exists() and agent.process.poll() is None
    if ends == "signal":
        agent.process.terminate()
    assert agent.wait() == 0
    burner.outer.kill(signal.SIGCONT)
    wait_for("the socket", socket.exists)
    trigger.unlink()
    assert not any("Full thread dump" in line for line in lines(burner))


def test_what_is_left_goes_as_soon_as_the_jvm_is_met_again(
    start_agent: StartAgent, library_file: Path, burn: Burn
) -> None:
    burner, agent = burn(), start_agent()
    trigger, socket = stop_at_the_signal(agent, library_file, burner)
    agent.send("start")
    assert_left(agent.collect().left, trigger, burner)
    burner.outer.kill(signal.SIGCONT)
    wait_for("the socket", socket.exists)
    library = agent.put(library_file.read_bytes())
    ready, refused = agent.prepare(library, found(agent, burner))
    assert ready == [burner.outer.pid], refused
    assert not trigger.exists()


def assert_left(left: list[str], trigger: Path, burner: Burner) -> None:
    (line,) = left
    assert line.startswith(f"{trigger}: process {burner.outer.pid} has not read it yet")


def lines(burner: Burner) -> list[str]:
    """What the JVM has written, up to an answer."""
    burner.counters()
    return burner.other_lines


def sleeps(agent: Agent) -> bool:
    """Whether a thread of the agent is between two looks."""
    return any(in_sleep(task) for task in Path(f"/proc/{agent.process.pid}/task").iterdir())


def in_sleep(task: Path) -> bool:
    try:
        return (task / "syscall").read_text().split()[0] in SLEEPS
    except OSError:  # it has ended
        return False
