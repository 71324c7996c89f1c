"""The interface of transports, which run commands on one host and exchange bytes with them."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
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
"""Programs that a container's image needs besides `sh` for sending and running the agent."""
OTHER_WAYS_IN = "use --debug-container IMAGE, or SSH to the node with --via ssh"
"""The remedy for an image that lacks them."""


class NoShell(HostError):
    """The container's image has no `sh`, or lacks some of `CONTAINER_TOOLS`."""


class Channel(Protocol):
    """One command running on a host.

    `read` and `write` block until another thread calls `close`. Both raise HostError (stage "connect")
    when the connection is lost.
    """

    def write(self, data: bytes) -> None:
        """Send all of `data` to the command's stdin."""

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of its stdout; b"" when it has ended."""

    def end_input(self) -> None:
        """Close its stdin, if the transport can."""

    def stderr_tail(self) -> str:
        """The last 4 KiB of its stderr. Waits for the rest of it, briefly, once stdout has ended."""

    def exit_status(self, timeout: float) -> int | None:
        """Its exit status, or minus the number of the signal that ended it (`SOME_SIGNAL` if unknown).

        None if it has not ended after `timeout` seconds, or if the connection was lost.
        """

    def close(self) -> None:
        """Close the channel, which ends the command; does not block. May be called twice, from any thread."""

    def leave(self) -> None:
        """Close the channel without ending a command that still has work to do."""


class Completed(NamedTuple):
    """The result of a short command."""

    exit_status: int | None
    stdout: bytes
    stderr: str


class Transport(ABC):
    """One host's connection. `become` is None or `sudo`: how the agent becomes root there.

    If a transport `leaves_nothing`, the agent is not kept for the next run. `inside` is the id of the
    container in which commands run, None on a host. `told`, if set, is called with ("connect", destination)
    and ("command", command line) before each is done.
    """

    leaves_nothing = False

    def __init__(self, host: Host, become: str | None = None) -> None:
        self.host = host
        self.become = become
        self.inside: str | None = None
        self.bytes_sent = 0
        self.bytes_received = 0
        self.told: Callable[[str, str], None] | None = None
        self._lock = threading.Lock()
        self._channels: list[Channel] = []
        self._closed = threading.Event()

    @abstractmethod
    def destination(self) -> str:
        """The user and the address to which `connect` connects. Raises as `connect` does."""

    def connect(self) -> None:
        """Raises HostError with stage "connect", the reason and the remedy."""
        if self.told:
            try:
                destination = self.destination()
            except HostError:  # the options are not usable
                self._tell("connect", self.host.address)
                raise
            self._tell("connect", destination)
        self._connect()

    @abstractmethod
    def _connect(self) -> None: ...

    def open(self, command: str) -> Channel:
        """Start a command line for the connecting user's shell."""
        self._tell("command", command)
        channel = self._start(command)
        with self._lock:
            self._channels.append(channel)
            closed = self._closed.is_set()
        if closed:
            channel.close()
        return channel

    @abstractmethod
    def _start(self, command: str) -> Channel: ...

    def run(self, command: str, stdin: bytes, timeout: float) -> Completed:
        """Run a short command to its end. HostError when it takes longer or writes more than 16 MiB."""
        return run_to_end(self.open(command), stdin, timeout)

    def last(self, command: str) -> None:
        """Run a short cleanup command that reads nothing; ignore failures.

        It may be called after `close` if each command has its own connection.
        """
        self._tell("command", command)
        with contextlib.suppress(HostError):
            wait_a_little(self._start(command))

    def close(self) -> None:
        """Close the connection and wake all waiting threads. May be called twice, from any thread."""
        with self._lock:
            self._closed.set()
            channels, self._channels = self._channels, []
        for channel in channels:
            channel.close()

    def _tell(self, what: str, detail: str) -> None:
        if self.told:
            self.told(what, detail)


class StderrTail:
    """Reads a stream to its end on its own thread, so that it never fills up; keeps the last 4 KiB."""

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
        """The kept text; waits up to `wait` seconds for the stream's end."""
        self._thread.join(wait)
        return bytes(self._kept).decode("utf-8", "replace").strip()


def run_to_end(channel: Channel, stdin: bytes, timeout: float) -> Completed:
    """Feed a command, collect what it writes, wait for its end."""
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
        stdout = bytearray()
        while piece := channel.read(_PIECE):
            stdout += piece
            if len(stdout) > RUN_OUTPUT:
                limit = f"{RUN_OUTPUT >> 20} MiB"
                raise HostError("connect", f"the output of the command is larger than {limit}")
        status = channel.exit_status(timeout)
        if expired.is_set():
            raise HostError("connect", f"the command did not end within {timeout:.3g} s")
        return Completed(status, bytes(stdout), channel.stderr_tail())
    except HostError as error:
        if expired.is_set():
            raise HostError(error.stage, f"the command did not end within {timeout:.3g} s") from error
        raise
    finally:
        timer.cancel()
        channel.close()


def wait_a_little(channel: Channel) -> None:
    """Wait some seconds for the end of a command."""
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
    with contextlib.suppress(HostError):  # it may end before it has read everything
        for start in range(0, len(stdin), _PIECE):
            channel.write(stdin[start : start + _PIECE])
        channel.end_input()
