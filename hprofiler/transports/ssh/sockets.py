"""Sockets to a host: direct or through a ProxyCommand. Closing one from another thread ends all waiting."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import time
from functools import partial
from typing import Callable, Tuple

from hprofiler.errors import HostError
from hprofiler.transports.base import StderrTail
from hprofiler.transports.ssh import failures
from hprofiler.transports.ssh.route import Route

_RTO_MAX_MS = getattr(socket, "TCP_RTO_MAX_MS", 44)
_LONGEST_SILENCE = 2000
OnClose = Callable[[Callable[[], None]], None]


def dial(route: Route, seconds: float, on_close: OnClose) -> socket.socket:
    """A TCP connection within `seconds`. `on_close` gets what ends the wait. Raises HostError."""
    deadline = time.monotonic() + seconds
    failure: OSError = TimeoutError()
    try:
        addresses = socket.getaddrinfo(route.hostname, route.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        known = error if isinstance(error, OSError) else socket.gaierror()
        raise failures.socket_failure(known, route, seconds) from error
    for number, (family, kind, protocol, _, address) in enumerate([*addresses, *addresses]):
        left = deadline - time.monotonic()
        # The kernel asks for a neighbour for three seconds only, in which a link may have been down.
        if left <= 0 or (number >= len(addresses) and failure.errno != errno.EHOSTUNREACH):
            break
        connection = socket.socket(family, kind, protocol)
        on_close(lambda connection=connection: shut(connection))  # type: ignore[misc]
        try:
            connection.settimeout(left)
            connection.connect(address)
            tune(connection, seconds)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failures.socket_failure(failure, route, seconds)


def tune(connection: socket.socket, seconds: float) -> None:
    """Small packets go at once; a peer that answers nothing for `seconds` counts as gone.

    A link that was down is tried every 2 s where the kernel can (Linux 6.15), else at doubled intervals: one
    of 20 s may then be noticed half a minute later only, when the agent's lease is over.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, _RTO_MAX_MS, _LONGEST_SILENCE)
    patience = getattr(socket, "TCP_USER_TIMEOUT", None)
    if patience is not None:
        connection.setsockopt(socket.IPPROTO_TCP, patience, max(1000, int(seconds * 1000)))


def spawn_proxy(command: str, on_close: OnClose) -> Tuple[socket.socket, StderrTail]:
    """A ProxyCommand's stdin and stdout as a socket, and what it complains of. Raises HostError."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                ["/bin/sh", "-c", "exec " + command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        raise HostError("connect", f"cannot start the ProxyCommand: {error.strerror}") from error
    on_close(lambda: shut(ours))
    on_close(process.terminate)
    assert process.stderr is not None
    return ours, StderrTail(partial(os.read, process.stderr.fileno()), ended=process.communicate)


def shut(connection: socket.socket) -> None:
    """Close under whoever is waiting on it."""
    with contextlib.suppress(OSError):  # not connected, or not any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
