"""This machine as another one: a mount namespace with folders of its own, in which commands run."""

from __future__ import annotations

import shlex
import subprocess

from hprofiler.agent.session import AgentSession
from hprofiler.transport.local import LocalTransport
from tests.contract import real
from tests.unit.stand_in import HERE


class Machine:
    """Commands run in the namespace by `become`, say as another user; `setup` is run there before."""

    def __init__(self, setup: str, become: str) -> None:
        self.opened = 0
        """Commands that the last session opened."""
        self._become = become
        self._process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f"{setup} && echo ready && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def wrapped(self, command: str) -> str:
        enter = f"nsenter --mount=/proc/{self._process.pid}/ns/mnt"
        return f"exec {enter} {self._become} /bin/sh -c {shlex.quote(command)}"

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        command = self.wrapped(command)
        return subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)  # noqa: S602

    def sh(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def session(self, sudo: str | None = None, before: str = "", become: str = "") -> AgentSession:
        """A session that begins with `before`; `become` is a shell by which its commands run."""
        machine = self
        machine.opened = 0

        class Inside(LocalTransport):
            def open(self, command):
                machine.opened += 1
                command = before + command
                return super().open(machine.wrapped(become + shlex.quote(command) if become else command))

        return AgentSession.open(Inside(HERE, sudo), real.binaries())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
