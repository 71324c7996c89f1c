"""What a comparison says in sentences: what is gone, is new, or changed by more than chance and others do.

Shares add up to one: if something costs less, the shares of all else grow. If a method has another caller,
the total of the former one falls although nothing is gone. Neither counts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hprofiler._flamegraph import Profile, frame_category
from hprofiler.analysis.diff import UNLIKE_CODE, Changes, MethodChange, Moved
from hprofiler.analysis.diff_sides import Side
from hprofiler.analysis.families import FAMILIES
from hprofiler.analysis.findings import MOST, shown
from hprofiler.analysis.subject import Finding, Part, says
from hprofiler.analysis.trust import DEBUG_FLAGS
from hprofiler.analysis.words import percent, plain
from hprofiler.model.measures import amount, counted

SELF_ONLY = "self-only"
"""Stacks are broken: there are no totals."""
# Least change of the shares of unchanged methods that is worth a sentence.
_FACTOR = 0.05
# Well-known code is named first where it changed so many times as much as any method.
_FAR_MORE = 1.25
# Most candidates whose stacks are looked at, and most frames of a side; smaller ones do not count.
_CANDIDATES = 50
# A method with more of both sides is above nearly all: the innermost of these says what the others do.
_NEARLY_ALL = 0.95
_MOST_NODES = 200_000


def findings_of_changes(changes: Changes) -> list[Finding]:
    """The change that explains most comes first; at most `MOST`, each without the stacks of those before.

    Before them comes that a side's stacks are broken.
    """
    first = [says(SELF_ONLY, f"{_broken(side)}.") for side in changes.sides if side.self_only]
    return [*first, *_changed(changes), *unsure_callers(changes)]


def _broken(side: Side) -> str:
    why = "totals are not compared, only self costs"
    return f"{side.name}: {percent(side.broken, 1)} is of processes with broken stacks: {why}"


def unsure_callers(changes: Changes) -> list[Finding]:
    sides = {side.name: side.unsure for side in changes.sides if side.unsure}
    unknown = [side.name for side in changes.sides if side.unsure is None]
    if not sides and not unknown:
        return []
    text = "Callers of stubs, intrinsics and page faults may be wrong, so that totals are not compared"
    if changes.callers is not None:
        lost = (
            f"; the totals of {counted(changes.unknown, 'methods')} are not known" if changes.unknown else ""
        )
        text = f"Stubs, intrinsics and page faults are compared below their nearest sure caller{lost}"
    if not sides:
        why = f"it is not known how code of {' and '.join(unknown)} was compiled."
        return [says("callers-unsure", f"{text}: {why}", caveat=True)]
    if changes.unlike_code:
        text = f"Self costs of inlined methods are not comparable: {UNLIKE_CODE}. {text}"
    where = " and ".join(f"{counted(number, 'processes')} of {name}" for name, number in sides.items())
    why = f"{where} compiled code before the profiler was loaded. Start with {DEBUG_FLAGS}."
    return [says("callers-unsure", f"{text}: {why}", caveat=True)]


def _changed(changes: Changes) -> list[Finding]:
    if not changes.noise.known:
        text = "What is noise is not known: the profiles do not say how many samples they have."
        return [says("unknown-noise", text)]
    stacks = _Stacks(changes)
    found = stacks.explained()
    usual = changes.unchanged.usual
    factor = stacks.factor if usual == 1 and found else usual
    sentences = [_sentence(changes, one) for one in found] or [_nothing(changes)]
    most = max((abs(one.moved.change) for one in found), default=0.0)
    return [*_known_code(changes, most), *sentences, *shares_moved(factor)]


def _known_code(changes: Changes, most: float) -> list[Finding]:
    """Well-known code that changed by far more than any method: it is many, or their totals are not known.

    `most` is the largest change of a method that is named.
    """
    usual = 1.0 if changes.absolute else changes.unchanged.usual
    known = [(FAMILIES[code], moved) for code, moved in changes.categories if code in FAMILIES]
    if not known or changes.unlike_code:
        return []
    family, moved = max(known, key=lambda one: abs(one[1].after - one[1].before * usual))
    beside_others = abs(moved.after - moved.before * usual)
    if not moved.beyond or beside_others <= (moved.noise or 0.0) or abs(moved.change) <= _FAR_MORE * most:
        return []
    size = f"{points_of(changes, abs(moved.change))}{'' if changes.absolute else ' points'}"
    of = "" if changes.absolute else f" of {changes.share_of}"
    share = f"from {_amount(changes, moved.before)} to {_amount(changes, moved.after)}"
    takes = f" takes {size} {'more' if moved.change > 0 else 'less'}{of}: "
    doing = f"{family.doing[0].upper()}{family.doing[1:]}"
    return [says("known-code", f"{doing}{takes}", ("share", share), ".")]


def shares_moved(factor: float) -> list[Finding]:
    """That the shares of unchanged methods changed, if that is worth a sentence."""
    if abs(factor - 1) < _FACTOR:
        return []
    others = "less" if factor > 1 else "more"
    moved = f"that alone makes most methods' shares {factor:.2f} times what they were"
    return [says("shares-moved", f"Other methods cost {others}: {moved}.")]


def _nothing(changes: Changes) -> Finding:
    if any(one.own.beyond or one.total.beyond for one in changes.methods):
        text = "No change is larger than chance and the other changes explain."
        return says("unchanged", text)
    return says("unchanged", "No method changed beyond noise.")


@dataclass(frozen=True)
class _Candidate:
    """A method's own cost ("own"), or total, that changed beyond chance."""

    bit: int
    method: MethodChange
    kind: str

    @property
    def moved(self) -> Moved:
        return self.method.of(self.kind)


@dataclass
class _Cost:
    """What stacks cost; `changed` is the part of it that their last methods cost more, or less, anywhere."""

    all: float = 0.0
    changed: float = 0.0


class _Stacks:
    """Both sides' stacks that are not explained yet, put together by the candidates that they have.

    `_depths` is where each candidate is first called: of two that explain as much, the caller is named.
    """

    def __init__(self, changes: Changes) -> None:
        self._candidates = _candidates(changes)
        self._depths: dict[int, int] = {}
        self._usual = changes.unchanged.usual
        grown, shrunk = _parts(changes)
        wholes = (1, 1) if changes.absolute else (changes.before.spread.total, changes.after.spread.total)
        before, after = changes.trees
        self._before = self._costs(before, wholes[0], shrunk)
        self._after = self._costs(after, wholes[1], grown)
        self._absolute = changes.absolute
        amounts = [side.spread.total if changes.absolute else 1 for side in changes.sides]
        above_all = [
            one
            for one in self._candidates
            if one.kind == "total"
            and min(one.moved.before / amounts[0], one.moved.after / amounts[1]) > _NEARLY_ALL
        ]
        innermost = max(above_all, key=lambda one: self._depths.get(one.bit, 0), default=None)
        self._candidates = [one for one in self._candidates if one is innermost or one not in above_all]

    @property
    def factor(self) -> float:
        """How many times their former share the stacks have that are left."""
        before, after = (sum(cost.all for cost in side.values()) for side in (self._before, self._after))
        return after / before if before and after and not self._absolute else 1.0

    def explained(self) -> list[_Candidate]:
        """The candidates that explain most, each without the stacks of those before."""
        found: list[_Candidate] = []
        left = list(self._candidates)
        while left and len(found) < MOST:
            best = max(left, key=lambda one: (self._explains(one), -self._depths.get(one.bit, 0)))
            if not self._explains(best):
                break
            found.append(best)
            left.remove(best)
            for side in (self._before, self._after):
                for bits in [bits for bits in side if bits & best.bit]:
                    del side[bits]
        # JVMs that were warmed up less compile more: that is no change of the program.
        return sorted(found, key=lambda one: frame_category(one.method.name) == "jit")

    def _explains(self, one: _Candidate) -> float:
        """How well it names what changed: its callers have the same change beside what is unchanged."""
        before, after = (self._cost_of(side, one) for side in (self._before, self._after))
        moved = one.moved
        if moved.change > 0:
            factor = max(1.0, self._usual, self.factor)
            by = min(after.all - before.all * factor, after.changed)
        else:
            factor = min(1.0, self._usual, self.factor)
            by = min(before.all * factor - after.all, before.changed)
        chance = (moved.noise or 0.0) * max(1.0, factor)
        return by**2 / max(moved.before, moved.after) if by > chance else 0.0

    def _costs(self, profile: Profile, whole: int, parts: Mapping[str, float]) -> dict[int, _Cost]:
        bits = {(one.method.name, one.kind): one.bit for one in self._candidates}
        found: dict[int, _Cost] = {}
        above = [0]
        for node in profile.pruned(frames=_MOST_NODES).nodes()[1:]:
            bit = bits.get((node.name, "total"), 0)
            above.append(above[node.parent] | bit)
            self._depths[bit] = min(node.depth, self._depths.get(bit, node.depth))
            if node.self_value:
                cost = found.setdefault(above[-1] | bits.get((node.name, "own"), 0), _Cost())
                cost.all += node.self_value / whole
                cost.changed += parts.get(node.name, 0.0) * node.self_value / whole
        return found

    def _cost_of(self, side: Mapping[int, _Cost], one: _Candidate) -> _Cost:
        costs = [cost for bits, cost in side.items() if bits & one.bit]
        return _Cost(sum(cost.all for cost in costs), sum(cost.changed for cost in costs))


def _candidates(changes: Changes) -> list[_Candidate]:
    found = []
    for one in changes.methods:
        kinds = ("total",) if one.own == one.total else ("total", "own")
        kinds = ("own",) if changes.self_only or one.most else kinds
        found += [(one, kind) for kind in kinds if one.of(kind).beyond]
    found.sort(key=lambda pair: -abs(pair[0].of(pair[1]).change))
    return [_Candidate(1 << place, *pair) for place, pair in enumerate(found[:_CANDIDATES])]


def _parts(changes: Changes) -> tuple[dict[str, float], dict[str, float]]:
    """The part of each method's own cost after that is more, and of that before that is less; -1 to 1."""
    factor = changes.unchanged.usual
    grown, shrunk = {}, {}
    for one in changes.methods:
        expected, after = one.own.before * factor, one.own.after
        if after:
            grown[one.name] = max(-1.0, 1 - expected / after)
        if expected:
            shrunk[one.name] = max(-1.0, 1 - after / expected)
    return grown, shrunk


def _sentence(changes: Changes, one: _Candidate) -> Finding:
    """ "Pattern.compile is gone: 27.0 points less of CPU time."
    "Row.read takes 14.5 points more of CPU time: from 15.5 % to 30.0 %."
    """
    method, moved = one.method, one.moved
    change = points_of(changes, abs(moved.change))
    size = f"{change}{'' if changes.absolute else ' points'} {'more' if moved.change > 0 else 'less'}"
    of = "" if changes.absolute else f" of {changes.share_of}"
    wait = method.wait
    what = method.name if wait is None else wait.method
    name: list[str | Part] = [("method", shown(what))]
    if wait is not None:
        name.insert(0, f"{wait.doing.spent.capitalize()} ")
    row = wait and method.name
    if method.total.which and not changes.self_only and not method.most:
        is_now = f" is {method.total.which}: "
        return says("changed", *name, is_now, ("share", size), f"{of}.", method=what, row=row)
    which = {"total": " with all it calls", "own": " itself"}[one.kind]
    if method.own == method.total and not method.most:
        which = ""
    share = f"from {_amount(changes, moved.before)} to {_amount(changes, moved.after)}"
    takes = f" takes {size}{of}{which}: "
    return says("changed", *name, takes, ("share", share), ".", method=what, row=row)


def _amount(changes: Changes, value: float) -> str:
    return amount_of(changes, value) if changes.absolute else percent(value, 1)


def amount_of(changes: Changes, value: float) -> str:
    return _unit(changes, value) if changes.absolute else plain(percent(value, 1))


def points_of(changes: Changes, value: float) -> str:
    """The size of a change: of shares in percentage points."""
    if changes.absolute:
        return _unit(changes, value)
    return f"{100 * value:.2f}" if value < 0.01 else f"{100 * value:.1f}"


def _unit(changes: Changes, value: float) -> str:
    name, unit = changes.after.column
    return f"{value:,.0f}" if unit == "count" else amount(value, (name, unit))
