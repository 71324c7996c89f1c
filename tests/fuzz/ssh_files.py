"""Files of SSH: its configuration, and the keys of hosts."""

from __future__ import annotations

import fnmatch
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import paramiko.config

from hprofiler.model import Host
from hprofiler.transport.ssh import config_file
from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict
from hprofiler.transport.ssh.route import Route, RouteFinder, SshOptions
from tests.fuzz.invariants import of_file, ours

_HOST = Host("host", "host")
_SOME_KEY = b"\0" * 32
_NAMES = ("host", "[host]:2222")
_MOST_JUMPS = 3


class _Nobody:
    """Name servers that know nobody."""

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def getfqdn(self) -> str:
        return "here"

    def gethostbyname(self, name: str) -> str:
        raise socket.gaierror(name)

    def getaddrinfo(self, name: str, *_: object) -> None:
        raise socket.gaierror(name)


class _Programs:
    """What runs the commands of `Match exec`: none, and it is as if one was well done."""

    def run(self, command: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(ok=command == "true")


class _OneFile:
    """Names of files where there is no other than one: it may include itself."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def glob(self, pattern: str) -> list[str]:
        return [str(self._path)] if fnmatch.fnmatchcase(self._path.name, Path(pattern).name) else []


def ssh_config(data: bytes) -> None:
    """What a configuration says of the way to a host. Its `Match exec` runs nothing here."""

    def find(path: Path) -> None:
        with (
            mock.patch.object(config_file, "glob", _OneFile(path)),
            mock.patch.multiple(paramiko.config, invoke=_Programs(), socket=_Nobody()),
        ):
            finder = RouteFinder(SshOptions(config_path=path))
            route = finder.find(_HOST)
            for jump in route.jumps[:_MOST_JUMPS]:
                ours(partial(finder.find_jump, jump, ()))
        _check_route(route, path.with_name("known"))

    of_file(data, find)


def _check_route(route: Route, known: Path) -> None:
    """A key that is taken for the host's is known to be from then on."""
    assert 0 < route.port < 65536
    KnownHosts().add(known, route.known_as, "ssh-rsa", _SOME_KEY)
    assert KnownHosts().check([known], route.known_as, _SOME_KEY)[0] is Verdict.KNOWN


def known_hosts(data: bytes) -> None:
    """The keys that hosts have, and those that none may have."""

    def check(path: Path) -> None:
        before = [KnownHosts().check([path], name, _SOME_KEY)[0] for name in _NAMES]
        known = KnownHosts()
        for name in _NAMES:
            known.kinds([path], name)
        ours(lambda: known.revoked([path], _SOME_KEY))
        known.add(path, "another", "ssh-rsa", _SOME_KEY)
        now = KnownHosts()
        assert now.check([path], "another", _SOME_KEY)[0] in (Verdict.KNOWN, Verdict.REVOKED)
        assert before == [now.check([path], name, _SOME_KEY)[0] for name in _NAMES]

    of_file(data, check)
