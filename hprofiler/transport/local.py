"""This machine: the same commands as over SSH, in a process group of their own."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import threading

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.base import Channel, Completed, StderrTail, run_to_end, wait_a_little


class LocalTransport:
    """Runs commands through /bin/sh, as the user who started hprofiler."""

    def __init__(self, host: Host, become: str | None = None) -> None:
        self.host = host
        self.become = become
        self.leaves_nothing = False
        self.inside: str | None = None
        self.bytes_sent = 0
        self.bytes_received = 0
        self._lock = threading.Lock()
        self._channels: list[_LocalChannel] = []
        self._closed = False

    def destination(self) -> str:
        uid = os.geteuid()
        try:
            return f"{pwd.getpwuid(uid).pw_name} on this machine"
        except KeyError:
            return f"uid {uid} on this machine"

    def connect(self) -> None:
        """Nothing to do: we are here."""

    def open(self, command: str) -> Channel:
        channel = _LocalChannel(self, command)
        with self._lock:
            self._channels.append(channel)
            closed = self._closed
        if closed:
            channel.close()
        return channel

    def run(self, command: str, stdin: bytes, timeout: float) -> Completed:
        return run_to_end(self.open(command), stdin, timeout)

    def last(self, command: str) -> None:
        with contextlib.suppress(HostError):
            wait_a_little(self.open(command))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            channels, self._channels = self._channels, []
        for channel in channels:
            channel.close()


class _LocalChannel:
    """stdin and stdout are one socket pair: unlike pipes it can be shut down under a reading thread."""

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
        self._stderr = StderrTail(self._read_stderr, ended=self._reap)

    def _read_stderr(self, size: int) -> bytes:
        assert self._process.stderr is not None
        return os.read(self._process.stderr.fileno(), size)

    def _reap(self) -> None:
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

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
