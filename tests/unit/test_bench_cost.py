"""The statistic of the bench's overhead: right without noise, unmoved by a few bad moments."""

from __future__ import annotations

import random

import pytest

from tests.bench.cost import estimate, percent_lost, verdict
from tests.bench.table import Row, without_verdict


def test_no_noise_is_no_doubt() -> None:
    lost = percent_lost([(200.0, 197.0)] * 30)
    assert (lost.mean, lost.low, lost.high) == pytest.approx((1.5, 1.5, 1.5))


def test_a_few_bad_moments_change_nothing() -> None:
    quiet = [1.0 + 0.01 * (number % 5) for number in range(30)]
    disturbed = [*quiet[:26], 40.0, -35.0, 60.0, 25.0]
    assert estimate(disturbed).mean == pytest.approx(estimate(quiet).mean, abs=0.02)
    assert estimate(disturbed).high < 1.1


def test_the_truth_is_in_the_interval() -> None:
    chance = random.Random(7)
    inside = 0
    for _ in range(400):
        seen = estimate([chance.gauss(1.3, 2.0) for _ in range(30)])
        inside += seen.low <= 1.3 <= seen.high
    assert 0.90 < inside / 400 < 0.99


def test_a_wide_interval_reaches_far() -> None:
    noise = estimate([-9.0, -6.0, -3.0, 0.0, 3.0, 6.0, 9.0, 12.0])
    assert noise.low < 0 < noise.high and noise.farthest > 4


@pytest.mark.parametrize(
    ("lost", "noise", "holds"),
    [(1.9, 0.2, True), (1.9, 5.0, True), (2.1, 0.2, False), (2.1, 1.9, False), (2.1, 2.0, None)],
)
def test_verdicts(lost: float, noise: float, holds: object) -> None:
    assert verdict(lost, noise, 2) is holds


def test_a_promise_that_nobody_could_measure_is_named() -> None:
    rows = [
        Row("a", "1 s", "2 s", True),
        Row("b", "not measured: no Spark", "3 s", None),
        Row("c", "9", "", None),
    ]
    assert without_verdict(rows) == ["b"]
