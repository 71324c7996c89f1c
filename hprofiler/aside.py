"""Work on threads that nobody has to wait for: with a deadline, or many at once.

Python's own pools wait for all their threads, whatever happened; a server that hangs would hold Ctrl-C.
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, Union

T = TypeVar("T")
R = TypeVar("R")
_Answer = Tuple[int, Union[Tuple[R], BaseException]]


class TooLate(Exception):
    """It was not done in time. Its thread goes on until it notices."""


def within(seconds: float, work: Callable[[], R]) -> R:
    """What `work` gives or raises. TooLate after so many seconds."""
    return many(lambda _: work(), [None], 1, seconds)[0]


def many(
    work: Callable[[T], R], items: Sequence[T], at_once: int, seconds: Optional[float] = None
) -> List[R]:
    """What `work` gives for each item, in their order; the first that raises ends it."""
    left: SimpleQueue[Tuple[int, T]] = SimpleQueue()
    answers: SimpleQueue[_Answer[R]] = SimpleQueue()
    for numbered in enumerate(items):
        left.put(numbered)
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.is_set():
            try:
                number, item = left.get_nowait()
            except Empty:
                return
            try:
                answers.put((number, (work(item),)))
            except BaseException as error:  # it is raised where it is waited for
                answers.put((number, error))

    for _ in range(min(at_once, len(items))):
        threading.Thread(target=go_on, name="hprofiler-aside", daemon=True).start()
    try:
        return _gathered(answers, len(items), seconds)
    finally:
        stopped.set()


def _gathered(answers: SimpleQueue[_Answer[R]], count: int, seconds: Optional[float]) -> List[R]:
    found: Dict[int, R] = {}
    while len(found) < count:
        try:
            number, answer = answers.get(timeout=seconds)
        except Empty:
            raise TooLate from None
        if isinstance(answer, BaseException):
            raise answer
        (found[number],) = answer
    return [found[number] for number in range(count)]
