"""SSH connections: a second try, errors of names and limits, and logins that hang or fail."""

from __future__ import annotations

import errno
import getpass
import os
import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace

import paramiko
import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh import handshake, sockets
from hprofiler.transport.ssh.keys import Credential
from hprofiler.transport.ssh.route import RouteFinder, SshOptions
from hprofiler.transport.ssh.sockets import Attempt
from tests.lab.procs import PATIENCE


def refusing(monkeypatch, *failures: int) -> list[int]:
    """Make the first connections fail with these errors; returns the remaining ones."""
    left = list(failures)

    class Socket(socket.socket):
        def connect(self, address):
            if left:
                number = left.pop(0)
                raise OSError(number, os.strerror(number))
            super().connect(address)

    monkeypatch.setattr(sockets.socket, "socket", Socket)
    return left


@pytest.fixture
def route(tmp_path):
    (tmp_path / "config").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = Host("a", "127.0.0.1", getpass.getuser(), server.getsockname()[1])
        yield RouteFinder(SshOptions(config_path=tmp_path / "config")).find(host)


@pytest.mark.parametrize(
    ("failures", "reason", "remedy"),
    [
        ([errno.EHOSTUNREACH], "no route to", "network"),
        ([errno.ECONNREFUSED], "connection refused by", "sshd runs there"),
        ([errno.EMFILE], "Too many open files", "ulimit -n"),
    ],
)
def test_errors_of_sockets(route, monkeypatch, failures, reason, remedy):
    left = refusing(monkeypatch, *failures)
    with pytest.raises(HostError, match=reason) as caught:
        sockets.dial(route, 30, lambda closer: None)
    assert remedy in caught.value.remedy and not left


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (socket.EAI_NONAME, "the name 127.0.0.1 is not known", "spelling"),
        (socket.EAI_AGAIN, "the name lookup failed for 127.0.0.1: Try again", "network"),
    ],
)
def test_failed_name_lookups(route, monkeypatch, code, reason, remedy):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "Try again")

    monkeypatch.setattr(sockets.socket, "getaddrinfo", fail)
    with pytest.raises(HostError) as caught:
        sockets.dial(route, 30, lambda closer: None)
    assert caught.value.reason == reason and remedy in caught.value.remedy
    assert ("spelling" in caught.value.remedy) == (code == socket.EAI_NONAME)


KEYS = [Credential(f"key {name}", paramiko.ECDSAKey.generate()) for name in ("a", "b")]


class Server(paramiko.ServerInterface):
    """Calls `look` for each offered key; `offered` lists all attempts."""

    def __init__(self) -> None:
        self.offered: list[str] = []
        self.look: Callable[[], int] = lambda: paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.offered.append("key")
        return self.look()

    def check_auth_none(self, username: str) -> int:
        self.offered.append("none")
        return paramiko.AUTH_FAILED


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def links(server):
    """Both ends of a connection after the key exchange."""
    ends = [paramiko.Transport(end) for end in socket.socketpair()]
    for end in ends:
        end.daemon = True
    ends[1].add_server_key(paramiko.ECDSAKey.generate())
    ends[1].start_server(threading.Event(), server)
    ends[0].start_client(timeout=PATIENCE)
    yield ends
    for end in ends:
        end.close()


def log_in(links, tmp_path, seconds: float, credentials=lambda: iter(KEYS), attempt=None) -> None:
    (tmp_path / "config").write_text("")
    route = RouteFinder(SshOptions(config_path=tmp_path / "config")).find(Host("n1", "n1", getpass.getuser()))
    keys = SimpleNamespace(credentials=lambda route: credentials())
    handshake.log_in(links[0], route, keys, seconds, attempt or Attempt())


def test_a_login_that_hangs_times_out(server, links, tmp_path):
    released = threading.Event()

    def hang() -> int:
        released.wait(PATIENCE)
        return paramiko.AUTH_FAILED

    server.look = hang
    with pytest.raises(HostError, match=r"timed out after 0\.2 s while logging in .* tried key a$") as error:
        log_in(links, tmp_path, 0.2)
    assert "--timeout" in error.value.remedy and len(server.offered) <= 1
    released.set()


def test_the_error_names_the_key_at_which_the_server_hung_up(server, links, tmp_path):
    def hang_up() -> int:
        links[1].close()
        return paramiko.AUTH_FAILED

    server.look = hang_up
    with pytest.raises(HostError, match=r"closed the connection during the login as .*: tried key a$"):
        log_in(links, tmp_path, PATIENCE)


def test_keys_that_are_refused_are_all_tried(server, links, tmp_path):
    with pytest.raises(
        HostError, match=r"authentication failed for .*: tried key a, key b; the server allows"
    ):
        log_in(links, tmp_path, PATIENCE)
    assert server.offered == ["key", "key", "none"]


@pytest.mark.parametrize("answer", [paramiko.AUTH_FAILED, paramiko.AUTH_PARTIALLY_SUCCESSFUL])
def test_messages_of_a_server_have_no_control_characters(server, links, tmp_path, answer):
    server.look = lambda: answer
    server.get_allowed_auths = lambda username: "publickey,\x1b]0;owned\x07\x1b[2J\u202e"
    with pytest.raises(HostError) as error:
        log_in(links, tmp_path, PATIENCE)
    assert "owned" in error.value.reason and error.value.reason.isprintable(), error.value.reason
