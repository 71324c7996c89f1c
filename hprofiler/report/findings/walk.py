"""Who costs belong to: the innermost method of the job's own, and the well-known code below it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hprofiler._flamegraph import Profile
from hprofiler.report.findings.families import Family, family_of, is_own

# Frames that are looked at: thinner ones count as what is above them.
_MOST_NODES = 50_000


class _Place(NamedTuple):
    """Where a node is: below which own method, in which family, called by which frame outside the kernel."""

    owner: str = ""
    family: Family | None = None
    caller: str = ""


_ROOT = _Place()


class Walk:
    """One pass over a call tree, root first. Costs below a callback into own code are that code's again.

    With `classes` the last frame of a stack is the class of what was allocated, not a method.
    """

    def __init__(self, profile: Profile, classes: bool = False) -> None:
        self.total = profile.total()
        self.owners: Counter[str] = Counter()
        self.families: Counter[Family] = Counter()
        self.kernel_callers: Counter[str] = Counter()
        # Name, parent, place and cost of each node; the root is the first.
        self._tree: list[tuple[str, int, _Place, int]] = [("", 0, _ROOT, 0)]
        self._known: dict[tuple[str, str], tuple[bool, Family | None]] = {}
        self._walk(profile, classes)

    def below(self, method: str) -> dict[Family, int]:
        """What each family costs below a method."""
        inside: list[bool] = []
        costs: Counter[Family] = Counter()
        for name, parent, place, cost in self._tree:
            inside.append(name == method or (bool(inside) and inside[parent]))
            if inside[-1] and place.family is not None:
                costs[place.family] += cost
        return costs

    def owner_of(self, method: str) -> str:
        """The own method that most of a method's own cost is for; "" where none has more than half of it."""
        costs: Counter[str] = Counter()
        for name, _, place, cost in self._tree:
            if name == method:
                costs[place.owner] += cost
        owner, most = costs.most_common(1)[0] if costs else ("", 0)
        return owner if 2 * most > sum(costs.values()) else ""

    def _walk(self, profile: Profile, classes: bool) -> None:
        places = [_ROOT]
        for node in profile.pruned(frames=_MOST_NODES).nodes()[1:]:
            cost, above = node.self_value, places[node.parent]
            place = above if classes and cost else self._below(above, node.name, node.kind)
            places.append(place)
            self._tree.append((node.name, node.parent, place, cost))
            if place.owner:
                self.owners[place.owner] += cost
            if place.family:
                self.families[place.family] += cost
            if node.kind == "kernel":
                self.kernel_callers[place.caller] += cost

    def _below(self, above: _Place, name: str, kind: str) -> _Place:
        key = (name, kind)
        if key not in self._known:
            self._known[key] = (is_own(name, kind), family_of(name))
        own, family = self._known[key]
        caller = above.caller if kind == "kernel" else name
        return _Place(name, None, caller) if own else _Place(above.owner, above.family or family, caller)
