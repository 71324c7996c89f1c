"""Sockets to a host: direct or through a ProxyCommand. Closing one from another thread ends all waiting."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from typing import Callable

from hprofiler.errors import HostError
from hprofiler.transports.ssh import failures
from hprofiler.transports.ssh.route import Route

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
    for family, kind, protocol, _, address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
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
    """Small packets go at once; a peer that answers nothing for `seconds` counts as gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    patience = getattr(socket, "TCP_USER_TIMEOUT", None)
    if patience is not None:
        connection.setsockopt(socket.IPPROTO_TCP, patience, max(1000, int(seconds * 1000)))


def spawn_proxy(command: str, on_close: OnClose) -> socket.socket:
    """A ProxyCommand's stdin and stdout as a socket. Raises HostError."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                ["/bin/sh", "-c", "exec " + command],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        raise HostError("connect", f"cannot start the ProxyCommand: {error.strerror}") from error
    on_close(lambda: shut(ours))
    on_close(process.terminate)
    threading.Thread(target=process.wait, name="hprofiler-proxy", daemon=True).start()
    return ours


def shut(connection: socket.socket) -> None:
    """Close under whoever is waiting on it."""
    with contextlib.suppress(OSError):  # not connected, or not any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
