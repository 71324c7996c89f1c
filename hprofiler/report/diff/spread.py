"""How much a method's cost varies from process to process, and what chance makes of a difference.

docs/diff.md explains the sums. Nothing is kept of a process but its part in sums, a few numbers a method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Tuple

from hprofiler._flamegraph import Profile

SIGMAS = 4.5
_EVERYTHING = 2**31 - 1
# A method tells how processes vary if it has so many samples a process; and what all methods together
# tell counts as much as this many processes' own word on it.
_ENOUGH = 5.0
_POOLED = 10


@dataclass
class Sums:
    """Over the parts of a side: what a method costs, that squared, times its part's whole, times a sample."""

    cost: int = 0
    squared: int = 0
    weighted: int = 0
    sampled: float = 0.0

    def add(self, cost: int, whole: int, per_sample: float) -> None:
        self.cost += cost
        self.squared += cost * cost
        self.weighted += cost * whole
        self.sampled += cost * per_sample


class Spread:
    """The sums of each method of one side, by its own cost and by its total."""

    def __init__(self) -> None:
        self.parts = 0
        self.samples = 0
        self.known = True
        self.own: Dict[str, Sums] = {}
        self.all: Dict[str, Sums] = {}
        self._whole = Sums()

    def add(self, profile: Profile, samples: int) -> None:
        """A process's profile, one value; `samples` is how many stand behind it, 0 where nobody knows."""
        whole = profile.total()
        if not whole:
            return
        per_sample = whole / samples if samples else 0.0
        self.parts += 1
        self.samples += samples
        self.known = self.known and samples > 0
        self._whole.add(whole, whole, per_sample)
        for method in profile.top(_EVERYTHING):
            self.all.setdefault(method.name, Sums()).add(method.total_value, whole, per_sample)
            if method.self_value:
                self.own.setdefault(method.name, Sums()).add(method.self_value, whole, per_sample)

    @property
    def total(self) -> int:
        return self._whole.cost

    def share(self, sums: Optional[Sums]) -> float:
        return sums.cost / self.total if sums else 0.0

    def by_chance(self, sums: Optional[Sums], absolute: bool) -> float:
        """The variance that taking samples makes, of a method's share or of its cost."""
        if sums is None:
            return 0.0
        if absolute:
            return sums.sampled
        # Of a share of 0 or 1 nobody is sure either: one sample might have been another.
        return max(sums.sampled * (1 - self.share(sums)), self.per_sample**2) / self.total**2

    def between(self, sums: Sums) -> float:
        """The variance of a method's share as the parts tell it; of one part 0."""
        if self.parts < 2:
            return 0.0
        share, whole = self.share(sums), self._whole
        apart = sums.squared - 2 * share * sums.weighted + share * share * whole.squared
        return max(apart, 0.0) * self.parts / (self.parts - 1) / self.total**2

    def times(self, sums: Optional[Sums]) -> Optional[float]:
        """How many times what chance makes a method varies; None where too little is known."""
        if sums is None or self.parts < 2:
            return None
        chance = self.by_chance(sums, absolute=False)
        return self.between(sums) / chance if chance > 0 else None

    @property
    def per_sample(self) -> float:
        """What a sample stands for, on average."""
        return self._whole.sampled / self._whole.cost if self._whole.cost else 0.0

    def telling(self) -> Iterable[Sums]:
        """Methods with enough samples to tell how processes vary."""
        return (one for one in self.own.values() if one.cost >= _ENOUGH * self.parts * self.per_sample)


class Noise:
    """What chance makes of a method's change, at most, from one side to the other."""

    def __init__(self, before: Spread, after: Spread, absolute: bool) -> None:
        self._sides = (before, after)
        self.absolute = absolute
        self.known = before.known and after.known
        self._pooled = _pooled(self._sides)
        self._freedom = sum(side.parts - 1 for side in self._sides)
        self._limit = _limit(_POOLED + self._freedom) if self._freedom else SIGMAS

    @property
    def counted_alone(self) -> bool:
        """Nothing tells how processes vary: there is one a side."""
        return not self._freedom

    def of(self, before: Optional[Sums], after: Optional[Sums]) -> Optional[float]:
        """A change beyond this is none of chance's; None where nobody knows how many samples there were."""
        if not self.known:
            return None
        variance = 0.0
        for side, sums in zip(self._sides, (before, after)):
            variance += side.by_chance(sums, self.absolute) * self._times(side, sums)
        return self._limit * math.sqrt(variance)

    def least(self, side: Spread) -> Optional[float]:
        """What of the side's value is no chance where there is nothing on the other side."""
        return self._limit**2 * self._pooled * side.per_sample if self.known else None

    def _times(self, side: Spread, sums: Optional[Sums]) -> float:
        """Its own word on how much it varies, and that of all methods together; at least chance's."""
        own = side.times(sums)
        if own is None:
            return self._pooled
        freedom = side.parts - 1
        return max(1.0, (_POOLED * self._pooled + freedom * own) / (_POOLED + freedom))


def _pooled(sides: Tuple[Spread, ...]) -> float:
    """How many times what chance makes most methods vary, each by as much as it tells; at least once."""
    told: List[Tuple[float, int]] = []
    for side in sides:
        for sums in side.telling():
            times = side.times(sums)
            if times is not None:
                told.append((times, side.parts - 1))
    weight = sum(freedom for _, freedom in told)
    return max(1.0, sum(times * freedom for times, freedom in told) / weight) if weight else 1.0


def _limit(freedom: int) -> float:
    """So many deviations where the deviation is itself measured, as in Student's distribution."""
    return math.sqrt(freedom * math.expm1(SIGMAS**2 / freedom))
