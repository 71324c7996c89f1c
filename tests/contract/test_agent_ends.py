"""However a session ends, nothing of it stays: no profiler in a JVM, no file beside it, no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import good, leftovers
from tests.contract.conftest import OTHER_USER, is_profiled
from tests.lab import attach

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")


def begin(agent, *burners):
    """Recordings under way."""
    agent.begin(*burners, duration=60)
    assert all(is_profiled(burner.outer.pid) for burner in burners)


def nothing_of_it(*burners):
    return not leftovers() and not any(is_profiled(burner.outer.pid) for burner in burners)


def test_stdin_closes_while_recording(agent, burn):
    burners = [burn(), burn(user=OTHER_USER)]
    begin(agent, *burners)
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(*burners)


@pytest.mark.nightly
def test_stdin_closes_while_results_wait_to_be_folded(agent, burn):
    burners = [burn() for _ in range(3)]
    begin(agent, *burners)
    agent.send("stop")
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(*burners)


def test_stdin_closes_when_ready(agent, burn):
    burner = burn()
    agent.prepare(burner)
    assert agent.folders()
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(burner)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(agent, burn, number):
    burner = burn()
    begin(agent, burner)
    agent.process.send_signal(number)
    assert agent.wait() == 128 + number
    assert nothing_of_it(burner)


@pytest.mark.nightly
def test_the_lease_ends_unless_pings_renew_it(new_agent, burn):
    lease, burner = 15, burn()
    agent, begun = new_agent(lease=lease), time.monotonic()
    begin(agent, burner)
    while time.monotonic() < begun + lease + 1:
        agent.send("ping")
        time.sleep(1)  # a ping comes now and then
    assert agent.process.poll() is None
    assert agent.wait() == 1
    assert "lease" in agent.expect("error")["reason"]
    assert nothing_of_it(burner)


@pytest.mark.nightly
def test_a_coordinator_that_stops_reading(private):
    """A coordinator that stalls: its pipe is full, so no event can be sent, and the lease is what ends it."""
    process = subprocess.Popen([str(private)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    hello = {"type": "hello", "protocol": 3, "lease_seconds": 2}
    process.stdin.write(json.dumps(hello).encode() + b"\n" + b'{"type":"list"}\n' * 200)
    process.stdin.flush()
    assert process.wait(60) in (0, 1)  # it gives up writing, or waiting for a ping, whichever it sees first
    process.stdin.close()
    process.stdout.close()
    assert not leftovers()


def test_a_broken_request_ends_the_session_cleanly(agent, burn):
    burner = burn()
    begin(agent, burner)
    agent.send_raw(b"{nonsense\n")
    assert "understood" in agent.error()
    assert nothing_of_it(burner)


def test_cleaning_does_not_touch_a_live_session(agent, new_agent, burn):
    burner = burn()
    begin(agent, burner)
    before = agent.folders()
    assert before and burner.outer.pid not in new_agent().clean()["stopped"]
    assert agent.folders() == before
    assert good(agent.stop().of(burner).outcome)


@pytest.mark.nightly
def test_a_jvm_that_stops_in_the_middle(agent, burn):
    stopped, other = burn(), burn(role="beta")
    begin(agent, stopped, other)
    stopped.outer.suspend()
    result = agent.stop()
    outcome = result.of(stopped).outcome
    assert (outcome["status"], outcome["stage"]) == ("failed", "record")
    assert "is stopped" in outcome["reason"] and "by itself" in outcome["reason"]
    assert "kill -CONT" in outcome["remedy"] and good(result.of(other).outcome)
    stopped.outer.kill(signal.SIGCONT)
    cleaned = agent.clean()
    assert stopped.outer.pid in cleaned["stopped"], (cleaned, leftovers(held=True))
    assert nothing_of_it(stopped, other)


def test_the_jvms_keep_no_file_of_ours_open(agent, burn):
    burner = burn()
    begin(agent, burner)
    agent.stop()
    descriptors = [str(entry.readlink()) for entry in Path(f"/proc/{burner.outer.pid}/fd").iterdir()]
    assert not [target for target in descriptors if ".hprofiler" in target]
    assert attach.profiler_libraries(burner.outer.pid)


def test_a_library_in_use_by_another_session_stays(new_agent, burn):
    burners, sessions = [burn(), burn(role="beta")], [new_agent(), new_agent()]
    for session, burner in zip(sessions, burners, strict=True):
        assert session.prepare(burner)[0]
    assert sessions[0].bye() == 0
    assert [path for path in leftovers(held=True) if "/.hprofiler-ap-" in path]
    sessions[1].start()
    assert good(sessions[1].collect().of(burners[1]).outcome)
