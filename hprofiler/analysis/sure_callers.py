"""Callers of stubs and intrinsics: which are surely right, and which methods' totals are not known.

Without debug information compiled code knows what is inlined only at safepoints. Stubs, intrinsics and page
faults are entered without one: they stand below a wrong inlined method (docs/reference/limits.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler._flamegraph import Profile, SureCallers
from hprofiler.analysis.waits import WAITING

_EVERYTHING = 2**31 - 1
# A total is known if not more than this part of the whole may be, or not be, of it.
MOST_DOUBT = 0.01


class Callers:
    """Profiles that are compared, one or two: their trees with such code below its nearest sure caller.

    With `waits` some stacks end in names of waits, whose callers are sure. `wholes` are what costs are parts
    of if that is more than the profiles.
    """

    def __init__(self, profiles: Sequence[Profile], waits: bool, wholes: Sequence[int] = ()) -> None:
        self._waits = waits
        self._sure = SureCallers([self._running(one) for one in profiles])
        self.trees = [self.cut(one) for one in profiles]
        self.code = frozenset(self._sure.code)
        self._doubts = self._sure.doubts
        self._totals = [{one.name: one.total_value for one in tree.top(_EVERYTHING)} for tree in self.trees]
        self._wholes = wholes or [one.total() for one in profiles]

    def cut(self, profile: Profile) -> Profile:
        """The same of another profile, such as one process of them."""
        cut = self._sure.cut(self._running(profile))
        if self._waits:
            cut.merge(profile.filter(include=WAITING))
        return cut

    def _running(self, profile: Profile) -> Profile:
        return profile.filter(exclude=WAITING) if self._waits else profile

    def doubt(self, method: str) -> list[int]:
        """What a method's totals may have too much, or too little."""
        return self._doubts.get(method) or [0] * len(self._wholes)

    def is_unknown(self, method: str) -> bool:
        """Its total may be wrong by more than a little."""
        doubts = zip(self.doubt(method), self._wholes, strict=True)
        return any(doubt > MOST_DOUBT * whole for doubt, whole in doubts)

    def most(self, method: str) -> list[int]:
        """A method's totals with all code that it may have called."""
        known = (totals.get(method, 0) for totals in self._totals)
        return [total + doubt for total, doubt in zip(known, self.doubt(method), strict=True)]

    @property
    def unknown(self) -> list[str]:
        """The methods whose totals are not known."""
        return sorted(filter(self.is_unknown, self._doubts))
