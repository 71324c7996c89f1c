"""What Ctrl-C, SIGTERM and SIGHUP do to the program outside of runs."""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_told: list[int] = []
"""Those that became exceptions."""


class Told(KeyboardInterrupt):
    """The user, or the machine, says by another signal than Ctrl-C that it is enough."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def at_once() -> None:
    """From here on each of them ends the program quietly: nothing is begun yet that would have an end.

    One that is ignored (`nohup`, a script's background job) stays so.
    An exception might strike where Python tells of it and goes on, or makes another one of it.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def as_exceptions() -> None:
    """From here on they are KeyboardInterrupts, where `at_once` was called before."""
    for number in SIGNALS:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _tell)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


def _tell(number: int, frame: FrameType | None) -> None:
    _told.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else Told(number)


def number_of(error: BaseException) -> int | None:
    """The signal that an exception is of, also where another one was made of it; None where it is of none.

    Where native code asks a Python object for something, what is made of the answer may not tell its cause.
    """
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or isinstance(cause, KeyboardInterrupt):
            break
        cause = cause.__cause__
    if not isinstance(cause, KeyboardInterrupt):
        return _told[-1] if _told else None
    return cause.number if isinstance(cause, Told) else signal.SIGINT
