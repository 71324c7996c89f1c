"""Lines and payloads over a channel. What comes in is hostile: sizes are bounded before a thing is kept."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional

from hprofiler.transports.base import Channel
from hprofiler.transports.text import printable

MAX_LINE = 16 << 20
MAX_MEMBERS = 400_000
PIECE = 256 << 10
_BIG_LINE = 1 << 20

# Python objects take many times the room of their JSON: big lines are decoded one at a time for all hosts.
_one_big_line = threading.Lock()


class BadEvent(ValueError):
    """What the agent sent breaks the protocol; the text says how."""


class Wire:
    """JSON lines with raw payloads, over a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._buffer = bytearray()
        self._writing = threading.Lock()

    def send(self, message: Mapping[str, Any], payload: Iterable[bytes] = ()) -> None:
        """Send one request; the lease thread and the worker take turns. Raises HostError."""
        line = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._writing:
            self._channel.write(line)
            for piece in payload:
                self._channel.write(piece)

    def line(self, limit: int = MAX_LINE) -> Optional[bytes]:
        """The next line without its newline; None at the end. BadEvent beyond `limit` bytes."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > limit:
                raise BadEvent(f"a line of more than {limit} bytes")
            piece = self._channel.read(PIECE)
            if not piece:
                return None
            self._buffer += piece
        if end > limit:
            raise BadEvent(f"a line of more than {limit} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def receive(self) -> Optional[Dict[str, Any]]:
        """The next event, an object with a `type`; None at the end. Raises BadEvent and HostError."""
        line = self.line()
        if line is None:
            return None
        if len(line) < _BIG_LINE:
            return decode(line)
        with _one_big_line:
            return decode(line)

    def payload(self, size: int) -> Iterator[bytes]:
        """Exactly `size` raw bytes in pieces; EOFError when the channel ends before."""
        while size > 0:
            piece = bytes(self._buffer[: min(size, PIECE)]) or self._channel.read(min(size, PIECE))
            if not piece:
                raise EOFError
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece


def decode(line: bytes) -> Dict[str, Any]:
    """A JSON object with a text member `type`, or BadEvent."""
    if line.count(b"{") + line.count(b"[") > MAX_MEMBERS:
        raise BadEvent("too many values in one line")
    try:
        event = json.loads(line, parse_int=_integer, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"not a JSON line: {printable(line[:60].decode('utf-8', 'replace'))!r}") from error
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise BadEvent("not a JSON object with a type")
    return event


def _integer(digits: str) -> int:
    if len(digits) > 20:  # reading a number of a million digits takes minutes
        raise ValueError("number too long")
    return int(digits)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
