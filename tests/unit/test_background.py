"""Work that somebody waits for, or not any more."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from hprofiler.base.background import TooLate, in_order, within

PATIENCE = 60.0


def test_what_is_done_in_time_or_not() -> None:
    assert within(PATIENCE, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(PATIENCE, lambda: 1 // 0)
    go_on = threading.Event()
    with pytest.raises(TooLate):
        within(0.05, lambda: go_on.wait(PATIENCE))
    go_on.set()


def test_in_order_a_few_are_begun_before_the_first_is_taken() -> None:
    begun: SimpleQueue[int] = SimpleQueue()
    go_on = threading.Event()

    def work(item: int) -> int:
        begun.put(item)
        assert go_on.wait(PATIENCE)
        return item * 2

    found = in_order(work, range(100), 3)
    first = threading.Thread(target=lambda: taken.append(next(found)))
    taken: list[int] = []
    first.start()
    assert sorted(begun.get(timeout=PATIENCE) for _ in range(3)) == [0, 1, 2]
    go_on.set()
    first.join()
    ahead = []
    for number in found:
        taken.append(number)
        ahead.append(3 + begun.qsize() - len(taken))
    assert taken == list(range(0, 200, 2)) and max(ahead) <= 3
