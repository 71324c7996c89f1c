"""Ending a run early: the first request keeps what was recorded, the second lets go of everything.

Ctrl-C (SIGINT), SIGTERM and SIGHUP are such requests. When a terminal hangs up, kernel and shell may both
send SIGHUP. Nobody means "at once" by that, so SIGHUP is never the second request.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AT_ONCE = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Counts the requests to stop. `request` may be called from a signal handler: it takes no lock."""

    def __init__(self, ends_well: bool = False) -> None:
        """With `ends_well` the first request is the end as planned."""
        self._ends_well = ends_well
        self.asked = False
        """Whether a request ended it as planned."""
        self.level = 0
        self.signal = 0
        """The signal that came first; 0 while none came."""
        self.when = 0.0
        """When it was first asked to end, in seconds since 1970; 0 while it was not."""

    def request(self, number: int = signal.SIGINT) -> None:
        """Stop; called again: at once."""
        if number == signal.SIGHUP and (self.signal or self.asked):
            return
        self.when = self.when or time.time()
        if self._ends_well and not self.level:
            self.asked = True
        elif not self.signal:
            self.signal = number
        self.level += 1

    def finish(self) -> None:
        """End the recording as planned: what was recorded is all that was wanted."""
        self.when = self.when or time.time()
        self.level = self.level or 1

    @property
    def finished(self) -> bool:
        """It ended as planned, before its time limit; nothing interrupted it."""
        return self.level > 0 and not self.signal


@contextmanager
def on_interrupt(action: Callable[[int], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C (SIGINT), SIGTERM and SIGHUP call `action` with the signal's number.

    Nothing is raised. Ignored signals (`nohup`, a script's background job) stay ignored. Only the main thread
    may set a handler; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: action(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
