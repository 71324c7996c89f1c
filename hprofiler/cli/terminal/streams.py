"""The standard streams, whatever this was started with, and whatever becomes of them.

They may be closed (cron, daemons), know few letters, have a reader who goes away (`| head`), a full disk
behind them, or a terminal that hangs up.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

closed: set[int] = set()
"""The numbers of those that were closed as this began."""


def prepare() -> None:
    """Have all three open, so that no file takes their numbers, and no letter that cannot be printed.

    Where stdout was closed `sys.stdout` stays None: to print is to say nothing then. Without a stderr print
    would take stdout, which may be read by a script.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            closed.add(number)
            _lead_nowhere(number)
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
    """Why stdout did not take all it was told; None where it did, and where its reader or terminal left."""
    if sys.stdout is None:
        return None
    failure: OSError | None = None
    try:
        sys.stdout.flush()
    except OSError as error:  # one that was not prepared
        failure = error
    buffer = getattr(sys.stdout, "buffer", None)
    file = getattr(buffer, "raw", buffer)
    if isinstance(file, _Enduring):
        failure = file.failure
    return None if failure and failure.errno in (errno.EPIPE, errno.EIO) else failure


class _Enduring(io.FileIO):
    """The file below a stream. What it cannot take is lost, and all that follows; the first reason is kept.

    What a command finds, writes and returns must not depend on who reads what it says meanwhile.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: Any) -> int:
        while self.failure is None:
            try:
                # None: somebody else made a pipe or terminal non-blocking that is shared, and it is full.
                written: int | None = super().write(data)
                if written is not None:
                    return written
                select.select([], [self], [])
            except OSError as failure:
                self.failure = failure
        return memoryview(data).nbytes


def _enduring(stream: TextIO) -> TextIO:
    """The same stream, by the same rules, which never fails."""
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


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def is_terminal(stream: object) -> bool:
    """Whether somebody sits there; one that was closed is None."""
    return isinstance(stream, io.TextIOBase) and stream.isatty()
