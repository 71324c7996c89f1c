"""One host over SSH."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import paramiko

from hprofiler.base.errors import ConnectionLost, HostError
from hprofiler.model import Host
from hprofiler.transport.base import SOME_SIGNAL, Channel, StderrTail, Transport
from hprofiler.transport.ssh.sockets import Attempt

if TYPE_CHECKING:
    from hprofiler.transport.ssh.connector import SshConnector

_LOST = "the connection was lost"


class SshTransport(Transport):
    """Made by `SshConnector.transport`."""

    def __init__(self, host: Host, connector: SshConnector) -> None:
        super().__init__(host, connector.options.become)
        self._timeout = connector.options.timeout
        self._connector = connector
        self._attempt = Attempt()
        self._link: paramiko.Transport | None = None

    def destination(self) -> str:
        return self._connector.destination(self.host)

    def _connect(self) -> None:
        self._link = self._connector.connect(self.host, self._attempt)

    def _start(self, command: str) -> Channel:
        if self._link is None:
            raise HostError("connect", "not connected")
        try:
            channel = self._link.open_session(timeout=self._timeout)
            channel.exec_command(command)
        except paramiko.ChannelException as error:
            raise HostError(
                "connect",
                f"sshd refuses to run a command: {error.text}",
                "check MaxSessions and ForceCommand on the host",
            ) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise ConnectionLost("connect", f"{_LOST}: {error}" if str(error) else _LOST) from error
        return _SshChannel(self, channel)

    def close(self) -> None:
        """Does not close channels one by one, because a hanging connection would delay that."""
        self._attempt.close()


class _SshChannel:
    def __init__(self, transport: SshTransport, channel: paramiko.Channel) -> None:
        self._transport = transport
        self._channel = channel
        self._stderr = StderrTail(channel.recv_stderr)
        self._let_go = False

    def write(self, data: bytes) -> None:
        try:
            self._channel.sendall(data)
        except (OSError, EOFError) as error:
            if self._lost():
                raise ConnectionLost("connect", _LOST) from error
            raise HostError("connect", "the command ended early") from error
        self._transport.bytes_sent += len(data)

    def read(self, size: int) -> bytes:
        try:
            data = self._channel.recv(size)
        except (OSError, EOFError) as error:
            raise ConnectionLost("connect", _LOST) from error
        self._transport.bytes_received += len(data)
        return data

    def _lost(self) -> bool:
        link = self._channel.transport
        return link is None or not link.is_active()

    def end_input(self) -> None:
        with contextlib.suppress(OSError, EOFError):  # it has ended already
            self._channel.shutdown_write()

    def stderr_tail(self) -> str:
        return self._stderr.text(wait=0.5)

    def exit_status(self, timeout: float) -> int | None:
        self._channel.status_event.wait(timeout)
        if self._channel.exit_status >= 0:
            return int(self._channel.exit_status)
        # The server closes the channel without a status if a signal ended the command.
        ended = self._channel.closed and not self._let_go and not self._lost()
        return SOME_SIGNAL if ended else None

    def close(self) -> None:
        self._let_go = True
        with contextlib.suppress(OSError, EOFError):  # the connection has gone before it
            self._channel.close()

    leave = close
