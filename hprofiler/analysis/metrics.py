"""Rates and derived columns of a host's metrics. Pure functions of the readings.

A column has one value a reading, or None: for the first reading of a counter, where something was not read,
and where a counter is smaller than before. The divisor is the time that passed between two readings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from hprofiler.analysis import counters
from hprofiler.analysis.counters import BANDWIDTH, MACHINE, RATIOS, Group, HostCounters, ratio, with_slots
from hprofiler.model.metrics import Metrics, Series

Values = Sequence[float | None]

_NAMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MODES = tuple(f"{one}_ticks" for one in _NAMES)
_RESTING = ("idle_ticks", "iowait_ticks")
_REQUESTS = ("reads", "writes", "discards")
# Seconds in a unit of time. A counter of time is shown as its share of the time that passed.
_TIME = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SUFFIXES = ("_bytes", "_ms", "_us", "_ns")
# Sums over requests at the same time: parts of formulas, and no shares of the time that passed.
_PARTS = frozenset({"read_ms", "write_ms", "discard_ms", "queue_ms", "wait_ms", "enabled_ns", "running_ns"})
# Read less often where a host has many threads: a rate is since the last reading that has a value.
_SELDOM = frozenset({"run_queue_ns"})
# For how long a group of counters was to count, and did: parts of formulas.
ENABLED, RUNNING = "enabled_ns", "running_ns"
_NO_HEAP = ("used_metaspace", "used_class")
_EDEN = "used_eden"


@dataclass(frozen=True)
class Column:
    """One metric of one thing over time. Units: "%", "B", "B/s", "1/s", "ms", "W"; "" for a number."""

    of: str
    id: str
    name: str
    unit: str
    values: Values


class PythonWorkers(NamedTuple):
    """The CPU seconds of a Spark JVM's Python workers, and the most that there were at a time."""

    seconds: float
    workers: int


class HostMetrics:
    """The metrics of one host, decoded where they are asked for."""

    def __init__(self, metrics: Metrics) -> None:
        self.facts = metrics.facts
        self.times = [one / 1e6 for one in accumulate(metrics.time)]
        """Seconds since 1970 on the coordinator's clock."""
        self.seconds: Values = [None, *(one / 1e6 for one in metrics.time[1:])] if metrics.time else []
        """How long ago the reading before was."""
        self.things: dict[tuple[str, str], dict[str, Series]] = {}
        """The series of each thing by name; things by kind and id."""
        for one in metrics.series:
            self.things.setdefault((one.of, one.id), {})[one.name] = one
        self._groups: dict[str, list[str]] = {}
        for id in self.ids("counters"):
            self._groups.setdefault(id.partition(":")[0], []).append(id)

    def ids(self, of: str) -> list[str]:
        return [id for kind, id in self.things if kind == of]

    def read(self, of: str, id: str, name: str) -> Values:
        """The numbers as they were read; all None if there is no such series."""
        series = self.things.get((of, id), {}).get(name)
        return self._unknown if series is None else series.numbers(len(self.times))

    def increase(self, of: str, id: str, name: str) -> Values:
        """By how much a counter grew since the reading before."""
        values = self.read(of, id, name)
        # The kernel's idle time that waits for I/O is an estimate, which may shrink.
        least = 0.0 if name == "iowait_ticks" else None

        def grown(before: float, after: float) -> float | None:
            return after - before if after >= before else least

        return [None, *_each(grown, values[:-1], values[1:])] if values else []

    def rate(self, of: str, id: str, name: str) -> Values:
        """A counter's increase per second."""
        return _quotient(self.increase(of, id, name), self.seconds)

    def _seldom_rate(self, of: str, id: str, name: str) -> Values:
        """A counter's increase per second since the last reading that has it."""
        found: list[float | None] = []
        before: tuple[float, float] | None = None
        for time, value in zip(self.times, self.read(of, id, name), strict=True):
            if before is None or value is None or value < before[1]:
                found.append(None)
            else:
                found.append((value - before[1]) / (time - before[0]))
            before = before if value is None else (time, value)
        return found

    def increase_of_all(self, of: str, id: str, names: Sequence[str]) -> Values:
        """The sum of the increases of those of these counters that the thing has."""
        there = [name for name in names if name in self.things.get((of, id), {})]
        if not there:
            return self._unknown
        return _each(lambda *grown: sum(grown), *(self.increase(of, id, name) for name in there))

    # Counters. Their things are groups: `PID:GROUP`, or `machine:GROUP`.

    def groups(self, owner: str) -> list[str]:
        return self._groups.get(owner, [])

    def owners(self) -> list[str]:
        """The processes with counters."""
        return [owner for owner in self._groups if owner != MACHINE]

    def counted(self, id: str, name: str) -> Values:
        """A counter's increase, scaled to the whole time. None where it was not counted."""
        increase = self.increase("counters", id, name)
        if ENABLED not in self.things["counters", id]:
            return increase
        enabled, running = (self.increase("counters", id, one) for one in (ENABLED, RUNNING))

        def scaled(value: float, enabled: float, running: float) -> float | None:
            if running > 0:
                return value * enabled / running
            return None if enabled else value  # a process that did not run counts nothing

        return _each(scaled, increase, enabled, running)

    def counters(self) -> HostCounters | None:
        """Sums over the recording. None: nothing was counted."""
        processes = {pid: self._sums(pid) for pid in self.owners()}
        machine = self._sums(MACHINE)
        seconds = self.times[-1] - self.times[0] if self.times else 0.0
        if seconds <= 0 or not (machine or any(processes.values())):
            return None
        return HostCounters(seconds, processes, machine, self.facts.get(BANDWIDTH, 0))

    def _sums(self, owner: str) -> dict[str, Group]:
        found: dict[str, Group] = {}
        for id in self.groups(owner):
            sums = {name: self._span("counters", id, name) for name in self.things["counters", id]}
            grown = {name: value for name, value in sums.items() if value is not None}
            enabled, running = (grown.pop(name, 0.0) for name in (ENABLED, RUNNING))
            if enabled and not running:
                continue  # it was never counted
            scale = enabled / running if running else 1.0
            counts = {name: scale * value for name, value in grown.items()}
            slots = self.facts.get("slots_per_cycle", 0)
            found[id.partition(":")[2]] = Group(with_slots(counts, slots), enabled, running)
        return found

    def _span(self, of: str, id: str, name: str) -> float | None:
        known = [value for value in self.read(of, id, name) if value is not None]
        return known[-1] - known[0] if known else None

    def columns(self) -> Iterator[Column]:
        """All columns with values, thing by thing: derived ones, then rates of counters, and gauges."""
        for (of, id), series in self.things.items():
            names = [name for kind, name in FORMULAS if kind == of]
            for name in (*names, *_shown(series)):
                column = self.column(of, id, name)
                if any(value is not None for value in column.values):
                    yield column

    def column(self, of: str, id: str, name: str) -> Column:
        """One column by its name; its values are all None if what it needs was not read."""
        if (of, name) in FORMULAS:
            unit, formula = FORMULAS[of, name]
            return Column(of, id, name, unit, formula(self, id))
        series = _shown(self.things.get((of, id), {})).get(name)
        if series is None:
            return Column(of, id, name, "", self._unknown)
        size = series.unit == "bytes"
        if of == "counters" and series.unit not in _TIME:
            rate = _quotient(self.counted(id, series.name), self.seconds)
            return Column(of, id, name, "B/s" if size else "1/s", rate)
        if series.kind == "gauge":
            return Column(of, id, name, "B" if size else "", self.read(of, id, series.name))
        seldom = series.name in _SELDOM
        rate = self._seldom_rate(of, id, series.name) if seldom else self.rate(of, id, series.name)
        if series.unit in _TIME:
            return Column(of, id, name, "%", _scaled(100 * _TIME[series.unit], rate))
        return Column(of, id, name, "B/s" if size else "1/s", rate)

    def mean(self, values: Values, weights: Values | None = None) -> float | None:
        """The mean. Each value counts for the time since the reading before, or for its weight."""
        pairs = [
            (value, weight)
            for value, weight in zip(values, self.seconds if weights is None else weights, strict=True)
            if value is not None and weight is not None
        ]
        whole = sum(weight for _, weight in pairs)
        return sum(value * weight for value, weight in pairs) / whole if whole > 0 else None

    @property
    def _unknown(self) -> Values:
        return [None] * len(self.times)


def _each(function: Callable[..., float | None], *columns: Values) -> Values:
    """The function of each reading's values, None where one of them is None."""
    return [None if None in row else function(*row) for row in zip(*columns, strict=True)]


def _scaled(factor: float, values: Values) -> Values:
    return _each(lambda value: factor * value, values)


def _quotient(part: Values, whole: Values) -> Values:
    """Without a whole, no value: the wait of a disk without a request is not 0."""
    return _each(lambda one, all_: one / all_ if all_ > 0 else None, part, whole)


def _shown(series: Mapping[str, Series]) -> dict[str, Series]:
    """The series that are columns by themselves, by their names without units."""
    return {
        next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name): one
        for name, one in series.items()
        if one.unit != "ticks" and name not in _PARTS
    }


# Formulas. `id` says of which thing.

Formula = Callable[[HostMetrics, str], Values]


def _part(of: str, part: Sequence[str], whole: Sequence[str], factor: float = 100) -> Formula:
    """The ratio of two sums of increases, in percent or times another factor."""

    def formula(host: HostMetrics, id: str) -> Values:
        grown = host.increase_of_all(of, id, part), host.increase_of_all(of, id, whole)
        return _scaled(factor, _quotient(*grown))

    return formula


_busy_core = _part("cpu", ("busy_ticks",), ("busy_ticks", "idle_ticks"))


def _of_cores(choose: Callable[[Sequence[float]], float]) -> Formula:
    """The busiest or the idlest CPU at each reading."""

    def formula(host: HostMetrics, id: str) -> Values:
        rows = zip(*(_busy_core(host, core) for core in host.ids("cpu")), strict=True)
        known = [[one for one in row if one is not None] for row in rows]
        return [choose(row) if row else None for row in known] or [None] * len(host.times)

    return formula


def _memory_used(host: HostMetrics, id: str) -> Values:
    total = host.facts.get("memory_total", 0)
    return _each(
        lambda free: 100 * (1 - free / total) if total else None, host.read("host", id, "memory_available")
    )


def _swap_used(host: HostMetrics, id: str) -> Values:
    columns = (host.read("host", id, name) for name in ("swap_total", "swap_free"))
    return _each(lambda total, free: total - free, *columns)


def _memory_of_limit(host: HostMetrics, id: str) -> Values:
    used, limit = (host.read("cgroup", id, name) for name in ("memory_used", "memory_limit"))
    return _scaled(100, _quotient(used, limit))


def _cpu_of_process(host: HostMetrics, id: str) -> Values:
    ticks = host.increase_of_all("process", id, ("user_ticks", "system_ticks"))
    second = host.facts.get("ticks_per_second", 0)
    return _each(lambda rate: 100 * rate / second if second else None, _quotient(ticks, host.seconds))


def _gc(host: HostMetrics, id: str) -> Values:
    names = [one for one in host.things.get(("jvm", id), ()) if one.startswith("gc_") and one.endswith("_us")]
    return _scaled(1e-4, _quotient(host.increase_of_all("jvm", id, names), host.seconds))


def python_workers(host: HostMetrics, id: str) -> PythonWorkers | None:
    """The Python workers that a JVM had; None where it had none."""
    second = host.facts.get("ticks_per_second", 0)
    grown = [one for one in host.increase("process", id, "python_ticks") if one is not None]
    most = max((one for one in host.read("process", id, "python_workers") if one is not None), default=0.0)
    return PythonWorkers(sum(grown) / second, int(most)) if second and most else None


def used_without_eden(host: HostMetrics, id: str) -> list[float]:
    """What a JVM's heap had in use outside eden, by time; nothing where that is unknown, or no eden."""
    spaces, others = _heap_spaces(host, id), _heap_spaces(host, id, (_EDEN,))
    if not others or len(others) == len(spaces):
        return []
    return [value for value in _each(lambda *sizes: sum(sizes), *others) if value is not None]


def _heap_used(host: HostMetrics, id: str) -> Values:
    spaces = _heap_spaces(host, id)
    return _each(lambda *sizes: sum(sizes), *spaces) if spaces else [None] * len(host.times)


def _heap_spaces(host: HostMetrics, id: str, without: tuple[str, ...] = ()) -> list[Values]:
    names = [one for one in host.things.get(("jvm", id), ()) if one.startswith("used_")]
    return [host.read("jvm", id, one) for one in names if not one.startswith((*_NO_HEAP, *without))]


def _of_counters(name: str, whole_host: bool) -> Formula:
    """A ratio of a process, or of all recorded processes of the host."""
    variants = [one for one in RATIOS if one.name == name]

    def formula(host: HostMetrics, id: str) -> Values:
        owners = host.owners() if whole_host else [id]
        for one in variants:
            groups = [group for owner in owners if (group := _first_with(host, owner, one.needs))]
            if groups:
                sums = [_known_sum([host.counted(group, need) for group in groups]) for need in one.needs]
                slots = host.facts.get("slots_per_cycle", 0)
                return _each(
                    lambda *row: ratio(one, with_slots(dict(zip(one.needs, row, strict=True)), slots)),  # noqa: B023
                    *sums,
                )
        return [None] * len(host.times)

    return formula


def _known_sum(columns: Sequence[Values]) -> Values:
    """The sum of what is known at each reading."""
    rows = ([one for one in row if one is not None] for row in zip(*columns, strict=True))
    return [sum(row) if row else None for row in rows]


def _first_with(host: HostMetrics, owner: str, names: Sequence[str]) -> str | None:
    groups = host.groups(owner)
    return next((id for id in groups if all(name in host.things["counters", id] for name in names)), None)


def _of_machine(*begins: str) -> Formula:
    """What the machine's own counters with these names count in a second."""

    def formula(host: HostMetrics, id: str) -> Values:
        names = [
            (group, name)
            for group in host.groups(MACHINE)
            for name in host.things["counters", group]
            if name.startswith(begins)
        ]
        if not names:
            return [None] * len(host.times)
        return _quotient(
            _each(lambda *grown: sum(grown), *(host.counted(*one) for one in names)), host.seconds
        )

    return formula


_traffic = _of_machine("memory_read", "memory_written", "memory_bytes")


def _traffic_of_peak(host: HostMetrics, id: str) -> Values:
    traffic, peak = _traffic(host, id), host.facts.get(BANDWIDTH, 0)
    return _scaled(100 / peak, traffic) if peak else [None] * len(traffic)


def _memory_estimate(host: HostMetrics, id: str) -> Values:
    """By the loads of the recorded processes that missed the last cache."""
    groups = [group for owner in host.owners() for group in host.groups(owner) if group.endswith(":memory")]
    misses = [
        host.counted(one, "llc_misses") for one in groups if "llc_misses" in host.things["counters", one]
    ]
    lines = _known_sum(misses) if misses else [None] * len(host.times)
    return _scaled(counters.LINE, _quotient(lines, host.seconds))


FORMULAS: Mapping[tuple[str, str], tuple[str, Formula]] = {
    **{("host", f"cpu_{one}"): ("%", _part("host", (f"{one}_ticks",), _MODES)) for one in _NAMES},
    ("host", "cpu_busy"): ("%", _part("host", [one for one in _MODES if one not in _RESTING], _MODES)),
    ("host", "core_busiest"): ("%", _of_cores(max)),
    ("host", "core_idlest"): ("%", _of_cores(min)),
    ("host", "memory_used"): ("%", _memory_used),
    ("host", "swap_used"): ("B", _swap_used),
    ("host", "tcp_retransmitted"): ("%", _part("host", ("tcp_retransmits",), ("tcp_segments_sent",))),
    ("cpu", "busy"): ("%", _busy_core),
    ("disk", "operations"): (
        "1/s",
        lambda host, id: _quotient(host.increase_of_all("disk", id, _REQUESTS), host.seconds),
    ),
    ("disk", "await"): ("ms", _part("disk", ("read_ms", "write_ms", "discard_ms"), _REQUESTS, 1)),
    ("disk", "queue"): ("", lambda host, id: _scaled(1e-3, host.rate("disk", id, "queue_ms"))),
    ("cgroup", "periods_throttled"): ("%", _part("cgroup", ("throttled_periods",), ("periods",))),
    ("cgroup", "memory_of_limit"): ("%", _memory_of_limit),
    ("process", "cpu"): ("%", _cpu_of_process),
    ("jvm", "gc"): ("%", _gc),
    ("jvm", "heap_used"): ("B", _heap_used),
    ("mount", "wait"): ("ms", _part("mount", ("wait_ms",), ("operations",), 1)),
    **{("process", one.name): (one.unit, _of_counters(one.name, whole_host=False)) for one in RATIOS},
    **{("host", one.name): (one.unit, _of_counters(one.name, whole_host=True)) for one in RATIOS},
    ("host", "memory_traffic"): ("B/s", _traffic),
    ("host", "memory_traffic_of_peak"): ("%", _traffic_of_peak),
    ("host", "memory_traffic_read"): ("B/s", _of_machine("memory_read")),
    ("host", "memory_traffic_written"): ("B/s", _of_machine("memory_written")),
    ("host", "memory_traffic_estimate"): ("B/s", _memory_estimate),
    ("host", "power"): ("W", lambda host, id: _scaled(1e-6, _of_machine("energy_")(host, id))),
    ("counters", "counted"): ("%", _part("counters", (RUNNING,), (ENABLED,))),
    ("node", "of_other_nodes"): ("%", _part("node", ("other_pages",), ("local_pages", "other_pages"))),
}
"""Unit and formula of each derived column, by kind of thing and name. "%" of a process is of one CPU."""
