"""What grows with the size of a job: methods and kinds of work that take more CPU time with more cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hprofiler.analysis.diff import compare_paths
from hprofiler.analysis.diff_sides import LeftOut, Listener, open_side

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
    """From the smallest recorded run to the largest, by their sizes: methods, the most first.

    `work` has the CPU time of each category in the whole job, in milliseconds, by size.
    """

    sizes: tuple[float, float]
    methods: Sequence[GrownMethod]
    work: Mapping[float, Mapping[str, float]]


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


def work_by_size(
    runs: Iterable[tuple[float, Path, float]], listener: Listener
) -> dict[float, dict[str, float]]:
    """CPU time by category of work, of runs with a size, a folder and the job's CPU time (milliseconds).

    Of several runs of a size it is the mean.
    """
    found: dict[float, list[dict[str, float]]] = {}
    for size, folder, cpu in runs:
        source = open_side(folder)
        if "cpu" not in source.events:
            continue
        work = source.read("cpu", source.events["cpu"], listener, None, LeftOut()).categories
        shares = {name[1:-1]: work.cost("own", name) / work.total for name in work.names()}
        found.setdefault(size, []).append({name: share * cpu for name, share in shares.items()})
    return {size: _mean(of_size) for size, of_size in sorted(found.items())}


def _mean(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = sorted({name for one in runs for name in one})
    return {name: sum(one.get(name, 0.0) for one in runs) / len(runs) for name in names}
