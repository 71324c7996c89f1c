"""Of which methods the processes tell whether they changed: those of a role that has several on both sides.

One JVM compiles and inlines otherwise than the next: from one process to one other some methods move by more
than what counting samples makes of them, in the same program on the same host.
"""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.report.diff.changes import Changes, MethodChange

FEWEST = 3
WHY = f"fewer than {FEWEST} processes of a role on a side"


def told_apart(
    changes: Changes, grown: Sequence[MethodChange]
) -> tuple[list[MethodChange], list[MethodChange]]:
    """Methods that surely grew, and those of which it cannot be told.

    It can where half or more of what the method costs after is of roles with `FEWEST` processes on both
    sides. A file does not say of how many processes it is: what grew there is taken at its word.
    """
    if changes.before.facts is None or changes.after.facts is None:
        return list(grown), []
    sure = [one for one in grown if _of_several(changes, one.name)]
    return sure, [one for one in grown if one not in sure]


def hidden(changes: Changes, limit: float) -> tuple[MethodChange, float] | None:
    """The method that grew the most by more than `limit`, and the noise that hides it, as parts of the whole.

    Only where a run has fewer than `FEWEST` processes: the spread of more than that tells what is chance.
    """
    if changes.before.facts is None or changes.after.facts is None or fewest(changes) >= FEWEST:
        return None
    for one in changes.may_have_grown_over(limit):
        moved = max(one.own, one.total, key=lambda moved: moved.change)
        return one, (moved.noise or 0.0) / changes.whole
    return None


def fewest(changes: Changes) -> int:
    """How many processes the side has that has fewer."""
    return min(changes.before.spread.parts, changes.after.spread.parts)


def _of_several(changes: Changes, name: str) -> bool:
    """Whether at least half of the method is of roles that tell."""
    before, after = changes.before.spread.kinds, changes.after.spread.kinds
    told = whole = 0
    for role, kind in after.items():
        sums = kind.sums("all", name)
        cost = sums.cost if sums is not None else 0
        whole += cost
        if kind.parts >= FEWEST and role in before and before[role].parts >= FEWEST:
            told += cost
    return 2 * told >= whole
