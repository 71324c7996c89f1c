"""Ending a run early: the first request keeps what was recorded, the second lets go of everything."""

from __future__ import annotations

import logging
import queue
import signal
import socket
import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List

AT_ONCE = 2
# How long the end of a block waits for an action that goes on, in seconds.
_LAST_ACTION = 2.0

_log = logging.getLogger(__name__)


class Stop:
    """Counts the requests to stop. `request` may be called from a signal handler: it takes no lock."""

    def __init__(self) -> None:
        self.level = 0
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._listeners: List[Callable[[int], None]] = []

    def request(self) -> None:
        """Stop; called again: at once."""
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
def on_interrupt(action: Callable[[], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C (SIGINT) calls `action` on a thread of its own and raises nothing.

    A KeyboardInterrupt may come up where Python throws exceptions away (a callback, a `__del__`) and be
    lost; and a main thread that is just going to sleep on a lock runs no handler before it is woken up.
    Only the main thread may set a handler; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    thread = threading.Thread(target=_hear, args=(heard, action), name="hprofiler-interrupt", daemon=True)
    thread.start()
    woken_before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    handler_before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler_before)
        signal.set_wakeup_fd(woken_before)
        told.close()
        thread.join(_LAST_ACTION)


def _hear(heard: socket.socket, action: Callable[[], None]) -> None:
    """Call `action` for each SIGINT that the interpreter writes down, as a byte, the moment it comes."""
    with heard:
        while numbers := heard.recv(64):
            for _ in range(numbers.count(signal.SIGINT)):
                try:
                    action()
                except Exception:  # the next one must be heard
                    _log.exception("Ctrl-C")
