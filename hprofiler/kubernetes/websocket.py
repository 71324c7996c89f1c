"""WebSockets of the API server: one reader, several writers; any thread may close."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from hprofiler.kubernetes.http import httpcore, httpx
from hprofiler.kubernetes.problems import KubernetesError

HALF_CLOSE = "v5.channel.k8s.io"
"""Only this protocol can close a command's stdin."""
PROTOCOLS = (HALF_CLOSE, "v4.channel.k8s.io")
T = TypeVar("T")
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455, for the answer to the key
_READ = 256 << 10
_LOOK = 1.0


class Lost(OSError):
    """The connection was lost."""


class WebSocket:
    """Messages over a connection. TLS libraries allow one call at a time, so the socket never blocks, and
    waiting happens outside the lock."""

    def __init__(
        self, response: httpx.Response, connection: socket.socket, leading: bytes, protocol: str
    ) -> None:
        self.protocol = protocol
        self._response = response
        self._socket = connection
        self._leading = leading
        self._frames = Connection(ConnectionType.CLIENT)
        self._calling = threading.Lock()
        self._sending = threading.Lock()
        self.closed = False
        connection.setblocking(False)

    def send(self, data: bytes) -> None:
        """One message. Raises Lost."""
        self._send(BytesMessage(data=data))

    def messages(self) -> Iterator[tuple[bytes, bool]]:
        """Pieces of messages, each with whether its message ends there. Raises Lost."""
        while piece := self._read():
            try:
                self._frames.receive_data(piece)
                for event in self._frames.events():
                    if isinstance(event, BytesMessage):
                        yield bytes(event.data), event.message_finished
                    elif isinstance(event, Ping):
                        self._send(event.response())
                    elif isinstance(event, CloseConnection):
                        with contextlib.suppress(Lost):
                            self._send(event.response())
                        return
            except (RemoteProtocolError, LocalProtocolError) as error:
                raise Lost(f"the API server broke the protocol: {error}") from error

    def close(self) -> None:
        """Close, and wake readers and writers. Thread-safe, repeatable."""
        if self._sending.acquire(blocking=False):  # otherwise it would follow half a message
            # It does not wait: the goodbye is skipped if the buffer is full.
            with self._calling, contextlib.suppress(OSError, LocalProtocolError):
                if not self.closed:
                    self._socket.send(self._frames.send(CloseConnection(code=1000)))
            self._sending.release()
        with self._calling:
            self.closed = True
            with contextlib.suppress(OSError):  # it may be disconnected already
                self._socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the descriptor; called by the reader when it is done."""
        self.close()
        with self._calling:
            self._response.close()

    def _send(self, event: Event) -> None:
        with self._sending:
            try:
                left = memoryview(self._frames.send(event))
            except LocalProtocolError as error:
                raise Lost("the connection is closed") from error
            while left:
                piece = left
                left = left[self._when_ready(lambda: self._socket.send(piece), select.POLLOUT) :]  # noqa: B023

    def _read(self) -> bytes:
        """b"" at the end, also after `close`."""
        if self._leading:
            leading, self._leading = self._leading, b""
            return leading
        try:
            return self._when_ready(lambda: self._socket.recv(_READ), select.POLLIN)
        except Lost:
            if self.closed:
                return b""
            raise

    def _when_ready(self, call: Callable[[], T], usual: int) -> T:
        """Call the socket until it can do it; `usual` is what it has to wait for without TLS."""
        while True:
            with self._calling:
                if self.closed:
                    raise Lost("the connection is closed")
                try:
                    return call()
                except BlockingIOError:
                    wanted = usual
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
                except OSError as error:
                    raise Lost(error.strerror or str(error)) from error
            self._wait(wanted)

    def _wait(self, wanted: int) -> None:
        """Wait until the socket is ready or closed; polling guards against a lost wake-up."""
        poll = select.poll()
        with self._calling:
            if self.closed:
                return
            poll.register(self._socket.fileno(), wanted)
        poll.poll(_LOOK * 1000)


def opening_headers() -> dict[str, str]:
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": ", ".join(PROTOCOLS),
    }


def upgraded(response: httpx.Response) -> WebSocket:
    """The connection of an upgraded answer. Raises KubernetesError."""
    stream = response.extensions.get("network_stream")
    protocol = response.headers.get("sec-websocket-protocol", "")
    connection: socket.socket | None = stream.get_extra_info("socket") if stream else None
    encrypted = stream.get_extra_info("ssl_object") is not None if stream else False
    key = response.request.headers["sec-websocket-key"] + _GUID
    accepted = base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest()).decode()
    agreed = response.headers.get("sec-websocket-accept") == accepted
    if stream is None or connection is None or protocol not in PROTOCOLS or not agreed:
        response.close()
        raise KubernetesError(
            f"the API server uses an unknown protocol for exec ({protocol[:50]!r})",
            "use SSH to the nodes: --via ssh",
        )
    if encrypted and not isinstance(connection, ssl.SSLSocket):
        response.close()
        raise KubernetesError("exec does not work through an https:// proxy", "use an http:// proxy")
    return WebSocket(response, connection, _leading(stream), protocol)


def _leading(stream: httpcore.NetworkStream) -> bytes:
    """Data that arrived together with the headers."""
    try:
        return stream.read(_READ, timeout=0.001)
    except httpcore.TimeoutException:
        return b""
    except httpcore.NetworkError as error:
        raise Lost(str(error)) from error
