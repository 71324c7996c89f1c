"""How much larger or smaller the shares are of what did not change, where something else did.

Shares add up to one: where something costs less, all else has a larger share without costing more.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Dict, List, Sequence, Tuple

# Of so many samples a share tells how much larger or smaller it became; where nobody knows how many there
# were, a share of so much.
_SAMPLES = 20
_SHARE = 0.005
# One method does not speak for all others.
_MOST = 0.05
# Methods that tell speak for the others where they are so much of these.
_ENOUGH = 0.5


class Room:
    """How many times its share before the usual method has: the median of those that tell, by their shares.

    `shares` are each method's name and its share (0 to 1) before and after; `before` and `after` are how many
    samples there are, 0 where nobody knows.
    """

    def __init__(self, shares: Sequence[Tuple[str, float, float]], before: int, after: int) -> None:
        least = [_SAMPLES / samples if samples else _SHARE for samples in (before, after)]
        telling = [one for one in shares if one[1] >= least[0] and one[2] >= least[1]]
        telling.sort(key=lambda one: one[2] / one[1])
        self._shares: Dict[str, Tuple[float, float]] = {name: (old, new) for name, old, new in shares}
        self._times = [new / old for _, old, new in telling]
        self._weights: Dict[str, float] = {name: min(old, new, _MOST) for name, old, new in telling}
        self._upto: List[float] = list(accumulate(self._weights.values()))
        self._sums = (sum(old for _, old, _ in telling), sum(new for _, _, new in telling))

    @property
    def usual(self) -> float:
        """Of all methods; 1 where too few of them tell."""
        return self.without("")

    def without(self, name: str) -> float:
        """As all methods but this one have it."""
        own, weight = self._shares.get(name, (0.0, 0.0)), self._weights.get(name, 0.0)
        for whole, share in zip(self._sums, own):
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
