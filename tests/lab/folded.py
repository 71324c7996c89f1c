"""The tests' own reader of folded stacks: shares of methods and order of callers."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANNOTATION = re.compile(r"_\[[0-9a-z]\]$")
LEAST_SAMPLES = 30


class Stacks:
    """Folded stacks: frames outermost first without tier annotation, and their counts."""

    def __init__(self, folded: str) -> None:
        lines = (line.rpartition(" ") for line in folded.splitlines())
        self.stacks = [
            ([ANNOTATION.sub("", frame) for frame in frames.split(";")], int(count))
            for frames, _, count in lines
        ]

    @property
    def total(self) -> int:
        return sum(count for _, count in self.stacks)

    def under(self, method: str) -> Stacks:
        """The stacks with the method anywhere."""
        found = Stacks("")
        found.stacks = [(frames, count) for frames, count in self.stacks if method in frames]
        return found

    def count(self, method: str) -> int:
        """Samples with the method anywhere in the stack."""
        return sum(count for frames, count in self.stacks if method in frames)

    def share(self, method: str) -> float:
        """Percent of all samples with the method anywhere in the stack."""
        return 100 * self.count(method) / self.total

    def tolerance(self) -> float:
        """The allowed error of a share in percentage points: two, and 4.5 standard deviations.

        With few samples that allows everything, so check their number too.
        """
        assert self.total >= LEAST_SAMPLES, f"{self.total} samples are too few to judge shares by"
        return float(2.0 + 450 * (0.7 * 0.3 / self.total) ** 0.5)

    def path_share(self, path: Sequence[str]) -> float:
        """Percent of the samples with the path's last method that show the whole path, in this order."""
        through = sum(count for frames, count in self.stacks if _has(frames, path))
        return 100 * through / max(1, self.count(path[-1]))


def _has(frames: Sequence[str], path: Sequence[str]) -> bool:
    rest = iter(frames)
    return all(frame in rest for frame in path)
