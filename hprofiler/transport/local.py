"""This machine: the same commands as over SSH, each in its own process group."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
from functools import partial

from hprofiler.base.errors import HostError
from hprofiler.transport.base import Channel, StderrTail, Transport


class LocalTransport(Transport):
    """Runs commands through /bin/sh, as the user who started hprofiler."""

    def destination(self) -> str:
        uid = os.geteuid()
        try:
            return f"{pwd.getpwuid(uid).pw_name} on this machine"
        except KeyError:
            return f"uid {uid} on this machine"

    def _connect(self) -> None:
        """Each command is a process of its own."""

    def _start(self, command: str) -> Channel:
        return _LocalChannel(self, command)


class _LocalChannel:
    """stdin and stdout are one socket pair: unlike a pipe it can be shut down while a thread reads."""

    def __init__(self, transport: LocalTransport, command: str) -> None:
        self._transport = transport
        self._left = False
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    ["/bin/sh", "-c", command],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C on the terminal is ours to handle, not the agent's
                )
        except OSError as error:
            self._socket.close()
            raise HostError("connect", f"cannot start /bin/sh: {error.strerror}") from error
        assert self._process.stderr is not None
        read = partial(os.read, self._process.stderr.fileno())
        self._stderr = StderrTail(read, ended=self._process.communicate)

    def write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise HostError("connect", f"the command ended early: {error.strerror}") from error
        self._transport.bytes_sent += len(data)

    def read(self, size: int) -> bytes:
        try:
            data = self._socket.recv(size)
        except ConnectionResetError:
            return b""  # it ended with some of its stdin unread
        except OSError as error:
            raise HostError("connect", f"cannot read from the command: {error.strerror}") from error
        self._transport.bytes_received += len(data)
        return data

    def end_input(self) -> None:
        with contextlib.suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_WR)

    def stderr_tail(self) -> str:
        return self._stderr.text(wait=0.5)

    def exit_status(self, timeout: float) -> int | None:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        with contextlib.suppress(OSError):  # not connected any more
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._process.poll() is None and not self._left:
            with contextlib.suppress(
                ProcessLookupError, PermissionError
            ):  # it has just ended, or is root's through sudo and ends with its stdin
                os.killpg(self._process.pid, signal.SIGTERM)

    def leave(self) -> None:
        self._left = True
        self.close()
