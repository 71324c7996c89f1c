"""Sockets to a host: direct or through a ProxyCommand. Closing one from another thread ends all waiting."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from hprofiler.base.errors import HostError
from hprofiler.transport.base import StderrTail
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.route import Route

_RTO_MAX_MS = getattr(socket, "TCP_RTO_MAX_MS", 44)
_LONGEST_SILENCE = 2000
OnClose = Callable[[Callable[[], None]], None]
_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


class Attempt:
    """A connection, or an attempt to connect. Any thread can end it.

    `close` calls the functions given to `on_close`, last first. A function given later is called at once.
    """

    def __init__(self, since: float | None = None) -> None:
        """`since` is the monotonic time at which the wait for it began; by default now."""
        self.since = time.monotonic() if since is None else since
        self.complaint: Callable[[], str] = str  # what a ProxyCommand wrote on its stderr
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def on_close(self, closer: Callable[[], None]) -> None:
        with self._lock:
            self._closers.append(closer)
            late = self.closed.is_set()
        if late:
            closer()

    def close(self) -> None:
        with self._lock:
            self.closed.set()
            closers, self._closers = self._closers, []
        for closer in reversed(closers):
            closer()


def dial(route: Route, seconds: float, on_close: OnClose) -> socket.socket:
    """A TCP connection within `seconds`. `on_close` gets a function that ends the wait. Raises HostError."""
    deadline = time.monotonic() + seconds
    failure: OSError = TimeoutError()
    try:
        addresses = socket.getaddrinfo(route.hostname, route.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        known = error if isinstance(error, OSError) else socket.gaierror()
        raise failures.socket_failure(known, route, seconds) from error
    for address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            return _connected(address, left, seconds, on_close)
        except OSError as error:
            failure = error
    raise failures.socket_failure(failure, route, seconds)


def _connected(address: _Address, left: float, seconds: float, on_close: OnClose) -> socket.socket:
    family, kind, protocol, _, where = address
    connection = socket.socket(family, kind, protocol)
    on_close(lambda: shut(connection))
    try:
        connection.settimeout(left)
        connection.connect(where)
        tune(connection, seconds)
        return connection
    except OSError:
        connection.close()
        raise


def tune(connection: socket.socket, seconds: float) -> None:
    """Send small packets at once, and give up a peer that does not answer for `seconds`.

    After a link was down, the kernel retransmits every 2 s (Linux 6.15). Older kernels double the intervals:
    a link that was down for 20 s may be noticed half a minute later, when the agent's lease is over.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, _RTO_MAX_MS, _LONGEST_SILENCE)
    patience = getattr(socket, "TCP_USER_TIMEOUT", None)
    if patience is not None:
        connection.setsockopt(socket.IPPROTO_TCP, patience, max(1000, int(seconds * 1000)))


def spawn_proxy(command: str, on_close: OnClose) -> tuple[socket.socket, StderrTail]:
    """A ProxyCommand's stdin and stdout as a socket, and its stderr. Raises HostError."""
    try:
        ours, process = _proxy(command)
    except OSError as error:
        remedy = failures.FILES_REMEDY if error.errno in failures.FILES_LACK else ""
        reason = f"cannot start the ProxyCommand: {error.strerror}"
        raise HostError("connect", reason, remedy, code="proxy-failed") from error
    on_close(lambda: shut(ours))
    on_close(process.terminate)
    assert process.stderr is not None
    return ours, StderrTail(partial(os.read, process.stderr.fileno()), ended=process.communicate)


def _proxy(command: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            return ours, subprocess.Popen(
                ["/bin/sh", "-c", "exec " + command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise


def shut(connection: socket.socket) -> None:
    """Close it, and wake threads that wait on it."""
    with contextlib.suppress(OSError):  # not connected, or not any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
