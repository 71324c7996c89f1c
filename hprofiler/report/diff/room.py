"""How much larger or smaller the shares are of what did not change, where something else did.

Shares add up to one: where something costs less, all else has a larger share without costing more.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

# Of so many samples a share tells how much larger or smaller it became; where nobody knows how many there
# were, a share of so much.
_SAMPLES = 20
_SHARE = 0.005
# One method does not speak for all others.
_MOST = 0.05
# Methods that tell speak for the others where they are so much of these.
_ENOUGH = 0.5
# Of fewer methods nobody speaks as of most.
_FEWEST = 3
# How much more the median of many varies than their mean.
_OF_A_MEDIAN = math.sqrt(math.pi / 2)


class Share(NamedTuple):
    """A method's share (0 to 1) before and after; `noise` is what chance makes of the change, if known."""

    name: str
    before: float
    after: float
    noise: float | None

    @property
    def middle(self) -> float:
        return (self.before + self.after) / 2


class Room:
    """How many times its share before the usual method has: the median of those that tell, by their shares.

    `before` and `after` are how many samples there are, 0 where nobody knows.
    """

    def __init__(self, shares: Sequence[Share], before: int, after: int) -> None:
        least = [_SAMPLES / samples if samples else _SHARE for samples in (before, after)]
        telling = [one for one in shares if one.before >= least[0] and one.after >= least[1]]
        telling.sort(key=lambda one: one.after / one.before)
        self._shares: dict[str, tuple[float, float]] = {one.name: (one.before, one.after) for one in shares}
        self._times = [one.after / one.before for one in telling]
        self._weights: dict[str, float] = {one.name: min(one.before, one.after, _MOST) for one in telling}
        self._upto: list[float] = list(accumulate(self._weights.values()))
        self._sums = (sum(one.before for one in telling), sum(one.after for one in telling))
        self._noise = math.hypot(self._of_the_median(telling), max(map(_pushed_by, shares), default=0.0))

    @property
    def told(self) -> float:
        """Of all methods; 1 where too few of them tell, and where it may be chance."""
        times = self.without("")
        sure = len(self._times) >= _FEWEST and abs(math.log(times)) > self._noise
        return times if sure else 1.0

    def _of_the_median(self, telling: Sequence[Share]) -> float:
        """What each one's own chance makes of the median's logarithm; 0 where nobody knows.

        A median is as exact as those beside it are close together, which their noise tells.
        """
        known = [(self._weights[one.name], one.noise / one.middle) for one in telling if one.noise]
        if not known:
            return 0.0
        spread = math.sqrt(sum(weight**2 for weight, _ in known))
        return _OF_A_MEDIAN * spread / sum(weight / noise for weight, noise in known)

    def without(self, name: str) -> float:
        """As all methods but this one have it, chance or not; 1 where too few of them tell."""
        own, weight = self._shares.get(name, (0.0, 0.0)), self._weights.get(name, 0.0)
        for whole, share in zip(self._sums, own, strict=False):
            if whole - (share if weight else 0.0) < _ENOUGH * (1 - share):
                return 1.0
        left = self._upto[-1] - weight if self._upto else 0.0
        if left <= 0:
            return 1.0
        return self._median(left / 2, name, weight)

    def _median(self, half: float, name: str, weight: float) -> float:
        """Where those below have half of the weight, the one that is left out apart."""
        place = bisect_left(self._upto, half)
        if weight and self._times[place] >= self._shares[name][1] / self._shares[name][0]:
            place = bisect_left(self._upto, half + weight)
        return self._times[min(place, len(self._times) - 1)]


def _pushed_by(one: Share) -> float:
    """By how much the shares of all others become larger or smaller together, by this one's noise."""
    rest = 1 - one.middle
    return (one.noise or 0.0) / rest if rest > 0 else 0.0
