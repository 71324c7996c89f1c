"""Whose time it is: what is kept here, on this machine, costs the host that sent it none of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LITTLE = 1.0  # seconds that are not worth a word


class OurTime:
    """Of one host; limits are asked about from any thread.

    `give_back` is told how many seconds of its limits were ours, and how many of these in the queue, once
    that is more than little, or a limit was over meanwhile.
    """

    def __init__(self, give_back: Callable[[float, float], None]) -> None:
        self._give_back = give_back
        self._lock = threading.Lock()
        self._since: float | None = None
        self._queues = False
        self._spent = 0.0
        self._queued = 0.0
        self._excused = False

    @contextmanager
    def ours(self) -> Iterator[None]:
        """In the block we are waited for: to convert, or for our own disk."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    @contextmanager
    def queue(self) -> Iterator[None]:
        """In the block, inside one of ours, what other hosts sent has its turn first."""
        self._go_on(queues=True)
        try:
            yield
        finally:
            self._go_on(queues=False)

    @contextmanager
    def theirs(self) -> Iterator[None]:
        """In the block, inside one of ours, the host is waited for."""
        self._end()
        try:
            yield
        finally:
            self._begin()

    def excuses(self, only_queue: bool = False) -> bool:
        """Whether a limit that is over now is none of the host's doing; then its time is given back."""
        with self._lock:
            excused = self._queues if only_queue else self._since is not None
            self._excused |= excused
            return excused

    def _begin(self) -> None:
        with self._lock:
            self._since = time.monotonic()

    def _go_on(self, queues: bool) -> None:
        """It stays ours: no limit that is over in between may see anything else."""
        with self._lock:
            self._count()
            self._since, self._queues = time.monotonic(), queues

    def _end(self) -> None:
        with self._lock:
            self._count()
            if self._spent < _LITTLE and not self._excused:
                return
            spent, queued = self._spent, self._queued
            self._spent, self._queued, self._excused = 0.0, 0.0, False
        self._give_back(spent, queued)

    def _count(self) -> None:
        assert self._since is not None
        seconds = time.monotonic() - self._since
        self._spent += seconds
        self._queued += seconds if self._queues else 0.0
        self._since, self._queues = None, False
