"""The lab's own way to its API server: plain JSON over one connection, so that tests need no other client."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

TIMEOUT = 30
CLONE_NEWNET = 0x40000000

Object = dict[str, Any]


class ApiError(Exception):
    """The API server refused; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Requests as one user to the API server that listens in a network namespace (that of process `pid`)."""

    def __init__(self, pid: int, address: str, authority: bytes, token: str) -> None:
        self._connection = _Inside(pid, address, authority)
        self._token = token

    def get(self, path: str) -> Object:
        return self.call("GET", path)

    def post(self, path: str, content: Mapping[str, Any]) -> Object:
        return self.call("POST", path, content)

    def patch(self, path: str, content: Mapping[str, Any]) -> Object:
        return self.call("PATCH", path, content, "application/merge-patch+json")

    def delete(self, path: str, content: Mapping[str, Any] | None = None) -> Object:
        return self.call("DELETE", path, content or {})

    def find(self, path: str) -> Object | None:
        """None when there is no such thing."""
        try:
            return self.get(path)
        except ApiError as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise

    def ready(self) -> bool:
        """Whether the API server answers yet."""
        try:
            self._send("GET", "/readyz", None, "")
            return self._connection.getresponse().read() == b"ok"
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return False

    def call(
        self,
        verb: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Object:
        """The object that the API server answers with. Raises ApiError."""
        try:
            self._send(verb, path, content, kind)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            self._connection.close()  # it was idle for too long
            self._send(verb, path, content, kind)
            response = self._connection.getresponse()
        answer: Object = json.loads(response.read())
        if response.status >= http.client.BAD_REQUEST:
            raise ApiError(response.status, str(answer.get("message")))
        return answer

    def _send(self, verb: str, path: str, content: Mapping[str, Any] | None, kind: str) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._connection.request(verb, path, None if content is None else json.dumps(content), headers)


class _Inside(http.client.HTTPSConnection):
    """HTTPS from within the network namespace of a process."""

    def __init__(self, pid: int, address: str, authority: bytes) -> None:
        self._trust = ssl.create_default_context(cadata=authority.decode())
        super().__init__(address, timeout=TIMEOUT, context=self._trust)
        self._pid = pid

    def connect(self) -> None:
        plain = connect_inside(self._pid, self.host, self.port)
        self.sock = self._trust.wrap_socket(plain, server_hostname=self.host)


def connect_inside(pid: int, address: str, port: int) -> socket.socket:
    """A TCP connection made in the network of process `pid`; a socket stays in the network it was made in."""
    made: Future[socket.socket] = Future()

    def enter_and_connect() -> None:
        try:
            with open(f"/proc/{pid}/ns/net") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(namespace.fileno(), CLONE_NEWNET):  # of this thread alone, which ends here
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            made.set_result(socket.create_connection((address, port), TIMEOUT))
        except OSError as failure:
            made.set_exception(failure)

    thread = threading.Thread(target=enter_and_connect)
    thread.start()
    thread.join()
    return made.result()
