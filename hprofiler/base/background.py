"""Work on background threads: with a deadline, or in parallel.

Python's pools wait for all their threads at exit, so a hanging server would block Ctrl-C.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class TooLate(Exception):
    """The deadline passed. The thread continues until it notices."""


def start(work: Callable[[], R]) -> Future[R]:
    """Begin `work` on a daemon thread."""
    future: Future[R] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised by the waiting thread
            future.set_exception(error)

    threading.Thread(target=run, name="hprofiler-background", daemon=True).start()
    return future


def result_within(future: Future[R], seconds: float) -> R:
    """Its result, or TooLate after `seconds`. (A TimeoutError is the work's own.)"""
    done, _ = concurrent.futures.wait([future], seconds)
    if not done:
        raise TooLate
    return future.result()


def within(seconds: float, work: Callable[[], R]) -> R:
    """Result of `work`, or TooLate after `seconds`."""
    return result_within(start(work), seconds)


def interruptibly(work: Callable[[], R]) -> R:
    """Result of `work`. A signal ends the wait; native code would delay it."""
    return start(work).result()


def in_order(work: Callable[[T], R], items: Sequence[T], at_once: int) -> Iterator[R]:
    """Results of `work` for each item, in order; at most `at_once` are running or not yet taken."""
    waiting: deque[Future[R]] = deque()
    for item in items:
        if len(waiting) == at_once:
            yield waiting.popleft().result()
        waiting.append(start(partial(work, item)))
    while waiting:
        yield waiting.popleft().result()
