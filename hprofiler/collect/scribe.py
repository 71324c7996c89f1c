"""Who writes the lines of a record: a file system that hangs holds nobody for longer than a while."""

from __future__ import annotations

import contextlib
import errno
import queue
import threading
import time
from typing import IO

PATIENCE = 15.0
"""How long a line is waited for at most, in seconds: hosts wait meanwhile."""
_SHARE = 0.1
"""Of the time that goes by so much may be spent waiting for lines that are slow."""
_SHORTEST = 0.1


class Scribe:
    """Writes to `out` on a thread of its own."""

    def __init__(self, out: IO[str], patience: float = PATIENCE) -> None:
        self._out = out
        self._patience = self._left = min(patience, PATIENCE)
        self._waited = time.monotonic()
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._written: queue.SimpleQueue[tuple[Exception | None, float]] = queue.SimpleQueue()
        self._begun = False

    def write(self, line: str) -> None:
        """Have the line in the file. By one thread at a time, and never again once it raised an error.

        Those are OSError and ValueError.
        """
        if not self._begun:
            try:
                threading.Thread(target=self._go_on, name="hprofiler-scribe", daemon=True).start()
                self._begun = True
            except RuntimeError:  # no thread is to be had: then it is waited for
                self._write(line)
                return
        began = time.monotonic()
        self._left = min(self._patience, max(_SHORTEST, self._left + _SHARE * (began - self._waited)))
        self._lines.put(line)
        try:
            error, seconds = self._written.get(timeout=self._left)
        except queue.Empty:
            raise OSError(errno.ETIMEDOUT, f"a line was not written within {self._left:.2g} s") from None
        self._waited = time.monotonic()
        self._left -= seconds  # and not for how long threads waited for a busy processor
        if error is not None:
            raise error

    def _go_on(self) -> None:
        while True:
            line = self._lines.get()
            began = time.monotonic()
            try:
                self._write(line)
            except (OSError, ValueError) as error:
                with contextlib.suppress(OSError):
                    self._out.close()
                self._written.put((error, time.monotonic() - began))
                return
            self._written.put((None, time.monotonic() - began))

    def _write(self, line: str) -> None:
        self._out.write(line)
        self._out.flush()
