"""What a profiler costs, from many short comparisons on a machine where others work too."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

TRIMMED = 0.2
"""The part of the comparisons that is left out at either end: somebody else worked meanwhile."""
SURE = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Estimate:
    """A trimmed mean and the interval that has the truth in it 95 times of 100."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} % ({self.low:.1f} to {self.high:.1f})"

    @property
    def farthest(self) -> float:
        """How far from zero it may be."""
        return max(abs(self.low), abs(self.high))


def estimate(values: Sequence[float]) -> Estimate:
    """Of seven values or more; by Tukey and McLaughlin, with the spread of what is left and of its ends."""
    ordered, cut = sorted(values), int(TRIMMED * len(values))
    kept = ordered[cut : len(ordered) - cut]
    mean = statistics.fmean(kept)
    drawn_in = [min(max(value, kept[0]), kept[-1]) for value in ordered]
    error = statistics.stdev(drawn_in) / ((1 - 2 * TRIMMED) * math.sqrt(len(ordered)))
    reach = _student(len(kept) - 1) * error
    return Estimate(mean, mean - reach, mean + reach)


def _student(freedom: int) -> float:
    """The quantile of Student's distribution that belongs to `SURE`, near enough for five values or more."""
    return SURE + (SURE**3 + SURE) / (4 * freedom)


def percent_lost(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """What is lost from the first rate of each pair to the second."""
    return estimate([100 * (1 - after / before) for before, after in pairs])


def verdict(lost: float, noise: float, promised: float) -> bool | None:
    """Whether a promise holds for what is lost at most; None where nothing at all seems to cost as much."""
    return None if lost >= promised <= noise else lost < promised
