"""Who tells a command's listener of each step: no visit waits for a reader who takes nothing."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_LAST_LINES = 2.0
"""How long the end waits for what is yet to be told, in seconds."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Teller(Generic[T]):
    """A context manager, whose thread calls `listener` with what `tell` got, one by one and in that order.

    One that fails is not told again. Where it takes nothing at the end, what it has not heard is dropped.
    """

    def __init__(self, listener: Callable[[T], None]) -> None:
        self._listener = listener
        self._untold: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="hprofiler-teller", daemon=True)

    def tell(self, what: T) -> None:
        """From any thread; does not wait."""
        self._untold.put(what)

    def _go_on(self) -> None:
        for what in iter(self._untold.get, None):
            if self._over.is_set():
                return
            try:
                self._listener(what)
            except Exception:  # a closed terminal must not lose a host
                _log.exception("telling of %s", what)
                return

    def __enter__(self) -> Teller[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._untold.put(None)
        self._thread.join(_LAST_LINES)
        self._over.set()  # the lines that follow are of others
