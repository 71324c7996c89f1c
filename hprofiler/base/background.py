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


def within(seconds: float | None, work: Callable[[], R], unwanted: Callable[[R], object] | None = None) -> R:
    """Result of `work`. Raises TooLate after `seconds`; `unwanted` gets a late result."""
    answers: SimpleQueue[_Result[R]] = SimpleQueue()
    settled = threading.Lock()  # set by the result or by the deadline, whichever is first

    def drop(answer: _Result[R]) -> None:
        if unwanted is not None and not isinstance(answer, BaseException):
            unwanted(*answer)

    def answer_once() -> None:
        answer = _tried(work)
        (answers.put if settled.acquire(blocking=False) else drop)(answer)

    _start(answer_once)
    try:
        answer = answers.get(timeout=seconds)
    except BaseException as error:  # an interrupt ends the wait too
        if not settled.acquire(blocking=False):
            drop(answers.get())
        if isinstance(error, Empty):
            raise TooLate from None
        raise
    return _given(answer)


def many(work: Callable[[T], R], items: Sequence[T], at_once: int) -> list[R]:
    """Results of `work` for each item, in order; the first exception ends it."""
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
    except BaseException as error:  # raised by the waiting thread
        return error


def _given(answer: _Result[R]) -> R:
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
