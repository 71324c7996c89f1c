"""Ctrl-C, SIGTERM and SIGHUP outside of runs."""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_told: list[int] = []
"""Signals that were raised as exceptions."""


class Told(KeyboardInterrupt):
    """Raised for SIGTERM and SIGHUP."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def at_once() -> None:
    """Make each of them end the program at once; nothing needs cleanup yet.

    Ignored signals (`nohup`) stay ignored. An exception could be swallowed by Python during the imports.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def as_exceptions() -> None:
    """From now on they raise KeyboardInterrupt; call after `at_once`."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _tell)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


def _tell(number: int, frame: FrameType | None) -> None:
    _told.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Told(number)


def number_of(error: BaseException) -> int | None:
    """The signal that caused an exception, directly or indirectly, or None.

    Native code may replace an exception without naming its cause.
    """
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or isinstance(cause, KeyboardInterrupt):
            break
        cause = cause.__cause__
    if not isinstance(cause, KeyboardInterrupt):
        return _told[-1] if _told else None
    return cause.number if isinstance(cause, Told) else signal.SIGINT
