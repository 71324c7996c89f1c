"""Methods whose cost grows with the size of a job: what a run with more cores spends more CPU time in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hprofiler.analysis.diff import compare_paths
from hprofiler.analysis.diff_sides import Listener

_LEAST = 0.01
"""Of the CPU time of the smaller run: less growth is not shown."""


@dataclass(frozen=True)
class GrownMethod:
    """A method's own CPU time in a whole job, in milliseconds, of its smallest and its largest run."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class Growth:
    """From the smallest recorded run to the largest, by their sizes: methods, the most first."""

    sizes: tuple[float, float]
    methods: Sequence[GrownMethod]


def grown_methods(
    before: Path, after: Path, cpu: tuple[float, float], listener: Listener
) -> list[GrownMethod]:
    """The methods of two run folders that grew beyond chance, the most first.

    `cpu` is the CPU time of both jobs (milliseconds): the recorded part stands for the whole. Raises as
    `compare_paths` does.
    """
    found = []
    for one in compare_paths(before, after, "cpu", False, listener).methods:
        method = GrownMethod(one.name, one.own.before * cpu[0], one.own.after * cpu[1])
        chance = (one.own.noise or 0.0) * cpu[1]
        if method.after - method.before > max(chance, _LEAST * cpu[0]):
            found.append(method)
    return sorted(found, key=lambda one: one.before - one.after)
