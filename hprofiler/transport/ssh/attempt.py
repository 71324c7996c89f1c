"""A connection in the making, or made, that any thread can end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Attempt:
    """`close` runs what `on_close` was given, last first; what is given later runs at once."""

    def __init__(self, since: float | None = None) -> None:
        """`since` when (monotonic) somebody has been waiting for it, if not only from now on."""
        self.since = time.monotonic() if since is None else since
        self.complaint: Callable[[], str] = str  # what a ProxyCommand wrote on its stderr
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def on_close(self, closer: Callable[[], None]) -> None:
        with self._lock:
            self._closers.append(closer)
            late = self.closed.is_set()
        if late:
            closer()

    def close(self) -> None:
        with self._lock:
            self.closed.set()
            closers, self._closers = self._closers, []
        for closer in reversed(closers):
            closer()
