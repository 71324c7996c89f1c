"""Jump hosts: each is connected to once, for all hosts behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.route import Route
from hprofiler.transport.ssh.sockets import Attempt

if TYPE_CHECKING:
    import paramiko

    Connect = Callable[["Hops", Attempt], paramiko.Transport]

Hops = tuple[Route, ...]


@dataclass
class _Jump:
    """The connection to one jump host: `making` until it is a `link` or a `failure`."""

    making: Attempt | None = None
    link: paramiko.Transport | None = None
    failure: BaseException | None = None
    failed_at: float = 0.0
    waiting: int = 0


class Jumps:
    """The connections to the jump hosts of a run; from any thread."""

    def __init__(self, connect: Connect) -> None:
        """`connect` makes one; it takes as long as it likes, and ends when its attempt is closed."""
        self._connect = connect
        self._jumps: dict[Hops, _Jump] = {}
        self._attempts: list[Attempt] = []
        self._changed = threading.Condition()

    def link(self, hops: Hops, attempt: Attempt) -> paramiko.Transport:
        """The connection to the last of `hops`, for the host behind it whose attempt this is.

        Where it cannot be made that is told to all whose attempts had begun by then, if only to queue: of
        very many hosts behind a dead one none waits for a try of its own. Who comes later tries anew.
        """
        attempt.on_close(self._wake)
        with self._changed:
            jump = self._jumps.setdefault(hops, _Jump())
            jump.waiting += 1
        try:
            return self._await(hops, jump, attempt)
        finally:
            self._leave(jump)

    def _await(self, hops: Hops, jump: _Jump, attempt: Attempt) -> paramiko.Transport:
        with self._changed:
            while not attempt.closed.is_set():
                if jump.link is not None and jump.link.is_active():
                    return jump.link
                if jump.failure is not None and attempt.since <= jump.failed_at:
                    raise _told(jump.failure)
                if jump.making is None:
                    self._begin(hops, jump, attempt.since)
                self._changed.wait()
        raise failures.closed(hops[-1])

    def _begin(self, hops: Hops, jump: _Jump, since: float) -> None:
        """Connect on a thread of its own: it is done for all who wait, and each of them may go."""
        making = Attempt(since)
        threading.Thread(
            target=self._make, args=(hops, jump, making), name="hprofiler-jump", daemon=True
        ).start()
        jump.making = making
        self._attempts.append(making)

    def _make(self, hops: Hops, jump: _Jump, making: Attempt) -> None:
        link: paramiko.Transport | None = None
        failure: BaseException | None = None
        try:
            link = self._connect(hops, making)
        except BaseException as error:  # it is raised where it is waited for
            failure = error
        with self._changed:
            if jump.making is making:
                jump.making, jump.link, jump.failure = None, link, failure
                jump.failed_at = time.monotonic()
                self._changed.notify_all()

    def _leave(self, jump: _Jump) -> None:
        """What nobody waits for any more is not gone on with."""
        with self._changed:
            jump.waiting -= 1
            unwanted = None if jump.waiting else jump.making
            if unwanted:
                jump.making = None
        if unwanted:
            unwanted.close()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Close them all."""
        with self._changed:
            attempts, self._attempts = self._attempts, []
        for attempt in attempts:
            attempt.close()


def _told(failure: BaseException) -> BaseException:
    """One for each host: who raises an exception writes into it."""
    if not isinstance(failure, HostError):
        return failure
    told = HostError(failure.stage, f"jump host: {failure.reason}", failure.remedy)
    told.__cause__ = failure
    return told
