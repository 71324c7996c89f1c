"""The limit that nothing of a host's renews: of all that it sends after its recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hprofiler.base.errors import HostError
from hprofiler.collect.our_time import OurTime
from hprofiler.collect.watchdog import Watchdog


class LastLimit:
    """Of one host; from any thread. `expired` is told why it is given up, unless `our_time` excuses it then.

    What is our own doing puts it off, by as much again at most: how dear it is to keep what a host sends is
    the host's to choose. How long the queue is, is not: what was waited for there has no such end.
    """

    def __init__(self, watchdog: Watchdog, expired: Callable[[HostError], None], our_time: OurTime) -> None:
        self._watchdog = watchdog
        self._expired = expired
        self._our_time = our_time
        self._lock = threading.Lock()
        self._number: int | None = None
        self._due = float("inf")
        self._why: HostError | None = None
        self._to_give = 0.0

    def within(self, seconds: float, why: HostError) -> None:
        """It is over in so many seconds. Of several limits the first one counts."""
        with self._lock:
            due = time.monotonic() + seconds
            if due < self._due:
                self._to_give = seconds
                self._set(due, why)

    def put_off(self, seconds: float, queued: float) -> None:
        """So much of the time until now was not the host's, the queue's part included."""
        with self._lock:
            if self._why is not None:
                given = min(seconds - queued, self._to_give)
                self._to_give -= given
                self._set(self._due + queued + given, self._why)

    def _set(self, due: float, why: HostError) -> None:
        self._watchdog.cancel(self._number)
        self._number = self._watchdog.after(due - time.monotonic(), lambda: self._expire(due, why))
        self._due, self._why = due, why

    def _expire(self, due: float, why: HostError) -> None:
        with self._lock:
            if due != self._due:
                return  # all came, or another limit, in the very moment
            all_given = self._to_give <= 0
        if self._our_time.excuses(only_queue=all_given):
            return
        with self._lock:
            if due != self._due:
                return  # what was ours came to its end meanwhile, and was given back
        self._expired(why)

    def cancel(self) -> None:
        """All has come."""
        with self._lock:
            self._watchdog.cancel(self._number)
            self._due, self._why = float("-inf"), None
