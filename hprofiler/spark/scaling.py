"""How an application's elapsed time changes with its size: a table of runs, and two laws fitted to it.

Throughput at size N is X(N) = gN / (1 + a(N-1) + bN(N-1)): the Universal Scalability Law, where a is
contention and b coherence. With b = 0 it is Amdahl's law. Throughput is given as speed-up, so g is the
efficiency at N = 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, isfinite, sqrt
from statistics import fmean
from types import MappingProxyType
from typing import Any

from hprofiler.base.bounded_json import members
from hprofiler.spark.application import Application, Executor, task_slots
from hprofiler.spark.facts import SparkError
from hprofiler.spark.figures import Figures

SIZES = ("executors", "cores", "tasks")
"""What N may be, besides a property of Spark; `tasks` are those that can run at the same time."""
_SAME_WORK = 1.05
_NOISY = 1.5
"""The longest run of a size takes usually less than so many times the shortest one."""
_ENOUGH_RUNS = 3
_ENOUGH_POINTS = 6
_SUPER_LINEAR = 1.02
"""Efficiency above 1 by less is chance, or rounding."""
_NOTHING = 1e-12
"""Parameters below are 0 but for rounding."""
_REPLICAS = 500
_SEED = 20
_STEPS = 200
_PRECISE = 1e-12
_A_GRID = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_B_GRID = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class SizedRun:
    """One application. Times are milliseconds, `cpu_time` nanoseconds; sums are over succeeded tasks."""

    source: str
    n: float
    elapsed: float
    run_time: float = 0
    cpu_time: float = 0
    gc_time: float = 0
    bytes: float = 0
    tasks: float = 0
    ended: bool = True

    def record(self) -> dict[str, Any]:
        return {"source": self.source, "n": self.n, "completed": self.ended, **_sums_record(self)}


@dataclass(frozen=True)
class Point:
    """The runs of one size: their means as `mean`, and the shortest and longest elapsed time."""

    mean: SizedRun
    runs: int
    least: float
    most: float
    speedup: float

    @property
    def n(self) -> float:
        return self.mean.n

    @property
    def efficiency(self) -> float:
        return self.speedup / self.n

    def record(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "runs": self.runs,
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "elapsedTimeLeast": self.least,
            "elapsedTimeMost": self.most,
            **_sums_record(self.mean),
        }


Interval = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """A fitted law with these parameters `free` besides g: "a", or "ab".

    Intervals hold 95 % of the bootstrap's fits; None if there are too few runs for one.
    """

    free: str
    g: float
    a: float
    b: float
    intervals: Mapping[str, Interval] | None

    @property
    def limit(self) -> float | None:
        """The speed-up that larger sizes come near to; with coherence it falls again instead."""
        return self.g / self.a if self.a > _NOTHING and self.b <= _NOTHING else None

    @property
    def peak(self) -> float | None:
        """The size with the highest throughput, if the runs show that there is one."""
        least = self.intervals["b"][0] if self.intervals and "b" in self.free else 0.0
        if self.a >= 1 or least <= _NOTHING:
            return None
        return sqrt((1 - self.a) / self.b)

    def at(self, n: float) -> float:
        return self.g * _shape(n, self.a, self.b)

    def record(self) -> dict[str, Any]:
        intervals = {name: list(one) for name, one in self.intervals.items()} if self.intervals else None
        return {**members(self, "g", "a", "b"), "intervals": intervals, **members(self, "limit", "peak")}


@dataclass(frozen=True)
class Warned:
    """Why the table or a fit may mislead."""

    code: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Scaling:
    """All that is known of the runs. Speed-up is relative to the smallest size.

    A law is None if there are fewer sizes than it has parameters.
    """

    runs: Sequence[SizedRun]
    points: Sequence[Point]
    amdahl: Fit | None
    usl: Fit | None
    warnings: Sequence[Warned]

    def record(self) -> dict[str, Any]:
        return {
            "points": [one.record() for one in self.points],
            "runs": [one.record() for one in self.runs],
            "fits": {
                "amdahl": self.amdahl.record() if self.amdahl else None,
                "usl": self.usl.record() if self.usl else None,
            },
            "warnings": [{"code": one.code, **one.parameters} for one in self.warnings],
        }


def run_of(source: str, application: Application, found: Figures, by: str) -> SizedRun:
    """An application as a run. Raises SparkError if it has no stage, or its size is unknown."""
    if not found.elapsed:
        raise SparkError(f"{source}: no stage ran", "leave it out")
    start = min(one.stage.start for one in found.stages if one.stage.start)
    elapsed = found.elapsed
    if 0 < application.start < application.end:
        start, elapsed = application.start, application.end - application.start
    n = _size(application, by, start, start + elapsed)
    if not n:
        remedy = "try --by executors, a property of Spark whose value is a number, or leave the run out"
        raise SparkError(f"{source}: its size by {by} is unknown", remedy)
    sums = found.work["succeeded"].sums
    return SizedRun(
        source,
        n,
        elapsed,
        sums["executorRunTime"],
        sums["executorCpuTime"],
        sums["jvmGCTime"],
        sums["bytesRead"] + sums["bytesWritten"] + sums["shuffleBytesWritten"],
        found.work["succeeded"].tasks,
        application.end > 0,
    )


def scaling(runs: Sequence[SizedRun], failed: Mapping[str, str] = MappingProxyType({})) -> Scaling:
    """`failed` are reasons by the source of runs that were left out."""
    points = table(runs)
    base = points[0]
    measured = [(one.n, base.n * base.mean.elapsed / one.elapsed) for one in runs]
    amdahl = _fit(measured, "a") if len(points) >= 2 else None
    usl = _fit(measured, "ab") if len(points) >= 3 else None
    left_out = [Warned("failed", {"source": source, "reason": reason}) for source, reason in failed.items()]
    return Scaling(runs, points, amdahl, usl, [*left_out, *_warnings(runs, points, usl)])


def table(runs: Sequence[SizedRun]) -> list[Point]:
    """The means of the runs of each size, by size. There is at least one run."""
    by_size: dict[float, list[SizedRun]] = {}
    for run in sorted(runs, key=lambda one: one.n):
        by_size.setdefault(run.n, []).append(run)
    means = {n: _mean(group) for n, group in by_size.items()}
    base = next(iter(means.values()))
    return [
        Point(
            means[n],
            len(group),
            min(one.elapsed for one in group),
            max(one.elapsed for one in group),
            base.n * base.elapsed / means[n].elapsed,
        )
        for n, group in by_size.items()
    ]


def _mean(runs: Sequence[SizedRun]) -> SizedRun:
    names = ("elapsed", "run_time", "cpu_time", "gc_time", "bytes", "tasks")
    means = {name: fmean(getattr(one, name) for one in runs) for name in names}
    return SizedRun("", runs[0].n, ended=all(one.ended for one in runs), **means)


def _sums_record(run: SizedRun) -> dict[str, Any]:
    return {
        "elapsedTime": run.elapsed,
        "executorRunTime": run.run_time,
        "executorCpuTime": run.cpu_time,
        "jvmGCTime": run.gc_time,
        "bytes": run.bytes,
        "numTasks": run.tasks,
    }


def _size(application: Application, by: str, since: int, until: int) -> float:
    """N: the most at any moment; with dynamic allocation, the average over the elapsed time. 0 if unknown."""
    if by not in SIZES:
        return _number(application.properties.get(by, ""))
    weights: dict[str, Callable[[Executor], int]] = {
        "executors": lambda one: 1,
        "cores": lambda one: max(0, one.cores),
        "tasks": lambda one: task_slots(application, one),
    }
    changes = []
    for one in application.workers:
        begin, end = max(since, one.added), min(until, one.removed or until)
        if begin < end:
            changes += [(begin, weights[by](one)), (end, -weights[by](one))]
    changes.sort()
    if application.properties.get("spark.dynamicAllocation.enabled") == "true":
        return round(sum(-moment * change for moment, change in changes) / (until - since), 1)
    return max(accumulate(change for _, change in changes), default=0)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0
    return found if 0 < found < inf else 0


def _warnings(runs: Sequence[SizedRun], points: Sequence[Point], usl: Fit | None) -> list[Warned]:
    found = []
    for what in ("bytes", "tasks"):
        values = [getattr(one, what) for one in runs]
        if max(values) > _SAME_WORK * min(values):
            found.append(Warned("different-work", {"what": what, "least": min(values), "most": max(values)}))
    open_ones = [one.source for one in runs if not one.ended]
    if open_ones:
        found.append(Warned("not-ended", {"sources": open_ones}))
    above = [one.n for one in points if one.efficiency > _SUPER_LINEAR]
    if above:
        found.append(Warned("super-linear", {"sizes": above}))
    few = [one.n for one in points if one.runs < _ENOUGH_RUNS]
    if few:
        found.append(Warned("few-runs", {"sizes": few, "enough": _ENOUGH_RUNS}))
    if len(points) == 1 and len(runs) > 1:
        found.append(Warned("one-size", {"size": points[0].n}))
    elif len(points) < _ENOUGH_POINTS:
        found.append(Warned("few-points", {"points": len(points), "enough": _ENOUGH_POINTS}))
    noisy = [one.n for one in points if one.most > _NOISY * one.least]
    if noisy:
        found.append(Warned("runs-differ", {"sizes": noisy, "times": _NOISY}))
    if usl and ((usl.intervals and usl.peak is None) or (usl.peak or 0) > points[-1].n):
        found.append(Warned("no-peak", {"largest": points[-1].n}))
    return found


# Least squares. g follows from a and b, so that only these are searched.

Measured = Sequence[tuple[float, float]]


def _shape(n: float, a: float, b: float) -> float:
    below = 1 + a * (n - 1) + b * n * (n - 1)
    return n / below if below > 0 else inf


def _scale(measured: Measured, a: float, b: float) -> tuple[float, float]:
    """The best g, and the sum of squared errors with it."""
    shapes = [_shape(n, a, b) for n, _ in measured]
    if not all(map(isfinite, shapes)):
        return 0.0, inf
    g = sum(x * u for (_, x), u in zip(measured, shapes, strict=True)) / sum(u * u for u in shapes)
    return g, sum((x - g * u) ** 2 for (_, x), u in zip(measured, shapes, strict=True))


def _fit(measured: Measured, free: str) -> Fit:
    """The law with these parameters free ("a" or "ab"), with intervals by a bootstrap of its residuals."""
    start = min(
        ((a, b) for a in _A_GRID for b in (_B_GRID if "b" in free else (0.0,))),
        key=lambda pair: _scale(measured, *pair)[1],
    )
    g, a, b = _solve(measured, free, start)
    freedom = len(measured) - 1 - len(free)
    if freedom < 1:
        return Fit(free, g, a, b, None)
    fitted = [(n, g * _shape(n, a, b)) for n, _ in measured]
    # Residuals of a fit are smaller than the errors of what it was fitted to.
    wider = sqrt(len(measured) / freedom)
    residuals = [wider * (x - y) for (_, x), (_, y) in zip(measured, fitted, strict=True)]
    chance = random.Random(_SEED)
    found = []
    for _ in range(_REPLICAS):
        replica = [(n, y + chance.choice(residuals)) for n, y in fitted]
        found.append(_solve(replica, free, (a, b)))
    columns = dict(zip("gab", zip(*found, strict=True), strict=True))
    return Fit(free, g, a, b, {name: _middle(columns[name]) for name in f"g{free}"})


_BOUNDS = (
    ("", 0.0, 0.0),
    ("", 1.0, 0.0),
    ("a", 0.0, 0.0),
    ("b", 0.0, 0.0),
    ("b", 1.0, 0.0),
    ("ab", 0.0, 0.0),
)
"""What is searched, and where a and b are if they are not."""


def _middle(values: Sequence[float]) -> Interval:
    """The range of 95 % of the values."""
    ordered = sorted(values)
    out = len(ordered) // 40
    return ordered[out], ordered[-1 - out]


def _solve(measured: Measured, free: str, start: tuple[float, float]) -> tuple[float, float, float]:
    """(g, a, b) with the least error, 0 <= a <= 1 and b >= 0: inside the bounds, or at them."""
    best, least = (0.0, 0.0, 0.0), inf
    for chosen, a, b in _BOUNDS:
        if set(chosen) <= set(free):
            begin = (start[0] if "a" in chosen else a, start[1] if "b" in chosen else b)
            a, b = _descend(measured, chosen, begin)
            g, error = _scale(measured, a, b)
            if 0 <= a <= 1 and b >= 0 and error < least:
                best, least = (g, a, b), error
    return best


def _descend(measured: Measured, free: str, start: tuple[float, float]) -> tuple[float, float]:
    """The nearest minimum without bounds, by Levenberg's and Marquardt's method; what is not free stays."""
    if not free:
        return start
    a, b = start
    damping = 1e-3
    error = _scale(measured, a, b)[1]
    for _ in range(_STEPS):
        step = _step(measured, free, a, b, damping)
        near = _scale(measured, a + step[0], b + step[1])[1]
        if near > error:
            damping *= 10
            if damping > 1e12:
                break
            continue
        a, b = a + step[0], b + step[1]
        damping = max(damping / 10, 1e-12)
        done = error - near <= _PRECISE * error
        error = near
        if done:
            break
    return a, b


def _step(measured: Measured, free: str, a: float, b: float, damping: float) -> tuple[float, float]:
    """One step in a and b. Their derivatives are taken orthogonal to the shape, as g follows."""
    shapes = [_shape(n, a, b) for n, _ in measured]
    g, _ = _scale(measured, a, b)
    errors = [x - g * u for (_, x), u in zip(measured, shapes, strict=True)]
    by_a = [-g * u * u * (n - 1) / n for (n, _), u in zip(measured, shapes, strict=True)]
    by_b = [-g * u * u * (n - 1) for (n, _), u in zip(measured, shapes, strict=True)]
    left_a, left_b = _without(by_a, shapes), _without(by_b, shapes)
    aa, bb = _dot(left_a, left_a) * (1 + damping), _dot(left_b, left_b) * (1 + damping)
    ab, ea, eb = _dot(left_a, left_b), _dot(left_a, errors), _dot(left_b, errors)
    if free == "a":
        return (ea / aa if aa else 0.0), 0.0
    if free == "b":
        return 0.0, (eb / bb if bb else 0.0)
    whole = aa * bb - ab * ab
    return ((ea * bb - eb * ab) / whole, (eb * aa - ea * ab) / whole) if whole else (0.0, 0.0)


def _without(values: Sequence[float], direction: Sequence[float]) -> list[float]:
    share = _dot(values, direction) / _dot(direction, direction)
    return [value - share * part for value, part in zip(values, direction, strict=True)]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(left, right, strict=True))
