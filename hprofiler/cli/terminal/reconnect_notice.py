"""Notices about lost hosts while hprofiler reconnects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hprofiler.collect import HostProgress


class Seeking:
    """Calls `tell` every few seconds, on a thread, while any host is lost.

    The last call has no lines: all hosts are back or given up.
    """

    def __init__(self, every: float, tell: Callable[[list[str]], None]) -> None:
        self._every = every
        self._tell = tell
        self._lost: dict[str, tuple[str, float, float]] = {}
        self._changed = threading.Condition()
        self._saying = False

    def hear(self, progress: HostProgress) -> bool:
        """Take in a step; returns whether the host had been lost."""
        with self._changed:
            if progress.stage != "lost":
                was = self._lost.pop(progress.host, None)
                self._changed.notify()
                return was is not None
            self._lost[progress.host] = (progress.detail, time.monotonic(), progress.seconds)
            if not self._saying:
                self._saying = True
                threading.Thread(target=self._say, name="hprofiler-seeking", daemon=True).start()
            return False

    def _say(self) -> None:
        with self._changed:
            while self._lost:
                self._tell(self._lines())
                self._changed.wait_for(lambda: not self._lost, self._every)
            self._tell([])
            self._saying = False

    def _lines(self) -> list[str]:
        """ "host3: the connection was lost; looking for its agent (12 s of 30)"."""
        now = time.monotonic()
        return [
            f"{host}: {reason}; looking for its agent ({min(now - since, seconds):.0f} s of {seconds:.0f})"
            for host, (reason, since, seconds) in self._lost.items()
        ]
