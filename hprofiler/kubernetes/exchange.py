"""Requests with bounds in bytes and time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from hprofiler.base.background import TooLate, within
from hprofiler.kubernetes.http import httpx

SWITCHING = 101


class TooLong(Exception):
    """The answer is too long."""


class Bounds(NamedTuple):
    """Limits of an answer: bytes, and seconds for the whole request."""

    size: int
    seconds: float


class Packed(Exception):
    """The answer is compressed, so its length is not known."""


Answer = tuple[httpx.Response, bytes]


class Exchange:
    """Sends requests with the client's login. Thread-safe.

    The library would read the whole body of a refused login; here it is bounded.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._login = client.auth or httpx.Auth()
        self._no_login: Any = httpx.Auth() if client.auth else httpx.USE_CLIENT_DEFAULT

    def send(self, request: httpx.Request, bounds: Bounds) -> Answer:
        """An answer and its body. An upgraded connection stays open, others are closed.

        Raises TooLate, TooLong, Packed, and what the library and the login raise.
        """
        flow = self._login.sync_auth_flow(request)
        try:
            request = next(flow)
            while True:
                work = partial(self._send_once, request, bounds)
                answer, body = within(bounds.seconds, work)
                try:
                    request = flow.send(answer)
                except StopIteration:
                    return answer, body
        finally:
            flow.close()

    def _send_once(self, request: httpx.Request, bounds: Bounds) -> Answer:
        end = time.monotonic() + bounds.seconds
        answer = self._client.send(request, stream=True, auth=self._no_login)
        if answer.status_code == SWITCHING:
            if time.monotonic() > end:  # nobody waits for it any more
                answer.close()
            return answer, b""
        try:
            return answer, b"".join(_bounded(answer, bounds.size, end))
        finally:
            answer.close()


def _bounded(answer: httpx.Response, most: int, end: float) -> Iterator[bytes]:
    """The pieces of a body."""
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Packed
    size = 0
    for piece in answer.iter_raw():
        size += len(piece)
        if size > most:
            raise TooLong
        if time.monotonic() > end:  # the deadline has passed
            raise TooLate
        yield piece
