"""What changed, method by method, from one side to the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from hprofiler._flamegraph import Change, Diff
from hprofiler.report.diff.room import Room, Share
from hprofiler.report.diff.sides import Side
from hprofiler.report.diff.spread import Noise, Spread

_EVERYTHING = 2**31 - 1
# A total that changed by as much as the own cost did, but for so small a part of the whole.
_SAME = 1e-9


@dataclass(frozen=True)
class Moved:
    """A cost before and after: shares of the whole (0 to 1), or amounts; `noise` is what chance may make."""

    before: float
    after: float
    noise: float | None

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def beyond(self) -> bool:
        """It is no chance; where nobody knows, no change is said to be."""
        return self.noise is not None and abs(self.change) > self.noise

    @property
    def which(self) -> str:
        """ "new", "gone" or ""."""
        return "new" if not self.before and self.after else "gone" if self.before and not self.after else ""


@dataclass(frozen=True)
class MethodChange:
    """What became of a method: of its own cost, and of its total with all it calls."""

    name: str
    own: Moved
    total: Moved

    def of(self, kind: str) -> Moved:
        moved: Moved = getattr(self, kind)
        return moved


@dataclass(frozen=True)
class Changes:
    """Two sides compared in one value: by shares of their wholes, or with `absolute` by amounts.

    `methods` are all that there are, by the size of their own change.
    """

    event: str
    before: Side
    after: Side
    absolute: bool
    methods: tuple[MethodChange, ...]
    noise: Noise
    diff: Diff

    @property
    def whole(self) -> float:
        """What 100 % is: 1 for shares, the amount before for amounts."""
        return float(self.before.spread.total) if self.absolute else 1.0

    def grew(self, kind: str) -> list[MethodChange]:
        """Methods whose own cost ("own"), or total, grew beyond noise, the most first.

        Of totals only those that tell more than the own cost does.
        """
        return self._beyond(kind, lambda moved: moved.change)

    def shrank(self, kind: str) -> list[MethodChange]:
        return self._beyond(kind, lambda moved: -moved.change)

    def _beyond(self, kind: str, size: Callable[[Moved], float]) -> list[MethodChange]:
        found = [one for one in self.methods if one.of(kind).beyond and size(one.of(kind)) > 0]
        if kind == "total":
            found = [one for one in found if abs(one.total.change - one.own.change) > _SAME * self.whole]
        return sorted(found, key=lambda one: (-size(one.of(kind)), one.name))

    def largest(self, kind: str) -> list[MethodChange]:
        """Every method that changed, chance or not, the most first."""
        changed = [one for one in self.methods if one.of(kind).change]
        return sorted(changed, key=lambda one: (-abs(one.of(kind).change), one.name))

    @cached_property
    def room(self) -> Room:
        """How many times its share before a method has that costs what it did."""
        methods = () if self.absolute else self.methods
        shares = [Share(one.name, one.own.before, one.own.after, one.own.noise) for one in methods]
        return Room(shares, self.before.spread.samples, self.after.spread.samples)

    def grew_over(self, limit: float) -> list[MethodChange]:
        """Methods whose own cost or total grew by more than this part of the whole, and beyond noise.

        What only fills the room that others left has not grown. Where nobody knows what noise is, the limit
        alone counts.
        """
        return self._over(limit, lambda moved: moved.noise is None or moved.beyond)

    def may_have_grown_over(self, limit: float) -> list[MethodChange]:
        """Methods that would have grown by more than this part of the whole if it were not within noise."""
        return self._over(limit, lambda moved: moved.noise is not None and not moved.beyond)

    def _over(self, limit: float, counts: Callable[[Moved], bool]) -> list[MethodChange]:
        def over(moved: Moved, room: float = 1.0) -> bool:
            return counts(moved) and moved.after - moved.before * room > limit * self.whole

        def grew(one: MethodChange) -> bool:
            if not over(one.own) and not over(one.total):
                return False
            room = max(1.0, self.room.without(one.name))
            return over(one.own, room) or over(one.total, room)

        found = [one for one in self.methods if grew(one)]
        return sorted(found, key=lambda one: (-one.own.change, -one.total.change, one.name))

    def appeared(self, limit: int) -> list[Change]:
        """Paths that are only after, and more than chance, the largest first."""
        return list(islice(filter(self._is_no_chance, self.diff.appeared(_EVERYTHING)), limit))

    def vanished(self, limit: int) -> list[Change]:
        """Paths that are only before; where shares are compared their amounts are of the whole after."""
        return list(islice(filter(self._is_no_chance, self.diff.vanished(_EVERYTHING)), limit))

    def _is_no_chance(self, path: Change) -> bool:
        whole = 1 if self.absolute else self.diff.after_total
        before, after = path.total_before / whole, path.total_after / whole
        return Moved(before, after, self.noise.of_path(path.name, (before, after))).beyond


def compare(event: str, before: Side, after: Side, absolute: bool = False) -> Changes:
    """Both sides have samples, and the same value."""
    noise = Noise(before.spread, after.spread, absolute)
    sides = (before.spread, after.spread)
    methods = [
        MethodChange(name, *(_moved(name, which, sides, noise) for which in ("own", "all")))
        for name in sorted(before.spread.names() | after.spread.names())
    ]
    methods.sort(key=lambda one: -abs(one.own.change))
    diff = before.profile.diff(after.profile, normalize=not absolute)
    return Changes(event, before, after, absolute, tuple(methods), noise, diff)


def _moved(name: str, which: str, sides: tuple[Spread, Spread], noise: Noise) -> Moved:
    before, after = (side.cost(which, name) / (1 if noise.absolute else side.total) for side in sides)
    return Moved(before, after, noise.of(which, name))
