"""What a transport is: a way to run commands on one host and to talk to them in bytes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from hprofiler.base.errors import HostError
from hprofiler.model import Host

STDERR_TAIL = 4096
SOME_SIGNAL = -1000
RUN_OUTPUT = 16 << 20
_PIECE = 64 << 10
_LAST_SECONDS = 5.0


CONTAINER_TOOLS = ("cat", "chmod", "head", "rm", "uname", "wc")
"""Programs that a container's image needs beside `sh`, so that the agent can be sent there and run."""
OTHER_WAYS_IN = "use --debug-container IMAGE, or SSH to the node with --via ssh"
"""What to do about an image that lacks them."""


class NoShell(HostError):
    """The container's image has no `sh`, or lacks some of `CONTAINER_TOOLS`."""


class Channel(Protocol):
    """One command running on a host.

    `read` and `write` block; another thread sets them free with `close`. Both raise HostError
    (stage "connect") when the connection is lost.
    """

    def write(self, data: bytes) -> None:
        """Send all of `data` to the command's stdin."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of its stdout; b"" when it has ended."""

    def end_input(self) -> None:
        """Close its stdin, where the transport can."""

    def stderr_tail(self) -> str:
        """The last 4 KiB of its stderr. Waits for the rest of it, briefly, once stdout has ended."""

    def exit_status(self, timeout: float) -> int | None:
        """Its exit status, or minus the number of the signal that ended it; `SOME_SIGNAL`: not known which.

        None if it has not ended after `timeout` seconds, or nobody will ever know: the connection was lost.
        """

    def close(self) -> None:
        """Let go of the command; never blocks for long, may be called twice and from any thread."""

    def leave(self) -> None:
        """Let go of a command that has said all, and may have something to do yet."""


class Completed(NamedTuple):
    """What a short command gave back."""

    exit_status: int | None
    stdout: bytes
    stderr: str


class Transport(Protocol):
    """One host's connection. `become` is None or `sudo`: how the agent gets to be root there.

    Where a transport `leaves_nothing` the agent is not kept for the next run. `inside` is the id of the
    container in which commands run, None on a host.
    """

    host: Host
    become: str | None
    leaves_nothing: bool
    inside: str | None
    bytes_sent: int
    bytes_received: int

    def destination(self) -> str:
        """As whom and where to `connect` goes, for the record. Raises as `connect` does."""

    def connect(self) -> None:
        """Raises HostError with stage "connect", the reason and the remedy."""

    def open(self, command: str) -> Channel:
        """Start a command line for the connecting user's shell."""

    def run(self, command: str, stdin: bytes, timeout: float) -> Completed:
        """Run a short command to its end. HostError when it takes longer or writes more than 16 MiB."""

    def last(self, command: str) -> None:
        """Run a short command that reads nothing, whatever becomes of it, to take away what was put there.

        Where a transport `leaves_nothing` that can be done when it is closed, too.
        """

    def close(self) -> None:
        """Close the connection and free whoever is blocked on it. May be called twice, from any thread."""


class StderrTail:
    """Reads a stream to its end on a thread of its own, so that it never fills up; keeps the last 4 KiB."""

    def __init__(self, read: Callable[[int], bytes], ended: Callable[[], object] = lambda: None) -> None:
        """`read(size)` gives b"" or raises OSError at the end; then `ended` is called."""
        self._kept = bytearray()
        self._read = read
        self._ended = ended
        self._thread = threading.Thread(target=self._drain, name="hprofiler-stderr", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        try:
            while piece := self._read(_PIECE):
                self._kept += piece
                del self._kept[:-STDERR_TAIL]
        except (OSError, ValueError):
            pass
        self._ended()

    def text(self, wait: float = 0.0) -> str:
        """What is kept; waits up to `wait` seconds for the stream's end."""
        self._thread.join(wait)
        return bytes(self._kept).decode("utf-8", "replace").strip()


def run_to_end(channel: Channel, stdin: bytes, timeout: float) -> Completed:
    """Feed a command, collect what it writes, wait for its end (the shared half of every `Transport.run`)."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        channel.close()

    timer = threading.Timer(timeout, expire)
    timer.daemon = True
    timer.start()
    feeder = threading.Thread(target=_feed, args=(channel, stdin), name="hprofiler-stdin", daemon=True)
    feeder.start()
    try:
        stdout = _read_bounded(channel)
        status = channel.exit_status(timeout)
        if expired.is_set():
            raise HostError("connect", f"the command did not end within {timeout:.3g} s")
        return Completed(status, stdout, channel.stderr_tail())
    except HostError as error:
        if expired.is_set():
            raise HostError(error.stage, f"the command did not end within {timeout:.3g} s") from error
        raise
    finally:
        timer.cancel()
        channel.close()


def wait_a_little(channel: Channel) -> None:
    """Let a last command come to its end, for some seconds (the shared half of every `Transport.last`)."""
    timer = threading.Timer(_LAST_SECONDS, channel.close)
    timer.daemon = True
    timer.start()
    try:
        with contextlib.suppress(HostError):
            while channel.read(_PIECE):
                pass
    finally:
        timer.cancel()
        channel.close()


def _feed(channel: Channel, stdin: bytes) -> None:
    with contextlib.suppress(
        HostError
    ):  # a command may end before it has read everything; its reader tells how it went
        for start in range(0, len(stdin), _PIECE):
            channel.write(stdin[start : start + _PIECE])
        channel.end_input()


def _read_bounded(channel: Channel) -> bytes:
    collected = bytearray()
    while piece := channel.read(_PIECE):
        collected += piece
        if len(collected) > RUN_OUTPUT:
            raise HostError("connect", f"the output of the command is larger than {RUN_OUTPUT >> 20} MiB")
    return bytes(collected)
