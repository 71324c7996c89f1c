"""The starting line: all hosts begin to sample together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class StartGate:
    """Opens when each of `hosts` hosts is ready or will never be, or when the slowest had time enough.

    `patience` is called once, when the last host has got its turn to connect: from there on a host
    that is ready waits for a limited time only.
    """

    def __init__(self, hosts: int, patience: Callable[[], None] = lambda: None) -> None:
        self._missing = hosts
        self._queued = hosts
        self._patience = patience
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self._opened_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether some host has started."""
        return self._opened.is_set()

    def under_way(self) -> None:
        """One more host is no longer queued."""
        with self._lock:
            self._queued -= 1
            last = self._queued == 0
        if last:
            self._patience()

    def leave(self) -> None:
        """One host is ready, or will never be."""
        with self._lock:
            self._missing -= 1
            last = self._missing == 0
        if last:
            self.open()

    def wait(self) -> float:
        """Wait for the start as one that is ready; gives the seconds by which this host is late."""
        late = time.monotonic() - self._opened_at if self._opened.is_set() else 0.0
        self.leave()
        self._opened.wait()
        return late

    def open(self) -> None:
        """Let everyone go who is ready."""
        with self._lock:
            if not self._opened.is_set():
                self._opened_at = time.monotonic()
                self._opened.set()
