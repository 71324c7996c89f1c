"""A few of the loops that `make chaos` goes a thousand times: a JVM that is recorded again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab import hosts
from tests.lab.chaos import loops
from tests.lab.chaos.holdings import Holdings, Trend, growth
from tests.needed import lacking


@pytest.mark.parametrize(("engine", "count"), [("async-profiler", 25), ("perf", 12)])
def test_a_jvm_holds_no_more_after_being_recorded_again_and_again(engine: str, count: int) -> None:
    reason = hosts.why_not()
    if reason:
        lacking(reason)
    words, unharmed = loops.tried(17, engine, count)
    assert unharmed, words


def held(memory: int, pace: float = 1.0) -> Holdings:
    return Holdings(memory=memory, native=0, threads=9, files=4, mappings=200, libraries=30, pace=pace)


def test_what_grows_is_told_from_what_varies() -> None:
    noise = (0, 70_000, -50_000, 20_000, -40_000)
    steady = [(loop, held(10**8 + noise[loop % 5])) for loop in range(1, 51)]
    assert growth(steady) is None
    leaking = [(loop, held(one.memory + 400_000 * loop)) for loop, one in steady]
    assert "memory" in (growth(leaking) or "")
    one_more = [(loop, replace(one, threads=9 + (loop > 25))) for loop, one in steady]
    assert growth(one_more) is None
    more_and_more = [(loop, replace(one, threads=9 + loop // 4)) for loop, one in steady]
    assert "threads" in (growth(more_and_more) or "")
    slowing = [(loop, held(10**8, 1.0 - 0.004 * loop)) for loop in range(1, 51)]
    assert "pace" in (growth(slowing) or "")


def test_a_trend_is_as_sure_as_its_points() -> None:
    points = [(loop, 2.0 * loop + 0.1 * (-1) ** loop) for loop in range(12)]
    trend, few = Trend.of(points), Trend.of(points[:4])
    assert 1.9 < trend.slope < 2.1 and trend.deviation < 0.1
    assert trend.surely_over(1.0) and not trend.surely_over(2.0)
    assert few.slope > 1.9 and few.deviation < 0.1 and not few.surely_over(1.0)
