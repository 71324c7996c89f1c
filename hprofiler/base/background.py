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


def within(seconds: float | None, work: Callable[[], R], unwanted: Callable[[R], object] | None = None) -> R:
    """What `work` gives or raises. TooLate after `seconds`, if any; `unwanted` gets what comes after all."""
    answers: SimpleQueue[_Result[R]] = SimpleQueue()
    settled = threading.Lock()  # by whoever is first: the answer, or the end of the wait

    def drop(answer: _Result[R]) -> None:
        if unwanted is not None and not isinstance(answer, BaseException):
            unwanted(*answer)

    def answer_once() -> None:
        answer = _tried(work)
        (answers.put if settled.acquire(blocking=False) else drop)(answer)

    _start(answer_once)
    try:
        answer = answers.get(timeout=seconds)
    except BaseException as error:  # an interruption, too, is the end of the wait
        if not settled.acquire(blocking=False):
            drop(answers.get())
        if isinstance(error, Empty):
            raise TooLate from None
        raise
    return _given(answer)


def many(work: Callable[[T], R], items: Sequence[T], at_once: int) -> list[R]:
    """What `work` gives for each item, in their order; the first that raises ends it."""
    left: SimpleQueue[tuple[int, T]] = SimpleQueue()
    answers: SimpleQueue[tuple[int, _Result[R]]] = SimpleQueue()
    for numbered in enumerate(items):
        left.put(numbered)
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.is_set():
            try:
                number, item = left.get_nowait()
            except Empty:
                return
            answers.put((number, _tried(partial(work, item))))

    for _ in range(min(at_once, len(items))):
        _start(go_on)
    try:
        return _gathered(answers, len(items))
    finally:
        stopped.set()


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


def _gathered(answers: SimpleQueue[tuple[int, _Result[R]]], count: int) -> list[R]:
    found: dict[int, R] = {}
    while len(found) < count:
        number, answer = answers.get()
        found[number] = _given(answer)
    return [found[number] for number in range(count)]


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
