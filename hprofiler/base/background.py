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


def interruptibly(work: Callable[[], R]) -> R:
    """Result of `work`. A signal ends the wait; native code would delay it."""
    return within(None, work)


def within(seconds: float | None, work: Callable[[], R]) -> R:
    """What `work` gives or raises. TooLate after `seconds`, if any."""
    answers: SimpleQueue[_Result[R]] = SimpleQueue()
    _start(partial(_answer, answers, work))
    try:
        return _given(answers.get(timeout=seconds))
    except Empty:
        raise TooLate from None


def many(work: Callable[[T], R], items: Sequence[T], at_once: int) -> list[R]:
    """Results of `work` for each item, in order; the first exception ends it."""
    return list(in_order(work, items, at_once))


def in_order(work: Callable[[T], R], items: Sequence[T], at_once: int) -> Iterator[R]:
    """Results of `work` for each item, in order; at most `many` are running or not yet taken."""
    waiting: deque[SimpleQueue[_Result[R]]] = deque()
    for item in items:
        if len(waiting) == at_once:
            yield _given(waiting.popleft().get())
        answer: SimpleQueue[_Result[R]] = SimpleQueue()
        _start(partial(_answer, answer, partial(work, item)))
        waiting.append(answer)
    while waiting:
        yield _given(waiting.popleft().get())


def _answer(answer: SimpleQueue[_Result[R]], work: Callable[[], R]) -> None:
    answer.put(_tried(work))


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="hprofiler-aside", daemon=True).start()


def _tried(work: Callable[[], R]) -> _Result[R]:
    try:
        return (work(),)
    except BaseException as error:  # raised by the waiting thread
        return error


def _given(answer: _Result[R]) -> R:
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
