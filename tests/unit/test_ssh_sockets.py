"""Connections that are made at the second try, or not at all."""

from __future__ import annotations

import errno
import getpass
import os
import socket

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh import sockets
from hprofiler.transport.ssh.route import RouteFinder, SshOptions


def refusing(monkeypatch, *failures: int) -> list[int]:
    """The first connections fail so; gives what is left of the failures."""
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


def test_a_host_that_the_kernel_could_not_ask_for_is_asked_for_again(route, monkeypatch):
    left = refusing(monkeypatch, errno.EHOSTUNREACH)
    sockets.dial(route, 30, lambda closer: None).close()
    assert not left


def full(*_: object) -> None:
    """What every call gives that opens a file, once there are too many."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_too_many_open_files_are_an_error_of_the_host_with_a_remedy(route, monkeypatch, call):
    monkeypatch.setattr(sockets.socket, call, full)
    with pytest.raises(HostError, match="Too many open files") as caught:
        if call == "socket":
            sockets.dial(route, 30, lambda closer: None)
        else:
            sockets.spawn_proxy("cat", lambda closer: None)
    assert "ulimit -n" in caught.value.remedy


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (socket.EAI_NONAME, "the name 127.0.0.1 is not known", "spelling"),
        (socket.EAI_AGAIN, "the name lookup failed for 127.0.0.1: Try again", "network"),
        (socket.EAI_FAIL, "the name lookup failed for 127.0.0.1: Try again", "network"),
    ],
)
def test_a_name_that_nobody_knows_is_not_one_that_nobody_was_asked_for(
    route, monkeypatch, code, reason, remedy
):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "Try again")

    monkeypatch.setattr(sockets.socket, "getaddrinfo", fail)
    with pytest.raises(HostError) as caught:
        sockets.dial(route, 30, lambda closer: None)
    assert caught.value.reason == reason and remedy in caught.value.remedy
    assert ("spelling" in caught.value.remedy) == (code == socket.EAI_NONAME)
