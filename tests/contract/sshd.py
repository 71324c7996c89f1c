"""A real sshd on loopback with keys of its own, and the client files that go with it."""

from __future__ import annotations

import getpass
import os
import random
import select
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.route import SshOptions
from hprofiler.transport.ssh.transport import SshTransport
from tests.lab import procs
from tests.lab.keys import make_key

SSHD = "/usr/sbin/sshd"


def free_port() -> int:
    """A port that nobody listens at, and that no connection is given as its own end by chance."""
    while True:
        port = random.randrange(*LISTENING)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


LISTENING = (20_000, 32_000)
"""Below the ports that Linux gives to connections."""


class Sshd:
    """One server; `log` is what it said so far."""

    def __init__(
        self,
        folder: Path,
        authorized: Path,
        extra: str = "",
        address: str = "127.0.0.1",
        port: int = 0,
        wrap: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.address = address
        self.port = port or free_port()
        self._wrap = wrap
        self.host_key = make_key(folder / "host_key")
        self.log: list[str] = []
        self._config = folder / "sshd_config"
        self._config.write_text(
            f"Port {self.port}\nListenAddress {address}\nHostKey {self.host_key}\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {authorized}\nStrictModes no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\n{extra}\n"
        )
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Sshd:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = subprocess.Popen(
            [*self._wrap, SSHD, "-D", "-e", "-f", str(self._config)],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        listening = threading.Event()
        threading.Thread(target=self._read_log, args=(self.process.stderr, listening), daemon=True).start()
        assert listening.wait(procs.PATIENCE) and self.process.poll() is None, (
            f"sshd did not start: {self.log}"
        )
        return self

    def _read_log(self, stream, listening: threading.Event) -> None:
        for line in stream:
            self.log.append(line.rstrip())
            if "Server listening" in line:
                listening.set()
        listening.set()

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(procs.PATIENCE)

    def kill_sessions(self, and_stop: bool = False) -> None:
        """Kill the server's children: what a crash of the host looks like from afar, without the silence.

        With `and_stop` nobody can connect again, before it is started.
        """
        assert self.process is not None
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        if and_stop:
            self.stop()
        for pid in listed.stdout.split():
            os.kill(int(pid), 9)

    def known_hosts_line(self) -> str:
        kind, key, *_ = self.host_key.with_name("host_key.pub").read_text().split()
        return f"[{self.address}]:{self.port} {kind} {key}\n"


class Site:
    """One user's files and any number of servers that let this user in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = getpass.getuser()
        self.key = make_key(folder / "id_test")
        self.authorized = folder / "authorized_keys"
        self.authorized.write_text(self.key.with_suffix(".pub").read_text())
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text("")
        self.config = folder / "config"
        self.config.write_text("")
        self._servers: list[Sshd] = []
        self._connectors: list[SshConnector] = []

    def server(self, name: str = "a", extra: str = "", known: bool = True, **more) -> Sshd:
        server = Sshd(self.folder / name, self.authorized, extra, **more).start()
        self._servers.append(server)
        if known:
            self.knows(server)
        return server

    def knows(self, server: Sshd) -> None:
        self.known_hosts.write_text(self.known_hosts.read_text() + server.known_hosts_line())

    def authorize(self, key: Path) -> None:
        public = key.with_name(key.name + ".pub").read_text()
        self.authorized.write_text(self.authorized.read_text() + public)

    def connector(self, ask=None, **options) -> SshConnector:
        """Everything comes from the site's own files: nothing of the machine's user."""
        own = {"identity": self.key, "config_path": self.config, "known_hosts": self.known_hosts}
        values = {**own, "timeout": procs.PATIENCE, **options}
        connector = SshConnector(SshOptions(**values), ask)
        self._connectors.append(connector)
        return connector

    def host(self, server: Sshd, name: str = "a") -> Host:
        return Host(name, server.address, self.user, server.port)

    def close(self) -> None:
        for connector in self._connectors:
            connector.close()
        for server in self._servers:
            server.stop()


def connected(site: Site, server: Sshd, **options: Any) -> SshTransport:
    """A transport that is connected."""
    transport = site.connector(**options).transport(site.host(server))
    transport.connect()
    return transport


def connect_together(transports: Sequence[SshTransport]) -> None:
    """All of them connect in the same moment; afterwards each of them runs a command."""
    with ThreadPoolExecutor(len(transports)) as pool:
        list(pool.map(SshTransport.connect, transports))
    assert all(transport.run("echo in", b"", 60).stdout == b"in\n" for transport in transports)


@contextmanager
def ssh_agent(socket_path: Path, key: Path) -> Iterator[None]:
    """An ssh-agent that holds a key and listens at a path."""
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket_path], stdout=subprocess.PIPE, text=True)
    try:
        assert agent.stdout and agent.stdout.readline()  # it listens once it has said so
        here = {**os.environ, "SSH_AUTH_SOCK": str(socket_path)}
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True, env=here)
        yield
    finally:
        agent.terminate()
        agent.wait(60)


def refused(site: Site, server: Sshd, **options: Any) -> HostError:
    """Why a connection did not come about."""
    with pytest.raises(HostError) as caught:
        connected(site, server, **options)
    assert caught.value.stage == "connect"
    return caught.value


def agents_of(server: Sshd) -> list[int]:
    """Handles (pidfd) of the agents that run under a server's sessions."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    parents, commands = {}, {}
    for row in listed.splitlines():
        pid, parent, command = row.split(None, 2)
        parents[int(pid)], commands[int(pid)] = int(parent), command
    return [
        os.pidfd_open(pid) for pid in commands if "/agent-" in commands[pid] and _under(pid, parents, server)
    ]


def _under(pid: int, parents: dict, server: Sshd) -> bool:
    while pid and pid != server.process.pid:
        pid = parents.get(pid, 0)
    return bool(pid)


def agents_ended(agents: list[int], timeout: float = 60.0) -> bool:
    """Whether there were agents, and all of them end in time."""
    ends = [bool(select.select([agent], [], [], timeout)[0]) for agent in agents]
    for agent in agents:
        os.close(agent)
    return bool(ends) and all(ends)
