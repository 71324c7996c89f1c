"""Connections that are made at the second try, or not at all."""

from __future__ import annotations

import errno
import getpass
import os
import socket
from typing import List

import pytest

from hprofiler.errors import HostError
from hprofiler.model import Host
from hprofiler.transports.ssh import sockets
from hprofiler.transports.ssh.options import SshOptions
from hprofiler.transports.ssh.route import RouteFinder


def refusing(monkeypatch, *failures: int) -> List[int]:
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


@pytest.mark.parametrize(
    ("failures", "left"),
    [([errno.EHOSTUNREACH] * 3, 1), ([errno.ECONNREFUSED] * 2, 1), ([errno.ENETUNREACH] * 2, 1)],
)
def test_no_more_than_once_and_no_other(route, monkeypatch, failures, left):
    rest = refusing(monkeypatch, *failures)
    with pytest.raises(HostError):
        sockets.dial(route, 30, lambda closer: None)
    assert len(rest) == left
