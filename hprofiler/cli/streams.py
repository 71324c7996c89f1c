"""The standard streams, whatever this was started with: closed ones (cron, daemons), and narrow encodings."""

from __future__ import annotations

import io
import os
import sys
from typing import Set

closed: Set[int] = set()
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
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def is_terminal(stream: object) -> bool:
    """Whether somebody sits there; one that was closed is None."""
    return isinstance(stream, io.TextIOBase) and stream.isatty()
