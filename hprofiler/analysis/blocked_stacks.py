"""What tasks of Spark are blocked on, by their stacks: the rules `blocked` of `flamegraph/rules/frames.yaml`.

A sample of wall-clock time says where a thread was, and not for how long it had waited. Spark's own metrics,
such as Fetch Wait Time, are times of whole waits, of some of the places where tasks wait. Both see the same
waits by other means: they never add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from hprofiler._flamegraph import Profile, category_patterns

BLOCKED_ON = {
    "shuffle-fetch": "shuffle fetch",
    "shuffle-write": "shuffle write and spill",
    "hdfs": "HDFS",
    "object-store": "object store",
    "python": "Python",
    "memory": "execution memory",
    "broadcast": "broadcast and block locks",
    "child-process": "child processes",
    "socket": "other sockets",
    "local-disk": "local disk read",
    "monitor": "monitors",
}
"""The text of each rule, in the order of the rules."""
EVENTS = ("wall", "offcpu")
"""Events whose samples say what threads wait for."""


class BlockedRules:
    """The rules for frames, remembered by name."""

    def __init__(self) -> None:
        self._rules = [[re.compile(one) for one in category_patterns(rule)] for rule in BLOCKED_ON]
        self._known: dict[str, tuple[int, int]] = {}

    def counts(self, profile: Profile) -> dict[str, int]:
        """How many samples are blocked on what."""
        column = next((place for place, (_, unit) in enumerate(profile.values) if unit == "count"), 0)
        counts = [0] * len(BLOCKED_ON)
        for stack in profile.paths(annotate=False):
            place = self.rule_of(stack.frames)
            if place is not None:
                counts[place] += stack.values[column]
        return {rule: count for rule, count in zip(BLOCKED_ON, counts, strict=True) if count}

    def rule_of(self, frames: Sequence[str]) -> int | None:
        """The number of the innermost rule that fits a stack, root first."""
        waits = 0
        for name in reversed(frames):
            here = self._known.get(name)
            if here is None:
                here = self._known[name] = self._of_frame(name)
            below, wait = here
            waits |= wait
            found = waits & below
            if found:
                return (found & -found).bit_length() - 1
        return None

    def _of_frame(self, name: str) -> tuple[int, int]:
        """The rules, as bits, of whose `below` a frame is, and of whose `waits`."""
        below, waits = 0, 0
        for number, rule in enumerate(self._rules):
            if len(rule) == 2:
                below |= (rule[0].match(name) is not None) << number
                waits |= (rule[1].match(name) is not None) << number
        return below, waits


def most_first(blocked: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    """(text, samples) of each rule."""
    ordered = sorted(blocked.items(), key=lambda pair: (-pair[1], pair[0]))
    return ((BLOCKED_ON[rule], count) for rule, count in ordered)
