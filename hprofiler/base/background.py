"""Work on background threads: with a deadline, or in parallel.

Python's pools wait for all their threads at exit, so a hanging server would block Ctrl-C.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_Result = tuple[R] | BaseException


class TooLate(Exception):
    """The deadline passed. The thread continues until it notices."""


def start(work: Callable[[], R]) -> Callable[[float | None], R]:
    """Begin `work`; returns a function that waits for its result (None: for good), or raises TooLate."""
    answer = _begin(work)

    def result(seconds: float | None) -> R:
        try:
            return _given(answer.get(timeout=seconds))
        except Empty:
            raise TooLate from None

    return result


def interruptibly(work: Callable[[], R]) -> R:
    """Result of `work`. A signal ends the wait; native code would delay it."""
    return start(work)(None)


def within(seconds: float, work: Callable[[], R]) -> R:
    """Result of `work`, or TooLate after `seconds`."""
    return start(work)(seconds)


def in_order(work: Callable[[T], R], items: Sequence[T], at_once: int) -> Iterator[R]:
    """Results of `work` for each item, in order; at most `at_once` are running or not yet taken."""
    waiting: deque[SimpleQueue[_Result[R]]] = deque()
    for item in items:
        if len(waiting) == at_once:
            yield _given(waiting.popleft().get())
        waiting.append(_begin(partial(work, item)))
    while waiting:
        yield _given(waiting.popleft().get())


def _begin(work: Callable[[], R]) -> SimpleQueue[_Result[R]]:
    """Starts `work` on a thread; its answer comes by the queue."""
    answer: SimpleQueue[_Result[R]] = SimpleQueue()
    run = partial(_answer, answer, work)
    threading.Thread(target=run, name="hprofiler-background", daemon=True).start()
    return answer


def _answer(answer: SimpleQueue[_Result[R]], work: Callable[[], R]) -> None:
    try:
        answer.put((work(),))
    except BaseException as error:  # raised by the waiting thread
        answer.put(error)


def _given(answer: _Result[R]) -> R:
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
