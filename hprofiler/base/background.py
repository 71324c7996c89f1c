"""Work on threads that nobody has to wait for: with a deadline, or many at once.

Python's own pools wait for all their threads, whatever happened; a server that hangs would hold Ctrl-C.
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
    """It was not done in time. Its thread goes on until it notices."""


def interruptibly(work: Callable[[], R]) -> R:
    """What `work` gives or raises. A signal ends the wait for it: native code hears none until it is done."""
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
    """What `work` gives for each item, in their order; the first that raises ends it."""
    return list(in_order(work, items, at_once))


def in_order(work: Callable[[T], R], items: Sequence[T], at_once: int) -> Iterator[R]:
    """What `work` gives for each item, in their order; so many are at work, or done and not taken yet."""
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
    except BaseException as error:  # it is raised where it is waited for
        return error


def _given(answer: _Result[R]) -> R:
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
