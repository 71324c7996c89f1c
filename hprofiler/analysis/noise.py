"""How much a method's cost varies from process to process, and which changes chance explains.

docs/diff.md explains the sums. Nothing is kept of a process but its part in sums, a few numbers a method.
Processes of unlike roles (a driver, executors) are compared within their own kind only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hprofiler._flamegraph import MethodSums, Profile

SIGMAS = 4.5
# A method shows how processes vary if it has this many samples a process. All methods together weigh as much
# as this many processes of its own.
ENOUGH = 5.0
_POOLED = 10
_NONE = (0, 0.0, 0.0, 0.0)


@dataclass
class Sums:
    """Sums over processes: a method's cost, its square, and its product with the total and with a sample."""

    cost: int = 0
    squared: float = 0.0
    weighted: float = 0.0
    sampled: float = 0.0

    def add(self, cost: int, whole: int, per_sample: float) -> None:
        self.cost += cost
        self.squared += float(cost) * cost
        self.weighted += float(cost) * whole
        self.sampled += cost * per_sample


class Kind:
    """Processes that do the same: each method's sums, of its own cost ("own") and of its total ("all").

    `whole` has the sums of the processes' totals.
    """

    def __init__(self, parts: int = 0, whole: Sums | None = None) -> None:
        self.parts = parts
        self.whole = whole or Sums()
        self.methods = MethodSums()

    @property
    def freedom(self) -> int:
        return self.parts - 1

    def add(self, profile: Profile, per_sample: float, threads: bool = False) -> None:
        whole = profile.total()
        self.parts += 1
        self.whole.add(whole, whole, per_sample)
        self.methods.add(profile, per_sample, threads=threads)

    def put(self, which: str, name: str, sums: Sums) -> None:
        """A method's sums over all processes, as they were stored."""
        own, all_ = self.methods.of(name) or (_NONE, _NONE)
        put = (sums.cost, sums.squared, sums.weighted, sums.sampled)
        self.methods.put(name, *((put, all_) if which == "own" else (own, put)))

    def names(self) -> Iterable[str]:
        return self.methods.names()

    def sums(self, which: str, name: str) -> Sums | None:
        both = self.methods.of(name)
        found = both and Sums(*both[which == "all"])
        return found if found and found.cost else None

    def by_chance(self, sums: Sums) -> float:
        """The variance of a method's cost that is due to sampling."""
        return sums.sampled * (1 - sums.cost / self.whole.cost)

    def between(self, sums: Sums) -> float:
        """The variance of a method's cost between processes, each by what it used; 0 for one process."""
        if self.parts < 2:
            return 0.0
        share, whole = sums.cost / self.whole.cost, self.whole
        apart = sums.squared - 2 * share * sums.weighted + share * share * whole.squared
        return max(apart, 0.0) * self.parts / (self.parts - 1)

    def ratios(self) -> Iterable[float]:
        """Variance between processes / variance by sampling, for each method with enough samples."""
        least = ENOUGH * self.parts * self.whole.sampled / self.whole.cost
        for row in self.methods.own():
            sums = Sums(*row)
            chance = self.by_chance(sums)
            if sums.cost >= least and chance > 0:
                yield self.between(sums) / chance


class Spread:
    """One side: its processes by kind, whose costs are not expected to be alike.

    `measured` is how much all its methods vary, as `pooled` gives it, where not all of them are here. Of
    several runs, `between_runs` is how far the share of a method ("own" or "all", by name) in one more run
    may be from theirs: what all processes of a run have in common is no chance of each.
    """

    def __init__(self) -> None:
        self.parts = 0
        self.samples = 0
        self.total = 0
        self.known = True
        self.kinds: dict[str, Kind] = {}
        self.measured: tuple[float, float] | None = None
        self.between_runs: dict[tuple[str, str], float] = {}
        self._sampled = 0.0

    def add(self, profile: Profile, samples: int, kind: str = "", threads: bool = False) -> None:
        """A process's profile, one value; `samples` is how many it has, 0 where unknown. With `threads`, its
        outermost frames in brackets are threads."""
        whole = profile.total()
        if not whole:
            return
        self.parts += 1
        self.samples += samples
        self.total += whole
        self.known = self.known and samples > 0
        per_sample = whole / samples if samples else 0.0
        self._sampled += whole * per_sample
        self.kinds.setdefault(kind, Kind()).add(profile, per_sample, threads)

    def add_kind(self, name: str, kind: Kind, samples: int, known: bool) -> None:
        """All processes of a kind that is not here yet, as their sums were stored."""
        self.parts += kind.parts
        self.samples += samples
        self.total += kind.whole.cost
        self.known = self.known and known
        self._sampled += kind.whole.sampled
        self.kinds[name] = kind

    def names(self) -> set[str]:
        return {name for kind in self.kinds.values() for name in kind.names()}

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance between processes."""
        return sum(kind.freedom for kind in self.kinds.values())

    @property
    def per_sample(self) -> float:
        """What a sample stands for, on average."""
        return self._sampled / self.total if self.total else 0.0

    def cost(self, which: str, name: str) -> int:
        return sum(sums.cost for _, sums in self._all(which, name))

    def by_chance(self, which: str, name: str, absolute: bool) -> float:
        """The variance of a method's share, or cost, that is due to sampling."""
        sampled = sum(sums.sampled for _, sums in self._all(which, name))
        if absolute or not sampled:
            return sampled
        share = self.cost(which, name) / self.total
        # A share of 0 or 1 is uncertain too: one sample might have been another.
        return max(sampled * (1 - share), self.per_sample**2) / self.total**2

    def times(self, which: str, name: str) -> float | None:
        """Variance between processes / variance by sampling of a method; None where unknown."""
        several = [(kind, sums) for kind, sums in self._all(which, name) if kind.parts > 1]
        chance = sum(kind.by_chance(sums) for kind, sums in several)
        return sum(kind.between(sums) for kind, sums in several) / chance if chance > 0 else None

    def pooled(self) -> tuple[float, float]:
        """The sum of all methods' ratios, each times its degrees of freedom; the sum of these."""
        if self.measured is not None:
            return self.measured
        ratios = [
            (times, kind.freedom) for kind in self.kinds.values() if kind.freedom for times in kind.ratios()
        ]
        return sum(times * freedom for times, freedom in ratios), sum(freedom for _, freedom in ratios)

    def _all(self, which: str, name: str) -> list[tuple[Kind, Sums]]:
        found = ((kind, kind.sums(which, name)) for kind in self.kinds.values())
        return [(kind, sums) for kind, sums in found if sums is not None]


class Noise:
    """The largest change of a method that chance explains; of one side, how far off its value may be."""

    def __init__(self, *sides: Spread, absolute: bool = False) -> None:
        self._sides = sides
        self.absolute = absolute
        self.known = all(side.known for side in sides)
        self._pooled = _pooled(sides)
        freedom = sum(side.freedom for side in sides)
        self._limit = _limit(_POOLED + freedom) if freedom else SIGMAS
        self.counted_alone = not freedom
        # Of paths, which are many.
        self._times_by_name: dict[str, list[float]] = {}

    def of(self, which: str, name: str) -> float | None:
        """A change beyond this is more than chance; None where the number of samples is unknown."""
        if not self.known:
            return None
        times = [self._times(side, which, name) for side in self._sides]
        own = (side.by_chance(which, name, self.absolute) for side in self._sides)
        alike = self._evenly([side.cost(which, name) / self._whole(side) for side in self._sides])
        chance = self._limit * math.sqrt(max(_scaled(own, times), _scaled(alike, times)))
        return max([chance, *(side.between_runs.get((which, name), 0.0) for side in self._sides)])

    def of_path(self, name: str, parts: Sequence[float]) -> float | None:
        """A path's change beyond this is more than chance, by its parts of both sides; None as for `of`.

        `name` is of its last frame: paths to a method vary from process to process as it does itself.
        """
        if not self.known:
            return None
        if name not in self._times_by_name:
            self._times_by_name[name] = [self._times(side, "all", name) for side in self._sides]
        times = self._times_by_name[name]
        chance = (
            self._spread(part) / self._certainty(side) for part, side in zip(parts, self._sides, strict=False)
        )
        return self._limit * math.sqrt(max(_scaled(chance, times), _scaled(self._evenly(parts), times)))

    def _evenly(self, parts: Sequence[float]) -> list[float]:
        """Each side's variance if both have the same part, the mean of both.

        A side of few samples that has none of it is as uncertain as the other makes it.
        """
        weights = [self._certainty(side) for side in self._sides]
        spread = self._spread(_scaled(parts, weights) / sum(weights))
        return [spread / weight for weight in weights]

    def _spread(self, part: float) -> float:
        """The variance of a part that one sample causes."""
        return part if self.absolute else part * max(0.0, 1 - part)

    def _whole(self, side: Spread) -> int:
        return 1 if self.absolute else side.total

    def _certainty(self, side: Spread) -> float:
        """How many samples stand for a cost of 1."""
        return self._whole(side) / side.per_sample

    def _times(self, side: Spread, which: str, name: str) -> float:
        """The same ratio of a method, combined with that of all methods; at least 1."""
        own = side.times(which, name)
        if own is None:
            return self._pooled
        return max(1.0, (_POOLED * self._pooled + side.freedom * own) / (_POOLED + side.freedom))


def _scaled(values: Iterable[float], factors: Iterable[float]) -> float:
    return sum(value * factor for value, factor in zip(values, factors, strict=False))


def _pooled(sides: Iterable[Spread]) -> float:
    """The mean ratio of all methods, weighted by degrees of freedom; at least 1."""
    sums, weights = zip(*(side.pooled() for side in sides), strict=True)
    return max(1.0, sum(sums) / sum(weights)) if sum(weights) else 1.0


def limit_of_runs(runs: int, deviation: float) -> float:
    """How far one more run may be from the mean of so many runs; `deviation` is that of their shares."""
    return _limit(_POOLED + runs - 1) * deviation * math.sqrt(1 + 1 / runs)


def _limit(freedom: int) -> float:
    """The number of standard deviations if the deviation is an estimate, as in Student's distribution."""
    return math.sqrt(freedom * math.expm1(SIGMAS**2 / freedom))
