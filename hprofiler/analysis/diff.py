"""Two runs, or two profiles, compared: what costs more, what less, and what of it is chance; docs/diff.md."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from hprofiler._flamegraph import Change, Diff, Profile
from hprofiler.analysis.attribution import counts_waits
from hprofiler.analysis.diff_sides import LeftOut, Listener, Side, Source, Taker, open_side
from hprofiler.analysis.noise import Noise, Spread
from hprofiler.analysis.sure_callers import Callers
from hprofiler.analysis.waits import Wait
from hprofiler.analysis.work import is_work
from hprofiler.base.errors import UsageError
from hprofiler.model import HostRecord, Recording
from hprofiler.model.event_names import known_as
from hprofiler.model.measures import measure_of

_EVERYTHING = 2**31 - 1
# Changes of own cost and total that differ by less than this part of the whole are the same.
_SAME = 1e-9
# A method shows how shares changed if it has this many samples or, where their number is unknown, this share.
_SAMPLES = 20
_SHARE = 0.005
# The most that one method weighs.
_MOST = 0.05
# The measured methods must be this much of the rest.
_ENOUGH = 0.5
# Fewer methods are not "most methods".
_FEWEST_METHODS = 3
# How much more the median of many varies than their mean.
_OF_A_MEDIAN = math.sqrt(math.pi / 2)
FEWEST = 3
WRONG_CALLERS = "stubs and intrinsics may be below wrong callers"
UNLIKE_CODE = "only one side was compiled with DebugNonSafepoints"
WHY = f"fewer than {FEWEST} processes of a role on a side"


# Takes a profile as it is read: the side (0 is before, 1 after), when its time starts, and of a run its host
# and recording.
PageTaker = Callable[[int, int | None, Profile, HostRecord | None, Recording | None], None]


def compare_paths(
    before: Path,
    after: Path,
    event: str | None,
    absolute: bool,
    listener: Listener,
    take: PageTaker | None = None,
) -> Changes:
    """Compare two run folders or files. Raises UsageError for what is neither, else as `compare_sources`."""
    return compare_sources((open_side(before), open_side(after)), event, absolute, listener, take)


def compare_sources(
    sources: tuple[Source, Source],
    event: str | None,
    absolute: bool,
    listener: Listener,
    take: PageTaker | None = None,
) -> Changes:
    """Compare two sides in one event; None is the first that both have.

    `take` gets all profiles as they are read. Raises UsageError where nothing can be compared; ProfileError
    for what is not a profile, or has no samples.
    """
    chosen = _event(sources, event)
    takers = [None if take is None else partial(take, run, one.start) for run, one in enumerate(sources)]
    columns = [one.column(chosen, absolute) for one in sources]
    # Amounts of time are times where both sides know them: a sample stands for more at 99 Hz than at 300.
    column = columns[0] if columns[0] and columns[1] else sources[0].events[chosen]
    named = counts_waits(chosen)
    left_out = LeftOut(below_waits=named, idle=named)
    # Where code surely stands is known once all was read: what is taken is read again then.
    again = any(one.unsure_callers(chosen) for one in sources)
    first, second = (
        one.read(chosen, column, listener, None if again else taker, left_out)
        for one, taker in zip(sources, takers, strict=True)
    )
    changes = compare(chosen, first, second, absolute)
    for one, taker in zip(sources, takers, strict=True):
        if again and taker is not None:
            one.read(chosen, column, listener, _cutting(changes.callers, taker), left_out)
    return changes


def _cutting(callers: Callers | None, taker: Taker) -> Taker:
    """Takes profiles with stubs and intrinsics below their nearest sure caller."""

    def take(profile: Profile, host: HostRecord | None, recording: Recording | None) -> None:
        taker(callers.cut(profile) if callers else profile, host, recording)

    return take


def _event(sources: tuple[Source, Source], wanted: str | None) -> str:
    before, after = sources
    both = [event for event, column in before.events.items() if after.events.get(event) == column]
    for name in filter(None, (wanted, known_as(wanted or ""))):  # a file may call a value of its own so
        if name in both:
            return name
    if wanted is None and both:
        return next((event for event in both if before.has(event) and after.has(event)), both[0])
    what = "they have no event in common" if wanted is None else f"not both have the event {wanted!r}"
    has = "; ".join(f"{one.name} has {', '.join(one.events) or 'none'}" for one in sources)
    raise UsageError(f"{before.name} and {after.name} cannot be compared: {what}", has)


@dataclass(frozen=True)
class Moved:
    """A cost before and after: shares of the whole (0 to 1), or amounts; `noise` is what chance may cause."""

    before: float
    after: float
    noise: float | None

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def beyond(self) -> bool:
        """The change is more than chance. It is not where the noise is unknown."""
        return self.noise is not None and abs(self.change) > self.noise

    @property
    def which(self) -> str:
        """ "new", "gone" or ""."""
        return "new" if not self.before and self.after else "gone" if self.before and not self.after else ""


@dataclass(frozen=True)
class MethodChange:
    """How a method changed: its own cost, and its total with all it calls; or how a wait did.

    If it is not sure what it calls, its total is not known, and is its own cost here: `most` is its total
    with all that it may have called.
    """

    name: str
    own: Moved
    total: Moved
    wait: Wait | None = None
    most: Moved | None = None

    def of(self, kind: str) -> Moved:
        moved: Moved = getattr(self, kind)
        return moved


class Paths(NamedTuple):
    """Paths that only one side has, and how many others may only have been recorded below wrong callers."""

    sure: Sequence[Change] = ()
    unsure: int = 0


@dataclass(frozen=True)
class Changes:
    """Two sides compared in one value: by shares of their wholes, or with `absolute` by amounts.

    `methods` are all that there are, by the size of their own change; so are `categories` of work, unless
    different rules made them. `callers` says who surely calls stubs and intrinsics if that is not sure of all
    callers; None if it is, or if it cannot be seen: then no total is known (`callers_unsure`).
    """

    event: str
    before: Side
    after: Side
    absolute: bool
    methods: tuple[MethodChange, ...]
    noise: Noise
    categories: tuple[tuple[str, Moved], ...] = ()
    callers: Callers | None = None

    @property
    def self_only(self) -> bool:
        """Stacks of a side are broken: totals are not compared, and are the own costs here."""
        return self.before.self_only or self.after.self_only

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.before, self.after

    @property
    def callers_unsure(self) -> bool:
        """No total is known: any method may be a wrong caller."""
        return self.callers is None and any(side.unsure != 0 for side in self.sides)

    @property
    def unlike_code(self) -> bool:
        """One side knows at every place what is inlined there, the other at few: their self costs differ."""
        unsure = [side.unsure for side in self.sides if not side.of_file]
        return any(unsure) and 0 in unsure

    @property
    def unknown(self) -> int:
        """How many methods have no total because it is not sure what they call."""
        return sum(1 for one in self.methods if one.most is not None)

    @property
    def share_of(self) -> str:
        """What shares are of: "wall-clock time besides idle threads"."""
        besides = " besides idle threads" if any(side.idle for side in self.sides) else ""
        return measure_of(self.event).share_of + besides

    @property
    def rules(self) -> list[str]:
        """The versions of the rules by which the work of both sides has categories."""
        return sorted({*self.before.rules, *self.after.rules})

    @cached_property
    def diff(self) -> Diff:
        """Both sides' trees."""
        before, after = self.trees
        return before.diff(after, normalize=not self.absolute)

    @property
    def trees(self) -> tuple[Profile, Profile]:
        """What each side's stacks cost; stubs and intrinsics are below their nearest sure caller."""
        before, after = self.callers.trees if self.callers else (side.profile for side in self.sides)
        return before, after

    @property
    def whole(self) -> float:
        """What 100 % is: 1 for shares, the amount before for amounts."""
        return float(self.before.spread.total) if self.absolute else 1.0

    def grew(self, kind: str) -> list[MethodChange]:
        """Methods whose own cost ("own"), or total, grew beyond noise, the most first.

        Totals are left out where they changed as the own cost did.
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
    def unchanged(self) -> UnchangedShares:
        """By which factor the shares of methods changed whose cost did not."""
        methods = () if self.absolute else self.methods
        shares = [Share(one.name, one.own.before, one.own.after, one.own.noise) for one in methods]
        return UnchangedShares(shares, self.before.spread.samples, self.after.spread.samples)

    def grew_over(self, limit: float) -> list[MethodChange]:
        """Methods whose own cost or total grew by more than this part of the whole, and beyond noise.

        A share that grew only because others shrank has not grown. Where noise is unknown, the
        limit alone counts.
        """
        return self._over(limit, lambda moved: moved.noise is None or moved.beyond)

    def may_have_grown_over(self, limit: float) -> list[MethodChange]:
        """Methods that would have grown by more than this part of the whole if it were not within noise."""
        return self._over(limit, lambda moved: moved.noise is not None and not moved.beyond)

    def _over(self, limit: float, counts: Callable[[Moved], bool]) -> list[MethodChange]:
        def over(moved: Moved, factor: float = 1.0) -> bool:
            return counts(moved) and moved.after - moved.before * factor > limit * self.whole

        def grew(one: MethodChange) -> bool:
            costs = [one.own, one.total, *([one.most] if one.most else [])]
            if not any(over(moved) for moved in costs):
                return False
            factor = max(1.0, self.unchanged.without(one.name))
            return any(over(moved, factor) for moved in costs)

        found = [one for one in self.methods if grew(one)]
        return sorted(found, key=lambda one: (-one.own.change, -one.total.change, one.name))

    @cached_property
    def appeared(self) -> Paths:
        """Paths that are only after, and more than chance, the largest first."""
        return self._paths(self.diff.appeared)

    @cached_property
    def vanished(self) -> Paths:
        """Paths that are only before; where shares are compared their amounts are of the whole after."""
        return self._paths(self.diff.vanished)

    def _paths(self, only: Callable[[int], list[Change]]) -> Paths:
        if self.self_only or self.callers_unsure:
            return Paths()
        found = [one for one in only(_EVERYTHING) if self._is_no_chance(one)]
        sure = [one for one in found if not self._is_unsure(one)]
        return Paths(sure, len(found) - len(sure))

    def _is_unsure(self, path: Change) -> bool:
        """Whether it is not known what the path's last frame costs there."""
        callers = self.callers
        return callers is not None and (path.name in callers.code or callers.is_unknown(path.name))

    def _is_no_chance(self, path: Change) -> bool:
        whole = 1 if self.absolute else self.diff.after_total
        before, after = path.total_before / whole, path.total_after / whole
        return Moved(before, after, self.noise.of_path(path.name, (before, after))).beyond


def compare(
    event: str, before: Side, after: Side, absolute: bool = False, names: Iterable[str] | None = None
) -> Changes:
    """Both sides have samples, and the same value. With `names` only these methods are compared."""
    noise = Noise(before.spread, after.spread, absolute=absolute)
    sides = (before.spread, after.spread)
    self_only = before.self_only or after.self_only
    waits = before.waits | after.waits
    callers = None if self_only else _callers(event, before, after)
    found = Changes(event, before, after, absolute, (), noise, callers=callers)

    def change_of(name: str) -> MethodChange:
        own, total = (_moved(name, which, sides, noise) for which in ("own", "all"))
        most = None
        if self_only:
            total = own
        elif found.callers_unsure and total != own:
            total, most = own, total
        elif callers is not None and callers.is_unknown(name):
            total, most = own, Moved(*_parts(callers.most(name), sides, noise), total.noise)
        elif callers is not None and total.noise is not None:
            # What may be wrong counts as chance.
            total = replace(total, noise=total.noise + sum(_parts(callers.doubt(name), sides, noise)))
        return MethodChange(name, own, total, waits.get(name), most)

    compared = sorted(before.spread.names() | after.spread.names() if names is None else names)
    methods = sorted(map(change_of, compared), key=lambda one: -abs(one.own.change))
    found = replace(found, methods=tuple(methods))
    if not is_work(event) or self_only or len(found.rules) > 1:
        return found
    return replace(found, categories=tuple(_categories(before.categories, after.categories, absolute)))


def _callers(event: str, before: Side, after: Side) -> Callers | None:
    """Who surely calls stubs and intrinsics; None where all callers are sure, or it cannot be seen."""
    sides = (before, after)
    if not any(side.unsure for side in sides) or not all(side.compiled_known for side in sides):
        return None
    return Callers([side.profile for side in sides], counts_waits(event))


def _categories(before: Spread, after: Spread, absolute: bool) -> list[tuple[str, Moved]]:
    """Codes of categories of work, those that changed most first."""
    noise = Noise(before, after, absolute=absolute)
    names = sorted(before.names() | after.names())
    moved = [(name[1:-1], _moved(name, "own", (before, after), noise)) for name in names]
    return sorted(moved, key=lambda pair: -abs(pair[1].change))


def _moved(name: str, which: str, sides: tuple[Spread, Spread], noise: Noise) -> Moved:
    costs = [side.cost(which, name) for side in sides]
    return Moved(*_parts(costs, sides, noise), noise.of(which, name))


def _parts(costs: Sequence[int], sides: tuple[Spread, Spread], noise: Noise) -> tuple[float, float]:
    """Costs of both sides as shares, or as amounts."""
    before, after = (
        cost / (1 if noise.absolute else side.total) for cost, side in zip(costs, sides, strict=True)
    )
    return before, after


class Share(NamedTuple):
    """A method's share (0 to 1) before and after; `noise` is what chance may cause, if known."""

    name: str
    before: float
    after: float
    noise: float | None

    @property
    def middle(self) -> float:
        return (self.before + self.after) / 2


class UnchangedShares:
    """By which factor the shares of unchanged methods grew or shrank because others changed.

    Shares add up to one: if something costs less, all else has a larger share without costing more. The
    factor is the median of the measured methods, weighted by their shares.

    `before` and `after` are numbers of samples, 0 where unknown.
    """

    def __init__(self, shares: Sequence[Share], before: int, after: int) -> None:
        least = [_SAMPLES / samples if samples else _SHARE for samples in (before, after)]
        measured = [one for one in shares if one.before >= least[0] and one.after >= least[1]]
        measured.sort(key=lambda one: one.after / one.before)
        self._shares: dict[str, tuple[float, float]] = {one.name: (one.before, one.after) for one in shares}
        self._times = [one.after / one.before for one in measured]
        self._weights: dict[str, float] = {one.name: min(one.before, one.after, _MOST) for one in measured}
        self._upto: list[float] = list(accumulate(self._weights.values()))
        self._sums = (sum(one.before for one in measured), sum(one.after for one in measured))
        # By how much one share's noise makes all others larger or smaller together.
        pushes = [(one.noise or 0.0) / (1 - one.middle) for one in shares if one.middle < 1]
        self._noise = math.hypot(self._of_the_median(measured), max(pushes, default=0.0))

    @property
    def usual(self) -> float:
        """For all methods; 1 where too few are measured, and where it may be chance."""
        times = self.without("")
        sure = len(self._times) >= _FEWEST_METHODS and abs(math.log(times)) > self._noise
        return times if sure else 1.0

    def _of_the_median(self, measured: Sequence[Share]) -> float:
        """The noise of the median's logarithm, from the noise of the methods; 0 where unknown."""
        known = [(self._weights[one.name], one.noise / one.middle) for one in measured if one.noise]
        if not known:
            return 0.0
        spread = math.sqrt(sum(weight**2 for weight, _ in known))
        return _OF_A_MEDIAN * spread / sum(weight / noise for weight, noise in known)

    def without(self, name: str) -> float:
        """The factor by all methods but this one; 1 where too few are measured."""
        own, weight = self._shares.get(name, (0.0, 0.0)), self._weights.get(name, 0.0)
        for whole, share in zip(self._sums, own, strict=False):
            if whole - (share if weight else 0.0) < _ENOUGH * (1 - share):
                return 1.0
        left = self._upto[-1] - weight if self._upto else 0.0
        if left <= 0:
            return 1.0
        return self._median(left / 2, name, weight)

    def _median(self, half: float, name: str, weight: float) -> float:
        """The weighted median without the method that is left out."""
        place = bisect_left(self._upto, half)
        if weight and self._times[place] >= self._shares[name][1] / self._shares[name][0]:
            place = bisect_left(self._upto, half + weight)
        return self._times[min(place, len(self._times) - 1)]


def split_by_certainty(
    changes: Changes, grown: Sequence[MethodChange]
) -> tuple[list[MethodChange], list[MethodChange]]:
    """Methods that surely grew, and those for which it is not certain.

    JVMs compile and inline differently: between two processes of one program some methods differ by more than
    sampling explains. Growth is certain if at least half of the method's cost after is of roles with `FEWEST`
    processes on both sides. A file does not say how many processes it has, so its growth counts as certain.
    The growth of a total is not certain where callers are not, unless half of it is the method's own.
    """
    sure = [one for one in grown if not why_unsure(changes, one)]
    return sure, [one for one in grown if one not in sure]


def why_unsure(changes: Changes, one: MethodChange) -> str:
    """Why it is not certain that a method grew; "" if it is."""
    if one.most is not None and 2 * one.own.change < one.most.change:
        return WRONG_CALLERS
    if changes.unlike_code:
        return UNLIKE_CODE
    of_file = changes.before.of_file or changes.after.of_file
    return "" if of_file or _of_several(changes, one.name) else WHY


def hidden(changes: Changes, limit: float) -> tuple[MethodChange, float] | None:
    """The method that grew the most by more than `limit`, and the noise that hides it, as parts of the whole.

    Only where a run has fewer than `FEWEST` processes: more than that show by their spread what is chance.
    """
    if changes.before.of_file or changes.after.of_file or fewest(changes) >= FEWEST:
        return None
    for one in changes.may_have_grown_over(limit):
        moved = max(one.own, one.total, key=lambda moved: moved.change)
        return one, (moved.noise or 0.0) / changes.whole
    return None


def fewest(changes: Changes) -> int:
    """The number of processes of the smaller side."""
    return min(changes.before.spread.parts, changes.after.spread.parts)


def _of_several(changes: Changes, name: str) -> bool:
    """Whether at least half of the method is of roles with enough processes on both sides."""
    before, after = changes.before.spread.kinds, changes.after.spread.kinds
    several = whole = 0
    for role, kind in after.items():
        sums = kind.sums("all", name)
        cost = sums.cost if sums is not None else 0
        whole += cost
        if kind.parts >= FEWEST and role in before and before[role].parts >= FEWEST:
            several += cost
    return 2 * several >= whole
