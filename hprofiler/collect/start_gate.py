"""The common start: all hosts begin to sample together."""

from __future__ import annotations

import threading
import time


class StartGate:
    """Opens when every host is ready or failed, or `patience` seconds after the last one began to connect.

    A host that is ready later starts at once, and is late.
    """

    def __init__(self, hosts: int, patience: float) -> None:
        self._not_ready = hosts
        self._queued = hosts
        self._patience = patience
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._opened_at: float | None = None

    def connecting(self) -> None:
        """One more host has left the queue and connects."""
        with self._changed:
            self._queued -= 1
            if self._queued == 0:
                self._deadline = time.monotonic() + self._patience
                self._changed.notify_all()

    def leave(self) -> None:
        """One host is ready, or has failed."""
        with self._changed:
            self._not_ready -= 1
            if self._not_ready == 0:
                self.open()

    def wait(self) -> float:
        """Wait for the start as a host that is ready; returns the seconds by which it is late."""
        with self._changed:
            late = 0.0 if self._opened_at is None else time.monotonic() - self._opened_at
            self.leave()
            while self._opened_at is None:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and left <= 0:
                    self.open()
                else:
                    self._changed.wait(None if left is None else min(left, 1.0))
        return late

    def open(self) -> None:
        """Let everyone go who is ready."""
        with self._changed:
            if self._opened_at is None:
                self._opened_at = time.monotonic()
                self._changed.notify_all()
