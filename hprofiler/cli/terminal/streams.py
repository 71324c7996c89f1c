"""Robust standard streams.

They may be closed (cron, daemons), have a poor encoding, a reader that exits (`| head`), a full disk, or a
terminal that hangs up.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

closed: set[int] = set()
"""Descriptors that were closed at the start."""


def prepare() -> None:
    """Open all three, so that no file takes their descriptors, and make every character printable.

    If stdout was closed, `sys.stdout` stays None and prints nothing. Without stderr, print would write to
    stdout, which a script may read.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            closed.add(number)
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdout is not None:
        sys.stdout = _enduring(sys.stdout)
    sys.stderr = _enduring(sys.stderr)


def unwritten() -> OSError | None:
    """Why stdout failed; None if it did not, or if its reader exited."""
    failure = failed()
    return None if failure and failure.errno in (errno.EPIPE, errno.EIO) else failure


def failed() -> OSError | None:
    """Why stdout takes nothing any more; None if it does."""
    if sys.stdout is None:
        return None
    failure: OSError | None = None
    try:
        sys.stdout.flush()
    except OSError as error:  # a stream that was not prepared
        failure = error
    buffer = getattr(sys.stdout, "buffer", None)
    file = getattr(buffer, "raw", buffer)
    if isinstance(file, _Enduring):
        failure = file.failure
    return failure


class _Enduring(io.FileIO):
    """The raw file of a stream. After the first error everything is discarded; the first error is kept.

    The result of a command must not depend on who reads its output.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        while self.failure is None:
            try:
                # None: another process made the shared pipe or terminal non-blocking, and it is full.
                written: int | None = super().write(data)
                if written is not None:
                    return written
                select.select([], [self], [])
            except OSError as failure:
                self.failure = failure
        return memoryview(data).nbytes


def _enduring(stream: TextIO) -> TextIO:
    """A raw stream that never fails."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    number = stream.fileno()
    return io.TextIOWrapper(
        io.BufferedWriter(_Enduring(number)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or stream.write_through,
        write_through=stream.write_through,
    )


def is_terminal(stream: object) -> bool:
    """Whether a stream is a terminal; a closed one is None."""
    return isinstance(stream, io.TextIOBase) and stream.isatty()
