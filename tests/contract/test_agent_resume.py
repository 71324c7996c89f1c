"""A coordinator that is lost comes back by another connection: what was recorded waits for one lease."""

from __future__ import annotations

import array
import fcntl
import hashlib
import io
import mmap
import os
import secrets
import signal
import socket
import termios
import time
import traceback
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.cleaning import clean
from tests.contract.conftest import OTHER_USER, as_burnt
from tests.contract.kept import KEEPS, Kept, own_folders
from tests.lab import procs
from tests.lab.procs import wait_for

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: connections of other users")
SHORT = 8.0
"""Seconds of a lease that a test waits for."""


@pytest.fixture
def keep(start_agent, library_file, burn):
    return lambda **options: Kept(start_agent, library_file, burn(), **options)


def names():
    """Of the sockets at which agents listen."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {line.split()[-1] for line in lines if "@hprofiler-" in line}


def name_of(token):
    return "hprofiler-" + hashlib.sha256(f"hprofiler session {token}".encode()).hexdigest()[:32]


def fetched(kept, other):
    """The result, by another agent that was greeted."""
    assert other.resume(kept.token, kept.agent.received)
    event = other.expect("interrupted")
    assert 0.4 < event["seconds"] < 60, event
    result = other.collect()
    pid = kept.burner.outer.pid
    assert good(result.outcomes[pid]) and as_burnt(result.profiles[pid])
    return event


def end_together(kept, other):
    """Both end together, and nothing is left."""
    assert other.bye() == 0
    assert kept.agent.wait() == 0
    assert not own_folders(kept.agent)


def test_what_was_recorded_is_fetched_by_another_connection(keep, start_agent):
    kept, other = keep(), start_agent()
    kept.burn_a_while()
    kept.agent.close_stdin()
    wait_for("the JVM is let go", kept.is_let_go)
    other.hello()
    assert fetched(kept, other)["reason"] == "it was closed"
    end_together(kept, other)


@pytest.mark.nightly
def test_a_connection_is_replaced_before_its_end_is_seen(keep, start_agent):
    """As where a firewall forgot it: the recording goes on, on the new one."""
    kept, other = keep(duration=4), start_agent()
    other.hello()
    assert other.resume(kept.token, kept.agent.received)
    result = other.collect()
    assert good(result.outcomes[kept.burner.outer.pid])
    assert result.heads[kept.burner.outer.pid]["seconds"] >= 4
    end_together(kept, other)


def open_in(process):
    """How many threads and descriptors a process has."""
    return tuple(len(list(Path(f"/proc/{process.pid}/{what}").iterdir())) for what in ("task", "fd"))


@pytest.mark.nightly
def test_connections_of_whose_end_nobody_hears_cost_nothing(keep, start_agent):
    kept = keep()
    threads, files = open_in(kept.agent.process)
    for _ in range(3):
        other = start_agent()
        other.hello()
        assert other.resume(kept.token, kept.agent.received)

    def as_before():
        now = open_in(kept.agent.process)
        return now[0] <= threads and now[1] <= files + 2  # the last one's stdout, and the way to it

    wait_for("as many threads and descriptors as before", as_before)
    end_together(kept, other)


@pytest.mark.nightly
def test_one_that_cannot_write_goes_on_by_a_new_connection(keep, start_agent):
    """Its coordinator reads no more, and has not noticed; a new connection is no loss."""
    kept = keep()
    kept.burn_a_while()
    before = kept.agent.received
    kept.agent.send("list")
    kept.agent.expect("processes")
    size = kept.agent.received - before
    kept.agent.reads.clear()
    fcntl.fcntl(kept.agent.process.stdout, SET_SIZE, mmap.PAGESIZE)
    # The reader takes one, and as much more as it takes at once; then the page fills. Lists may get shorter.
    for _ in range(2 * (1 + (io.DEFAULT_BUFFER_SIZE + mmap.PAGESIZE) // size) + 4):
        kept.agent.send("list")
    wait_for("a full pipe", lambda: unread(kept.agent.process.stdout))
    other = start_agent()
    other.hello()
    assert other.resume(kept.token, kept.agent.received)
    other.send("stop")
    while (event := other.next()[0])["type"] != "outcome":
        assert event["type"] in ("processes", "profile"), event
    assert good(event)
    other.expect("done")
    kept.agent.reads.set()
    end_together(kept, other)


SET_SIZE = 1031
"""Of a pipe: F_SETPIPE_SZ, which Python knows since 3.10."""


def unread(pipe):
    """Bytes that wait in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


@pytest.mark.nightly
def test_it_may_be_lost_again(keep, start_agent):
    kept = keep()
    kept.burn_a_while()
    kept.agent.close_stdin()
    wait_for("the JVM is let go", kept.is_let_go)
    first, second = start_agent(), start_agent()
    first.hello()
    assert first.resume(kept.token, kept.agent.received)
    first.expect("interrupted")
    first.process.kill()  # its stdin is closed with the test's end of it
    first.close_stdin()
    second.hello()
    fetched(kept, second)
    end_together(kept, second)


@pytest.mark.nightly
def test_a_connection_that_was_silent_for_too_long_comes_back(keep):
    kept = keep(lease=SHORT)
    kept.burn_a_while()
    wait_for("the end of the lease", kept.is_let_go)
    kept.agent.send("ping")
    event = kept.agent.expect("interrupted")
    assert "lease" in event["reason"]
    assert good(kept.agent.collect().outcomes[kept.burner.outer.pid])
    assert kept.agent.bye() == 0


@pytest.mark.nightly
def test_nobody_comes_back(keep):
    kept = keep(lease=SHORT)
    began = time.monotonic()
    kept.agent.close_stdin()
    assert kept.agent.wait() == 1
    assert time.monotonic() - began >= SHORT
    assert "did not reconnect" in kept.agent.stderr()
    assert kept.is_let_go()


def test_what_was_received_is_not_kept(keep):
    kept = keep(duration=0.5)
    assert good(kept.agent.collect().outcomes[kept.burner.outer.pid])
    kept.agent.send("received", bytes=kept.agent.received)
    kept.agent.close_stdin()
    began = time.monotonic()
    assert kept.agent.wait() == 0
    assert time.monotonic() - began < KEEPS / 2


@pytest.mark.parametrize("how", ["bye", "SIGTERM", "SIGINT"])
def test_told_to_end_it_keeps_nothing(keep, how):
    kept = keep()
    if how == "bye":
        kept.agent.send("bye")
    else:
        kept.agent.process.send_signal(getattr(signal, how))
    began = time.monotonic()
    assert kept.agent.wait() == (0 if how == "bye" else 128 + getattr(signal, how))
    assert time.monotonic() - began < KEEPS / 2
    assert kept.is_let_go()


@pytest.mark.nightly
def test_an_agent_that_keeps_ends_by_a_signal(keep):
    kept = keep()
    kept.agent.close_stdin()
    wait_for("the JVM is let go", kept.is_let_go)
    kept.agent.process.send_signal(signal.SIGTERM)
    assert kept.agent.wait() == 128 + signal.SIGTERM


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_is_killed_keeps_nothing_and_the_next_one_cleans(keep, start_agent, number):
    kept, other = keep(), start_agent()
    kept.agent.process.send_signal(number)
    kept.agent.wait()
    other.hello()
    assert not other.resume(kept.token, kept.agent.received)
    cleaned = clean(other, kept=True)
    assert (kept.burner.outer.pid in cleaned["stopped"]) == (number == signal.SIGKILL)
    assert kept.is_let_go()
    assert other.bye() == 0


def test_a_wrong_token_or_place_gets_nothing_and_disturbs_nothing(keep, start_agent):
    kept = keep()
    kept.burn_a_while()
    for token, received in ((secrets.token_hex(16), kept.agent.received), (kept.token, 1 << 40)):
        other = start_agent()
        other.hello()
        assert not other.resume(token, received)
        assert (
            other.find(kind="text", text="nothing is called like this")["processes"] == []
        )  # one like any other
        assert other.bye() == 0
    kept.agent.send("stop")
    assert good(kept.agent.collect().outcomes[kept.burner.outer.pid])
    assert kept.agent.bye() == 0


def as_neighbour(work):
    """Begin to do something as another user; gives what waits for its end, which has to be a good one."""
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
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


@pytest.mark.nightly
def test_where_the_name_is_taken_the_recording_goes_on_and_nothing_is_kept(keep):
    token = secrets.token_hex(16)
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(f"\0{name_of(token)}")
        kept = keep(token=token, duration=1)
    assert good(kept.agent.collect().outcomes[kept.burner.outer.pid])
    kept.agent.close_stdin()
    assert kept.agent.wait() == 0
    assert "cannot listen for another agent" in kept.agent.stderr()


@needs_root
def test_another_user_gets_nothing_even_with_the_token(keep, start_agent):
    kept, other = keep(), start_agent()
    kept.burn_a_while()
    kept.agent.close_stdin()
    wait_for("the JVM is let go", kept.is_let_go)
    neighbour = as_neighbour(lambda: ask_often(name_of(kept.token), kept.token))
    assert neighbour() == 0
    other.hello()
    fetched(kept, other)
    end_together(kept, other)


@pytest.mark.nightly
@needs_root
def test_an_impostor_who_took_the_name_is_told_nothing(start_agent):
    """Whoever knew the token could; not even then does the agent lend itself to another user."""
    token, other = secrets.token_hex(16), start_agent()
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
    other.hello()
    assert not other.resume(token, 0)
    assert impostor() == 0
    assert other.bye() == 0
    os.close(read)
    os.close(write)


@pytest.mark.nightly
def test_the_socket_is_there_only_while_something_is_recorded(keep, start_agent):
    idle = start_agent()
    idle.hello(resume=secrets.token_hex(16))
    before = names()
    kept = keep()
    name = f"@{name_of(kept.token)}"
    assert name in names() - before
    assert kept.token[:8] not in name
    kept.agent.send("bye")
    kept.agent.wait()
    assert name not in names()
    assert idle.bye() == 0
