"""A coordinator that is lost comes back by another connection: what was recorded waits for one lease."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.conftest import OTHER_USER, is_profiled
from tests.lab import procs
from tests.lab.procs import wait_for

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: connections of other users")
SHORT = 8.0
"""Seconds of a lease that a test waits for."""
KEEPS = 60.0
"""Seconds of a lease that no test waits for, and that outlasts a busy machine."""


class Kept:
    """An agent that records a burner, and what it takes to come back to it."""

    def __init__(self, agent, token, burner, **options):
        self.agent, self.token, self.burner = agent, token, burner
        agent.begin(burner, **{"duration": 60, **options})

    def lose(self):
        """The connection, once something is recorded."""
        self.burner.burn(5e8)
        self.agent.close_stdin()
        wait_for("the JVM is let go", self.is_let_go)

    def is_let_go(self):
        return not is_profiled(self.burner.outer.pid) and not self.agent.folders()

    def is_fetched_by(self, other):
        """The result, by another agent."""
        assert other.resume(self.token, self.agent.received)
        event = other.expect("interrupted")
        assert event["reason"] == "it was closed" and 0.4 < event["seconds"] < 60, event
        assert other.collect().of(self.burner).is_good()
        self.ends_with(other)

    def ends_with(self, other):
        """Both end together, and nothing is left."""
        assert other.bye() == 0
        assert self.agent.wait() == 0
        assert not self.agent.folders()


@pytest.fixture
def keep(new_agent, burn):
    def begin(lease=KEEPS, token=None, **options):
        token = token or secrets.token_hex(16)
        return Kept(new_agent(lease=lease, resume=token), token, burn(), **options)

    return begin


def test_a_recording_is_fetched_by_another_connection(keep, new_agent):
    kept = keep()
    kept.lose()
    kept.is_fetched_by(new_agent())


@pytest.mark.nightly
def test_a_connection_is_replaced_before_its_end_is_seen(keep, new_agent):
    """As where a firewall forgot it: the recording goes on, on the new one."""
    kept, other = keep(duration=4), new_agent()
    assert other.resume(kept.token, kept.agent.received)
    done = other.collect().of(kept.burner)
    assert good(done.outcome) and done.head()["seconds"] >= 4
    kept.ends_with(other)


@pytest.mark.nightly
def test_the_connection_may_be_lost_again(keep, new_agent):
    kept = keep()
    kept.lose()
    first = new_agent()
    assert first.resume(kept.token, kept.agent.received)
    first.expect("interrupted")
    first.process.kill()  # its stdin is closed with the test's end of it
    first.close_stdin()
    kept.is_fetched_by(new_agent())


@pytest.mark.nightly
def test_a_connection_that_was_silent_for_too_long_comes_back(keep):
    kept = keep(lease=SHORT)
    kept.burner.burn(5e8)
    wait_for("the end of the lease", kept.is_let_go)
    kept.agent.send("ping")
    assert "lease" in kept.agent.expect("interrupted")["reason"]
    assert good(kept.agent.collect().of(kept.burner).outcome)
    assert kept.agent.bye() == 0


@pytest.mark.nightly
def test_the_agent_ends_without_a_reconnect(keep):
    kept = keep(lease=SHORT)
    began = time.monotonic()
    kept.agent.close_stdin()
    assert kept.agent.wait() == 1
    assert time.monotonic() - began >= SHORT
    assert "did not reconnect" in kept.agent.stderr() and kept.is_let_go()


@pytest.mark.parametrize("how", ["received", "bye", "SIGTERM", "SIGTERM while it keeps"])
def test_a_session_is_not_kept_after_its_end(keep, how):
    kept = keep(duration=0.5 if how == "received" else 60)
    name = f"@{name_of(kept.token)}"
    assert name in listening() and kept.token[:8] not in name
    if how == "received":
        assert good(kept.agent.collect().of(kept.burner).outcome)
        kept.agent.send("received", bytes=kept.agent.received)
        kept.agent.close_stdin()
    elif how == "bye":
        kept.agent.send("bye")
    else:
        if "keeps" in how:
            kept.lose()
        kept.agent.process.send_signal(signal.SIGTERM)
    # An agent that keeps its session waits for the lease's end, and exits with 1.
    assert kept.agent.wait() == (128 + signal.SIGTERM if "SIGTERM" in how else 0)
    assert kept.is_let_go() and name not in listening()


def listening():
    """Names of the sockets at which agents listen."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if "@hprofiler-" in line}


def name_of(token):
    return "hprofiler-" + hashlib.sha256(f"hprofiler session {token}".encode()).hexdigest()[:32]


def test_a_wrong_token_or_place_gets_nothing_and_disturbs_nothing(keep, new_agent):
    kept = keep()
    kept.burner.burn(5e8)
    for token, received in ((secrets.token_hex(16), kept.agent.received), (kept.token, 1 << 40)):
        other = new_agent()
        assert not other.resume(token, received)
        found = other.find(kind="text", text="nothing is called like this")
        assert found["processes"] == [], "it is one like any other"
        assert other.bye() == 0
    assert good(kept.agent.stop().of(kept.burner).outcome)
    assert kept.agent.bye() == 0


def as_neighbour(work):
    """Begin to do something as another user; gives what waits for its end, which has to be a good one."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            work()
            code = 0
        finally:
            os._exit(code)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ask_often(name, token):
    for _ in range(50):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(procs.PATIENCE)
        connection.connect(f"\0{name}")
        try:
            connection.sendall(f"{token} 0\n".encode())
            assert connection.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            pass
    with pytest.raises(OSError):
        socket.socket(socket.AF_UNIX).bind(f"\0{name}")


@needs_root
def test_another_user_gets_nothing_even_with_the_token(keep, new_agent):
    kept = keep()
    kept.lose()
    assert as_neighbour(lambda: ask_often(name_of(kept.token), kept.token))() == 0
    kept.is_fetched_by(new_agent())


@needs_root
def test_nothing_is_sent_to_another_user_at_the_sessions_socket(agent):
    """Whoever knew the token could; not even then does the agent lend itself to another user."""
    token = secrets.token_hex(16)
    read, write = os.pipe()

    def listen():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{name_of(token)}")
        listener.listen()
        os.write(write, b"!")
        connection, _ = listener.accept()
        assert connection.recv(100) == b""

    impostor = as_neighbour(listen)
    assert os.read(read, 1) == b"!"
    assert not agent.resume(token, 0)
    assert impostor() == 0
    os.close(read)
    os.close(write)
