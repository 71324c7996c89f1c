"""Lines and payloads over a channel. Input is not trusted: sizes are checked before anything is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec

from hprofiler.agent.messages import BadEvent, Event, decode
from hprofiler.agent.requests import Request
from hprofiler.base.errors import HostError
from hprofiler.transport.base import Channel

MAX_LINE = 16 << 20
PIECE = 256 << 10


class Wire:
    """JSON lines with raw payloads, over a channel that can be replaced.

    `received` counts the bytes since `count`. When a channel ends, `lost` is called with its exception and
    returns when there is a new channel. `ended` is set when nothing more can arrive.
    """

    def __init__(self, channel: Channel) -> None:
        self.received = 0
        self.lost: Callable[[HostError | None], None] | None = None
        self.ended = threading.Event()
        self._channel = channel
        self._buffer = bytearray()
        self._writing = threading.Lock()

    def send(self, request: Request, payload: Iterable[bytes] = ()) -> None:
        """Send one request; the lease thread and the worker take turns. Raises HostError."""
        try:
            line = msgspec.json.encode(request) + b"\n"
        except UnicodeEncodeError as error:  # an argument of the command line that is not UTF-8
            raise HostError(
                "connect", f"the request is not valid text: {error}", code="bad-request"
            ) from error
        with self._writing:
            self._channel.write(line)
            for piece in payload:
                self._channel.write(piece)

    def count(self) -> None:
        """Start to count received bytes."""
        self.received = len(self._buffer)

    def go_on(self, other: Wire) -> None:
        """Continue with the other wire's channel, and with what it has received."""
        with self._writing:
            self._channel = other._channel
        self._buffer += other._buffer
        self.received += len(other._buffer)

    def _fill(self, size: int = PIECE) -> bool:
        """Wait for more, `size` bytes at most; False at the end."""
        before = len(self._buffer)
        while len(self._buffer) == before:
            error: HostError | None = None
            piece = b""
            try:
                piece = self._channel.read(size)
            except HostError as raised:
                error = raised
            if piece:
                self._buffer += piece
                self.received += len(piece)
            elif self.lost is not None:
                self.lost(error)
            else:
                self.ended.set()
                if error:
                    raise error
                return False
        return True

    def line(self, limit: int = MAX_LINE) -> bytes | None:
        """The next line without its newline; None at the end. BadEvent beyond `limit` bytes."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > limit:
                raise BadEvent(f"a line of more than {limit} bytes")
            if not self._fill():
                return None
        if end > limit:
            raise BadEvent(f"a line of more than {limit} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def receive(self) -> Event | None:
        """The next event; None at the end. Raises BadEvent and HostError."""
        line = self.line()
        return None if line is None else decode(line)

    def payload(self, size: int) -> Iterator[bytes]:
        """Exactly `size` raw bytes in pieces; EOFError when the channel ends before."""
        while size > 0:
            if not self._buffer and not self._fill(min(size, PIECE)):
                raise EOFError
            piece = bytes(self._buffer[: min(size, PIECE)])
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece
