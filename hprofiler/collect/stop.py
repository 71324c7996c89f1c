"""Ending a run early: the first request keeps what was recorded, the second lets go of everything.

Ctrl-C (SIGINT), SIGTERM and SIGHUP are such requests. A terminal that hangs up says so more than once, by the
kernel and by the shell, and nobody means "at once" by it: SIGHUP is never the second request.
"""

from __future__ import annotations

import logging
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AT_ONCE = 2
# How long the end of a block waits for an action that goes on, in seconds.
_LAST_ACTION = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_log = logging.getLogger(__name__)


class Stop:
    """Counts the requests to stop. `request` may be called from a signal handler: it takes no lock."""

    def __init__(self) -> None:
        self.level = 0
        self.signal = 0
        """The signal that asked first; 0 while nobody has."""
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._listeners: list[Callable[[int], None]] = []

    def request(self, number: int = signal.SIGINT) -> None:
        """Stop; called again: at once."""
        if not self.signal:
            self.signal = number
        elif number == signal.SIGHUP:
            return
        self._requests.put(True)

    @contextmanager
    def telling(self, listener: Callable[[int], None]) -> Iterator[None]:
        """While the block runs, `listener` hears each new level (1, 2) on a thread of its own."""
        thread = threading.Thread(target=self._tell, args=(listener,), name="hprofiler-stop", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._requests.put(False)
            thread.join(_LAST_ACTION)

    def _tell(self, listener: Callable[[int], None]) -> None:
        while self._requests.get():
            self.level += 1
            try:
                listener(self.level)
            except Exception:  # the next request must be heard
                _log.exception("telling of stop %d", self.level)


@contextmanager
def on_interrupt(action: Callable[[int], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C (SIGINT), SIGTERM and SIGHUP call `action` with the signal's number.

    It is called on a thread of its own, and nothing is raised: a KeyboardInterrupt may come up where Python
    throws exceptions away (a callback, a `__del__`) and be lost; and a main thread that is just going to
    sleep on a lock runs no handler before it is woken up. Those that are ignored (`nohup`, a script's
    background job) stay so. Only the main thread may set a handler; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    thread = threading.Thread(target=_hear, args=(heard, action), name="hprofiler-interrupt", daemon=True)
    thread.start()
    woken_before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    handlers_before = {one: signal.getsignal(one) for one in _SIGNALS}
    for number, before in handlers_before.items():
        if before is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    try:
        yield
    finally:
        for number, before in handlers_before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(woken_before)
        told.close()
        thread.join(_LAST_ACTION)


def _hear(heard: socket.socket, action: Callable[[int], None]) -> None:
    """Call `action` for each signal that the interpreter writes down, as a byte, the moment it comes."""
    with heard:
        while numbers := heard.recv(64):
            for number in filter(_SIGNALS.__contains__, numbers):
                try:
                    action(number)
                except Exception:  # the next one must be heard
                    _log.exception("signal %d", number)
