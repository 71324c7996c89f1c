"""Jump hosts: each is connected to once, for all hosts behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import paramiko

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.route import Route
from hprofiler.transport.ssh.sockets import Attempt

Connect = Callable[["Hops", Attempt], paramiko.Transport]

Hops = tuple[Route, ...]
_CLOSED_AFTER = 0.2


@dataclass
class _Jump:
    """The connection to one jump host. The thread with the lock connects; the others wait for the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    link: paramiko.Transport | None = None
    failure: HostError | None = None
    failed_at: float = 0.0


class Jumps:
    """The connections to the jump hosts of a run. Thread-safe."""

    def __init__(self, connect: Connect) -> None:
        """`connect` makes a connection, without a time limit; closing its attempt ends it."""
        self._connect = connect
        self._jumps: dict[Hops, _Jump] = {}
        self._attempts: list[Attempt] = []
        self._lock = threading.Lock()

    def link(self, hops: Hops, attempt: Attempt) -> paramiko.Transport:
        """The connection to the last of `hops`. `attempt` is that of the host behind it.

        A failure counts for every host that was waiting already, so that many hosts behind a dead jump host
        fail at once. Hosts that come later try again.
        """
        with self._lock:
            jump = self._jumps.setdefault(hops, _Jump())
        while not jump.lock.acquire(timeout=_CLOSED_AFTER):
            if attempt.closed.is_set():
                raise failures.closed(hops[-1])
        try:
            if jump.link is not None and jump.link.is_active():
                return jump.link
            if jump.failure is not None and attempt.since <= jump.failed_at:
                raise jump.failure.at(jump.failure.stage)
            making = Attempt(attempt.since)
            with self._lock:
                self._attempts.append(making)
            made = threading.Event()
            attempt.on_close(lambda: None if made.is_set() else making.close())
            try:
                jump.link = self._connect(hops, making)
                return jump.link
            except HostError as error:
                if attempt.closed.is_set():
                    raise failures.closed(hops[-1]) from error
                jump.failure = HostError(error.stage, f"jump host: {error.reason}", error.remedy, error.code)
                jump.failed_at = time.monotonic()
                raise jump.failure from error
            finally:
                made.set()
        finally:
            jump.lock.release()

    def close(self) -> None:
        with self._lock:
            attempts, self._attempts = self._attempts, []
        for attempt in attempts:
            attempt.close()
