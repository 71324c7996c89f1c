"""Stragglers: tasks that are far slower for what they read than the others of their stage, and why.

A task's inverse progress rate is its duration by the bytes that it read, or its duration alone in stages
without input. A straggler's is more than 1.5 times the stage's median. A cause explains it if it is none any
more once the cause took no time in all tasks of the stage (Ousterhout et al., NSDI 2015).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import compress
from math import inf
from statistics import median, median_low

from hprofiler.spark.application import LOCALITIES, READ_COLUMNS, SUCCESS, Application
from hprofiler.spark.replay.schedule import Gain, Replay, ReplayStage

SLOW = 1.5
"""A straggler's inverse progress rate is more than so many times the median."""
FEWEST = 3
"""Stages with fewer tasks have no stragglers: their median says too little."""
_MOST_SHOWN = 20
_MOST_REPLAYED = 3
_FAR_BELOW = 0.5
_FAR_ABOVE = 5
_FEWEST_ON_A_HOST = 3
_TIMES = {
    "gc": ("gc_time", 1.0),
    "shuffle read": ("fetch_wait", 1.0),
    "shuffle write": ("shuffle_write_time", 1e-6),
    "scheduler": ("scheduler_delay", 1.0),
}
CAUSES = (*_TIMES, "data", "output", "spill", "locality", "cold", "host", "cpu")
"""In the order in which they are shown. A task has more `data` where most others read nothing, so that rates
are by duration. A JVM is cold for tasks that began before any task of the stage had ended on it. A task has
little CPU if it was on one for less than half of the others' part of the time."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """A straggler. `times` is its rate by the stage's median; `lost` is by how many milliseconds it is longer
    than with the median rate. `causes` are of CAUSES, and may be none. A task that is `running` had run
    for so long when Spark was asked, or its log ended."""

    stage: int
    attempt: int
    tid: int
    index: int
    executor: str
    host: str
    duration: int
    times: float
    lost: float
    causes: tuple[str, ...]
    running: bool


@dataclass(frozen=True, slots=True)
class Waves:
    """The first tasks of a stage on each executor against later ones: how many, and their median rates (see
    StageStragglers.by_bytes); None where there are none."""

    first: int
    later: int
    first_rate: float | None
    later_rate: float | None

    @property
    def times(self) -> float | None:
        """How many times slower the first ones are."""
        return self.first_rate / self.later_rate if self.first_rate and self.later_rate else None


@dataclass(frozen=True, slots=True)
class StageStragglers:
    """The stragglers of a stage with all its attempts. With `by_bytes` rates are milliseconds a byte, else
    milliseconds.

    `without_rate` are tasks that read nothing, in a stage whose others do. `lost` is the sum of the
    stragglers'. `gain` is known of the stages that lose most. `causes` counts stragglers, which may have
    several.
    """

    stage: int
    attempts: tuple[int, ...]
    name: str
    tasks: int
    by_bytes: bool
    without_rate: int
    stragglers: int
    lost: float
    causes: dict[str, int]
    waves: Waves
    gain: Gain | None = None


@dataclass(frozen=True)
class Stragglers:
    """The stragglers of an application: `gain` is what it would gain at best if each rate above its stage's
    median were the median. `stages` are those that have any, the most lost time first; so are `worst`, the
    tasks, with what the application would gain without each alone."""

    gain: Gain
    count: int
    stages: tuple[StageStragglers, ...]
    worst: tuple[tuple[Straggler, Gain | None], ...]


def stragglers(application: Application, replay: Replay) -> Stragglers:
    usual: dict[int, Sequence[float]] = {}
    found: list[tuple[int, StageStragglers]] = []
    worst: list[tuple[float, int, int, Straggler]] = []
    for number, stage in enumerate(replay.stages):
        if stage.column("status").count(SUCCESS) >= FEWEST:
            one = _Stage(application, stage)
            usual[number] = one.usual
            if one.slow:
                found.append((number, one.summary()))
                tasks = ((task.lost, number, place, task) for place, task in one.worst())
                worst = nlargest(_MOST_SHOWN, [*worst, *tasks], key=lambda row: row[0])
    found.sort(key=lambda pair: -pair[1].lost)
    for rank, (number, summary) in enumerate(found[:_MOST_REPLAYED]):
        gain = replay.gain({number: usual[number]})
        found[rank] = number, replace(summary, gain=gain)
    return Stragglers(
        replay.gain(usual) if usual else Gain(0.0, 0.0),
        sum(summary.stragglers for _, summary in found),
        tuple(summary for _, summary in found),
        tuple(_with_gains(replay, usual, worst)),
    )


def _with_gains(
    replay: Replay, usual: Mapping[int, Sequence[float]], worst: Sequence[tuple[float, int, int, Straggler]]
) -> Iterator[tuple[Straggler, Gain | None]]:
    """The worst tasks, the first few with what the application would gain without each."""
    for rank, (_, number, place, task) in enumerate(worst):
        gain = None
        if rank < _MOST_REPLAYED:
            durations = array("f", replay.stages[number].held)
            durations[place] = min(durations[place], usual[number][place])
            gain = replay.gain({number: durations})
        yield task, gain


class _Stage:
    """A stage's rates; 0 for a task without one. Medians are of tasks that have `ended`. `usual` is how long
    tasks take if no rate is above the median, `slow` are the stragglers by their place in the stage, with the
    time they lose, and `causes` those that each cause explains."""

    def __init__(self, application: Application, stage: ReplayStage) -> None:
        self.application, self.stage = application, stage
        sizes = [stage.column(name) for name in READ_COLUMNS]
        read = array("q", map(sum, zip(*sizes, strict=True)))
        # Where most tasks read nothing, the few that do say nothing of how fast the others should be.
        self.ended = [status == SUCCESS for status in stage.column("status")]
        self.by_bytes = 2 * sum(map(bool, compress(read, self.ended))) > sum(self.ended)
        self.read = read
        self.sizes: Sequence[float] = read if self.by_bytes else [1] * len(stage)
        if self.by_bytes:  # of tasks that run nobody knows how much they will have read
            usual_size = self._usual(self.sizes)
            pairs = zip(self.sizes, self.ended, strict=True)
            self.sizes = [size if ended else max(size, usual_size) for size, ended in pairs]
        self.rates = self._rates(stage.duration, self.sizes)
        self.median = self._usual(self.rates)
        self.executors = stage.column("executor")
        self.first = _first(stage, self.executors)
        usual = (
            min(time, self.median * size) if size else time
            for time, size in zip(stage.held, self.sizes, strict=True)
        )
        self.usual = array("f", usual)
        limit = SLOW * self.median if self.median else inf  # of tasks that took no time nobody is slow
        self.slow = {
            place: stage.duration[place] - self.median * self.sizes[place]
            for place, rate in enumerate(self.rates)
            if rate > limit
        }
        self.lost = sum(self.slow.values())
        self.causes = self._causes(list(self.slow)) if self.slow else {}

    def _rates(self, durations: Sequence[float], sizes: Sequence[float]) -> array[float]:
        pairs = zip(durations, sizes, strict=True)
        return array("d", (time / size if size else 0.0 for time, size in pairs))

    def _usual(self, values: Sequence[float]) -> float:
        return _median(list(compress(values, self.ended)))

    def worst(self) -> list[tuple[int, Straggler]]:
        places = nlargest(_MOST_SHOWN, self.slow, key=self.slow.__getitem__)
        tids, indices = self.stage.column("tid"), self.stage.column("index")
        return [(place, self._describe(place, tids[place], indices[place])) for place in places]

    def _describe(self, place: int, tid: int, index: int) -> Straggler:
        executor, host = self._where(self.executors[place])
        return Straggler(
            self.stage.id,
            self.stage.attempt_of(place),
            tid,
            index,
            executor,
            host,
            self.stage.duration[place],
            self.rates[place] / self.median,
            self.slow[place],
            tuple(cause for cause in CAUSES if place in self.causes[cause]),
            not self.ended[place],
        )

    def summary(self) -> StageStragglers:
        waves = list(compress(zip(self.rates, self.first, strict=True), self.ended))
        first = [rate for rate, is_first in waves if rate and is_first]
        later = [rate for rate, is_first in waves if rate and not is_first]
        return StageStragglers(
            self.stage.id,
            self.stage.attempt_numbers,
            self.stage.name,
            len(self.stage),
            self.by_bytes,
            self.rates.count(0.0) if self.by_bytes else 0,
            len(self.slow),
            self.lost,
            {cause: len(places) for cause, places in self.causes.items() if places},
            Waves(len(first), len(later), _median(first) or None, _median(later) or None),
        )

    def _where(self, executor: int) -> tuple[str, str]:
        ids = self.application.executor_ids
        id_ = ids[executor] if executor < len(ids) else str(executor)
        known = self.application.executors.get(id_)
        return id_, known.host if known else ""

    def _causes(self, slow: Sequence[int]) -> dict[str, set[int]]:
        """The stragglers that each cause explains."""
        causes = {name: self._by_time(slow, column, unit) for name, (column, unit) in _TIMES.items()}
        causes["data"] = set() if self.by_bytes else self._by_data(slow)
        causes["output"] = self._by_output(slow)
        causes["spill"] = self._by_spill(slow)
        causes["locality"] = self._by_locality(slow)
        causes["cold"] = self._among(slow, [place for place, first in enumerate(self.first) if first])
        causes["host"] = self._by_host(slow)
        causes["cpu"] = self._by_cpu(slow)
        return causes

    def _by_time(self, slow: Sequence[int], column: str, unit: float) -> set[int]:
        """Those that are stragglers no more where this took no time in all tasks."""
        times = self.stage.column(column)
        if not any(times[place] for place in slow):
            return set()
        pairs = zip(self.stage.duration, times, strict=True)
        without = array("d", (max(0.0, time - unit * less) for time, less in pairs))
        return self._no_more(slow, self._rates(without, self.sizes))

    def _no_more(self, slow: Sequence[int], rates: Sequence[float]) -> set[int]:
        limit = SLOW * self._usual(rates)
        return {place for place in slow if rates[place] <= limit}

    def _among(self, slow: Sequence[int], like: Sequence[int]) -> set[int]:
        """Those that are no stragglers among tasks like them."""
        limit = SLOW * _median([self.rates[place] for place in like])
        alike = set(like)
        return {place for place in slow if place in alike and self.rates[place] <= limit}

    def _by_data(self, slow: Sequence[int]) -> set[int]:
        """Those that read far more than the mean."""
        limit = _FAR_ABOVE * sum(self.read) / len(self.read)
        return {place for place in slow if self.read[place] > limit}

    def _by_output(self, slow: Sequence[int]) -> set[int]:
        columns = (self.stage.column("output_bytes"), self.stage.column("shuffle_write_bytes"))
        output = array("q", map(int.__add__, *columns))
        if 2 * sum(map(bool, output)) <= len(output):
            return set()
        rates = self._rates(self.stage.duration, output)
        usual = median(output)
        return {place for place in self._no_more(slow, rates) if output[place] > usual}

    def _by_spill(self, slow: Sequence[int]) -> set[int]:
        spilled = self.stage.column("disk_spilled")
        if 2 * sum(map(bool, spilled)) >= len(spilled):
            return set()
        return {place for place in slow if spilled[place]}

    def _by_locality(self, slow: Sequence[int]) -> set[int]:
        """Tasks on another host than their data (RACK_LOCAL, ANY), where most are on it."""
        far = (LOCALITIES.index("RACK_LOCAL"), LOCALITIES.index("ANY"))
        locality = self.stage.column("locality")
        like = [place for place, one in enumerate(locality) if one in far]
        return self._among(slow, like) if 2 * len(like) < len(locality) else set()

    def _by_host(self, slow: Sequence[int]) -> set[int]:
        """Tasks of hosts whose median is that of a straggler among the other hosts'.

        Tasks without a rate, which read nothing, say nothing of their host.
        """
        hosts: dict[str, list[int]] = {}
        for place, executor in enumerate(self.executors):
            if self.rates[place]:
                hosts.setdefault(self._where(executor)[1], []).append(place)
        if len(hosts) < 2:
            return set()
        slow_hosts = set()
        medians = {host: _median([self.rates[place] for place in places]) for host, places in hosts.items()}
        usual = median_low(medians.values())
        for host, places in hosts.items():
            if len(places) >= _FEWEST_ON_A_HOST and medians[host] > SLOW * usual:
                slow_hosts.update(places)
        return slow_hosts.intersection(slow)

    def _by_cpu(self, slow: Sequence[int]) -> set[int]:
        pairs = zip(self.stage.column("cpu_time"), self.stage.column("run_time"), strict=True)
        shares = [cpu / 1e6 / run if run else 0.0 for cpu, run in pairs]
        limit = _FAR_BELOW * self._usual(shares)
        return {place for place in slow if self.ended[place] and shares[place] < limit}


def _first(stage: ReplayStage, executors: Sequence[int]) -> list[bool]:
    """Whether each task began before any task of the stage had left its slot on its executor.

    The driver launches the next task on a slot a few milliseconds before it notes the end of the last one.
    """
    ended: dict[int, int] = {}
    for executor, launch, time in zip(executors, stage.launch, stage.held, strict=True):
        ended[executor] = min(ended.get(executor, launch + time), launch + time)
    return [launch < ended[executor] for executor, launch in zip(executors, stage.launch, strict=True)]


def _median(values: Sequence[float]) -> float:
    """Of the values that are not 0; 0 if there are none."""
    known = [value for value in values if value]
    return median(known) if known else 0.0
