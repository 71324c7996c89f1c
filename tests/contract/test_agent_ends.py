"""However a session ends, nothing of it stays: no profiler in a JVM, no file beside it, no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import good, leftovers
from tests.contract.cleaning import clean
from tests.contract.conftest import OTHER_USER, as_burnt, found, is_profiled
from tests.contract.kept import own_folders
from tests.lab import attach

LEASE = 15
"""Seconds; pings come far more often, and nothing holds them up for so long."""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")


def begin(agent, library, *burners, duration=60):
    """Recordings under way."""
    ready, refused = agent.prepare(library, found(agent, *burners), duration=duration)
    assert len(ready) == len(burners), refused
    agent.start()
    assert all(is_profiled(burner.outer.pid) for burner in burners)


def nothing_of_it(*burners):
    return not leftovers() and not any(is_profiled(burner.outer.pid) for burner in burners)


def test_stdin_closes_while_recording(agent, library, burn):
    burners = [burn(), burn(user=OTHER_USER)]
    begin(agent, library, *burners)
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(*burners)


@pytest.mark.nightly
def test_stdin_closes_while_results_wait_to_be_folded(agent, library, burn):
    burners = [burn() for _ in range(3)]
    begin(agent, library, *burners)
    agent.send("stop")
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(*burners)


def test_stdin_closes_when_ready(agent, library, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner))
    assert leftovers(held=True)
    agent.close_stdin()
    assert agent.wait() == 0
    assert nothing_of_it(burner)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(agent, library, burn, number):
    burner = burn()
    begin(agent, library, burner)
    agent.process.send_signal(number)
    assert agent.wait() == 128 + number
    assert nothing_of_it(burner)


@contextmanager
def pings(agent):
    """One a second, however long what is done meanwhile takes."""
    enough = threading.Event()

    def ping():
        while not enough.wait(1):
            agent.send("ping")

    pinging = threading.Thread(target=ping)
    pinging.start()
    try:
        yield
    finally:
        enough.set()
        pinging.join()


@pytest.mark.nightly
def test_the_lease_is_over(start_agent, library_file, burn):
    burner, agent = burn(), start_agent()
    agent.hello(lease=LEASE)
    begun = time.monotonic()
    with pings(agent):
        begin(agent, agent.put(library_file.read_bytes()), burner)
        time.sleep(max(0.0, begun + LEASE + 1 - time.monotonic()))  # that each renews it is what is tested
        assert agent.process.poll() is None
    assert agent.wait() == 1
    assert "lease" in agent.expect("error")["reason"]
    assert nothing_of_it(burner)


@pytest.mark.nightly
def test_nobody_reads_what_it_tells(private, library_file, burn):
    """A coordinator that stalls: its pipe is full, so no event can be sent, and the lease is what ends it."""
    burner = burn()
    process = subprocess.Popen([str(private)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    hello = {"type": "hello", "protocol": 2, "lease_seconds": 2}
    process.stdin.write(json.dumps(hello).encode() + b"\n" + b'{"type":"list"}\n' * 200)
    process.stdin.flush()
    assert process.wait(60) in (0, 1)  # it gives up writing, or waiting for a ping, whichever it sees first
    process.stdin.close()
    process.stdout.close()
    assert nothing_of_it(burner)


def test_a_broken_request_ends_the_session_cleanly(agent, library, burn):
    burner = burn()
    begin(agent, library, burner)
    agent.send_raw(b"{nonsense\n")
    assert agent.wait() == 1
    assert "understood" in agent.expect("error")["reason"]
    assert nothing_of_it(burner)


def test_an_agent_that_is_killed_leaves_what_the_next_one_cleans(start_agent, library_file, burn):
    burners = [burn(), burn(user=OTHER_USER)]
    killed = start_agent()
    killed.hello()
    begin(killed, killed.put(library_file.read_bytes()), *burners)
    killed.process.kill()
    killed.wait()
    assert len(own_folders(killed)) == 2
    cleaner = start_agent()
    cleaner.hello()
    ready, refused = cleaner.prepare(cleaner.put(library_file.read_bytes()), found(cleaner, *burners))
    assert not ready
    assert all("cleanup" in outcome["remedy"] for outcome in refused.values())
    assert cleaner.bye() == 0
    cleaner = start_agent()
    cleaner.hello()
    cleaned = clean(cleaner, kept=True)
    assert set(cleaned["stopped"]) >= {burner.outer.pid for burner in burners}
    assert not cleaned["failed"]
    assert nothing_of_it(*burners)


def test_cleaning_lets_a_live_session_be(start_agent, library_file, burn, agent, library):
    burner = burn()
    begin(agent, library, burner)
    before = own_folders(agent)
    assert before
    cleaner = start_agent()
    cleaner.hello()
    cleaned = clean(cleaner, kept=True)
    assert burner.outer.pid not in cleaned["stopped"]
    assert own_folders(agent) == before
    agent.send("stop")
    assert good(agent.collect().outcomes[burner.outer.pid])


def test_cleaning_all_removes_the_private_folder(start_agent, private):
    agent = start_agent()
    agent.hello()
    agent.put(b"some bytes")
    cleaned = clean(agent, kept=False)
    assert str(private.parent) in cleaned["removed"]
    assert not private.parent.exists()
    private.parent.mkdir()  # the fixture removes it


def test_cleaning_follows_no_link(agent, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "libasyncProfiler.so").write_text("precious")
    trap = Path(f"/tmp/.hprofiler-ap-0123456789abcdef-{os.geteuid()}")
    trap.symlink_to(victim)
    try:
        cleaned = clean(agent, kept=True)
        assert str(trap) not in cleaned["removed"]
        assert (victim / "libasyncProfiler.so").read_text() == "precious"
    finally:
        trap.unlink()


@pytest.mark.nightly
def test_a_jvm_that_stops_in_the_middle(agent, library, burn):
    stopped, other = burn(), burn(role="beta")
    begin(agent, library, stopped, other)
    stopped.outer.suspend()
    agent.send("stop")
    result = agent.collect()
    outcome = result.outcomes[stopped.outer.pid]
    assert (outcome["status"], outcome["stage"]) == ("failed", "record")
    assert "stopped" in outcome["reason"] and "by itself" in outcome["reason"]
    assert good(result.outcomes[other.outer.pid])
    stopped.outer.kill(signal.SIGCONT)
    cleaned = clean(agent, kept=True)
    assert stopped.outer.pid in cleaned["stopped"], (cleaned, leftovers(held=True))
    assert nothing_of_it(stopped, other)


def test_the_jvms_keep_no_file_of_ours_open(agent, library, burn):
    burner = burn()
    begin(agent, library, burner)
    agent.send("stop")
    agent.collect()
    descriptors = [str(entry.readlink()) for entry in Path(f"/proc/{burner.outer.pid}/fd").iterdir()]
    assert not [target for target in descriptors if ".hprofiler" in target]
    assert attach.profiler_libraries(burner.outer.pid)


def test_a_library_in_use_by_another_session_stays(start_agent, library_file, burn):
    burners = [burn(), burn(role="beta")]
    sessions = [start_agent(), start_agent()]
    for session, burner in zip(sessions, burners, strict=False):
        session.hello()
        library = session.put(library_file.read_bytes())
        assert session.prepare(library, found(session, burner), duration=1)[0]
    assert sessions[0].bye() == 0
    assert [path for path in leftovers(held=True) if "/.hprofiler-ap-" in path]
    sessions[1].start()
    assert good(sessions[1].collect().outcomes[burners[1].outer.pid])


@pytest.mark.nightly
def test_a_profiler_that_ended_before_its_time(agent, library, burn):
    """As its own time limit does where somebody sets the host's clock forward: what it wrote is kept."""
    burner = burn()
    begin(agent, library, burner)
    pid = burner.outer.pid
    (ours,) = attach.profiler_libraries(pid)
    time.sleep(1)  # in which there are samples
    attach.execute(pid, "load", ours, "true", "stop")
    agent.send("stop")
    result = agent.collect()
    outcome = result.outcomes[pid]
    assert outcome["status"] == "degraded" and "before its time" in outcome["reason"], outcome
    assert as_burnt(result.profiles[pid])
    head = result.heads[pid]
    assert head["samples"]["taken"] > 0 and head["cpu_seconds"] > 0
    assert nothing_of_it(burner)
