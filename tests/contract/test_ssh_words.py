"""What an SSH server says of itself is text in our messages, and nothing that a terminal obeys."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from tests.contract.sshd import SSHD, Site, make_key, refused
from tests.lab import procs

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)")
OWNED = "\x1b]0;owned\x07\x1b[2J\u202e"


class Server(paramiko.ServerInterface):
    """sshd has no setting for this: who names methods and asks for more with words of a terminal's."""

    def __init__(self, takes: int) -> None:
        self._takes = takes

    def get_allowed_auths(self, username: str) -> str:
        return f"publickey,{OWNED}"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return self._takes


class Listening:
    """One at a loopback port, that answers one connection."""

    address = "127.0.0.1"

    def __init__(self, key: Path, takes: int) -> None:
        self._socket = socket.create_server((self.address, 0))
        self.port = self._socket.getsockname()[1]
        self._key = paramiko.Ed25519Key.from_private_key_file(str(key))
        self._takes = takes
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def known_hosts_line(self) -> str:
        return f"[{self.address}]:{self.port} {self._key.get_name()} {self._key.get_base64()}\n"

    def _serve(self) -> None:
        with self._socket.accept()[0] as peer:
            link = paramiko.Transport(peer)
            link.add_server_key(self._key)
            link.start_server(server=Server(self._takes))
            link.join(procs.PATIENCE)
            link.close()

    def close(self) -> None:
        self._socket.close()
        self._thread.join(procs.PATIENCE)


@pytest.fixture(
    params=[paramiko.AUTH_FAILED, paramiko.AUTH_PARTIALLY_SUCCESSFUL], ids=["refuses", "wants more"]
)
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listening]:
    made = Listening(make_key(tmp_path / "of_the_host"), request.param)
    yield made
    made.close()


def test_the_methods_that_a_server_names(site: Site, listening: Listening) -> None:
    site.knows(listening)  # type: ignore[arg-type]
    error = refused(site, listening)  # type: ignore[arg-type]
    assert "owned" in error.reason
    assert error.reason.isprintable(), error.reason
