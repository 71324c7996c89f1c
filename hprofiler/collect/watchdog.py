"""Time limits of many hosts, kept by one thread that sleeps until the next one is due."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

from hprofiler.collect.beside import Beside


class Watchdog:
    """A context manager; the thread ends with the block."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._condition = threading.Condition()
        self._due: list[tuple[float, int]] = []
        self._actions: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()
        self._ended = False
        self._thread = threading.Thread(target=self._watch, name="hprofiler-watchdog", daemon=True)

    def after(self, seconds: float, action: Callable[[], None]) -> int:
        """Call `action` in `seconds`, on another thread; gives the number that `cancel` takes."""
        with self._condition:
            number = next(self._numbers)
            self._actions[number] = action
            heapq.heappush(self._due, (time.monotonic() + seconds, number))
            if self._due[0][1] == number:
                self._condition.notify()
        return number

    def cancel(self, number: int | None) -> None:
        """Forget an action; nothing happens where it has run already."""
        with self._condition:
            self._actions.pop(number if number is not None else -1, None)

    def _watch(self) -> None:
        with self._condition:
            while not self._ended:
                if not self._due:
                    self._condition.wait()
                    continue
                due, number = self._due[0]
                left = due - time.monotonic()
                if number in self._actions and left > 0:
                    self._condition.wait(left)
                    continue
                heapq.heappop(self._due)
                action = self._actions.pop(number, None)
                if action:  # it may block: closing a connection can
                    self._beside.do(action, "hprofiler-expired")

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._thread.join()
