"""What the page's view *Machines* shows: a few metrics of every host over the run's time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor

from hprofiler.analysis.counters import ratios
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.machines import Figure, Machines, process_name
from hprofiler.analysis.metrics import HostMetrics, Values
from hprofiler.base.bounded_json import members
from hprofiler.base.errors import RunFolderError
from hprofiler.report.counters import counter_rows, shown_cell, shown_columns
from hprofiler.report.page import PageData
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.metrics_file import read_metrics

MOST_HOSTS = 200
_BUCKETS = 300
_MOST_ROWS = 500
_COUNTERS_LACKING = ("counter-missing", "counters-taken", "not-permitted")
# What heads of the table of counters mean, by the ends of their names.
_UNITS = {
    "_mpki": "MPKI: misses per 1,000 instructions.",
    "_pkc": "Stalls: cycles of 1,000.",
}
_MIB = 1 << 20
# How far around its reading a level is shown, in buckets: also where readings are not exactly a bucket apart.
_MOST_AROUND = 0.75


@dataclass(frozen=True)
class _Chart:
    """A metric of hosts. `join` makes one number of those of several things, such as disks.

    `figure` is its figure in `host_figures`, "" if there is none. A `level` is what it was at a reading; all
    else is of the time since the reading before. Where no host ever has `least`, the page folds the chart.
    """

    title: str
    unit: str
    of: str
    columns: tuple[str, ...]
    figure: str = ""
    join: Callable[[Sequence[float]], float] = max
    level: bool = False
    least: float = 0.0


_CHARTS = (
    _Chart("CPU", "%", "host", ("cpu_busy",), "cpu", least=5),
    _Chart("run queue", "", "host", ("runnable",), "run_queue", level=True, least=1.5),
    _Chart(
        "CPU limit: periods throttled, worst control group",
        "%",
        "cgroup",
        ("periods_throttled",),
        "throttled",
        least=1,
    ),
    _Chart("memory used", "%", "host", ("memory_used",), "memory", level=True),
    _Chart("disk read and written, sum of disks", "B/s", "disk", ("read", "written"), join=sum, least=_MIB),
    _Chart("disk await, worst disk", "ms", "disk", ("await",), "disk_await", least=10),
    _Chart(
        "network received and sent, sum of interfaces",
        "B/s",
        "network",
        ("received", "sent"),
        join=sum,
        least=_MIB,
    ),
    _Chart("GC, worst JVM", "%", "jvm", ("gc",), "gc", least=1),
    _Chart("instructions per cycle", "", "host", ("ipc",)),
    _Chart("slots waiting for memory and execution", "%", "host", ("backend_bound",)),
    _Chart("loads that missed the last cache, per 1,000 instructions", "", "host", ("llc_mpki",)),
    _Chart("memory traffic", "B/s", "host", ("memory_traffic",)),
    _Chart("power of sockets and memory", "W", "host", ("power",)),
    _Chart("memory traffic (estimate)", "B/s", "host", ("memory_traffic_estimate",)),
)


@dataclass(frozen=True)
class _ProcessColumn:
    """A column of the table of processes: the mean of a metric over the recording, or its highest value."""

    label: str
    title: str
    unit: str
    of: str
    name: str
    most: bool = False


_PROCESS_COLUMNS = (
    _ProcessColumn("CPU", "Mean; 100 % is one CPU", "%", "process", "cpu"),
    _ProcessColumn(
        "CPU, most", "Highest value of a second; 100 % is one CPU", "%", "process", "cpu", most=True
    ),
    _ProcessColumn(
        "waits for a CPU", "Time that its threads could have run and had no CPU", "%", "process", "run_queue"
    ),
    _ProcessColumn("memory", "Most resident memory", "B", "process", "memory", most=True),
    _ProcessColumn("heap", "Most heap in use", "B", "jvm", "heap_used", most=True),
    _ProcessColumn("GC", "Time in pauses of the garbage collector", "%", "jvm", "gc"),
    _ProcessColumn("JIT", "Time of the JIT compilers; 100 % is one CPU", "%", "jvm", "jit"),
    _ProcessColumn("read", "Mean; from disks", "B/s", "process", "read"),
    _ProcessColumn("written", "Mean; to disks", "B/s", "process", "written"),
    _ProcessColumn("threads", "Most threads", "", "process", "threads", most=True),
)


@dataclass(frozen=True)
class _ProcessRow:
    """A process, its number on the page if it was recorded, and its values by column."""

    host: str
    name: str
    process: int | None
    values: Sequence[float | None]


def machines_view(
    folder: RunFolder, facts: RunFacts, machines: Machines, data: PageData
) -> dict[str, object] | None:
    """Ready for JSON: charts over the seconds of the page, hosts by their worst finding first.

    A value is the highest of its bucket, None where nothing was read. `figures` are the mean and the highest
    value of each host over the whole recording. None: no host has metrics, or it is not known when samples
    were taken.
    """
    if facts.start is None or not machines.figures:
        return None
    width = max(1.0, data.seconds / _BUCKETS)
    count = max(1, ceil(round(data.seconds / width, 6)))
    hosts = sorted(machines.figures, key=lambda host: (-machines.severity.get(host, 0.0), host))
    charts: list[dict[str, object]] = [
        {"title": chart.title, "unit": chart.unit, "least": chart.least, "values": [], "figures": []}
        for chart in _CHARTS
    ]
    shown: list[dict[str, object]] = []
    processes: list[_ProcessRow] = []
    for host in hosts[:MOST_HOSTS]:
        try:
            metrics = HostMetrics(read_metrics(folder.metrics_path(host)))
        except RunFolderError:
            continue
        shown.append({"name": host, "host": data.number_of_host(host)})
        processes += _processes(metrics, host, machines, data)
        counted = machines.counters.get(host)
        of_counters = ratios(counted.all) if counted else {}
        for chart, record in zip(_CHARTS, charts, strict=True):
            values, figures = record["values"], record["figures"]
            assert isinstance(values, list) and isinstance(figures, list)
            joined = _joined(metrics, chart)
            values.append(_buckets(metrics, joined, chart.level, facts.start / 1e6, width, count))
            figures.append(_figure(metrics, chart, joined, machines.figures[host], of_counters))
    return {
        "width": width,
        "hosts": shown,
        "more_hosts": max(0, len(hosts) - MOST_HOSTS),
        "charts": [one for one in charts if _has_any(one["values"])],
        "always_zero": [
            one["title"]
            for one in charts
            if _has_any(one["values"], zero=True) and not _has_any(one["values"])
        ],
        "processes": _process_table(processes),
        "findings": [f"{one.text} {one.remedy}" for one in machines.findings],
        "counters": _counters(machines),
        "not_counted": _not_counted(facts),
    }


def _not_counted(facts: RunFacts) -> list[str]:
    """Why hosts lack counters that were asked for: a sentence for each reason."""
    hosts: dict[str, list[str]] = {}
    for host in facts.hosts:
        for note in (note for one in host.outcomes if one.pid is None for note in one.every_note):
            if note.code in _COUNTERS_LACKING and "events" in note.parameters:
                hosts.setdefault(note.reason, []).append(host.name)
    others = (f" and {len(names) - 1:,} more" if len(names) > 1 else "" for names in hosts.values())
    return [
        f"{names[0]}{more}: {reason}." for (reason, names), more in zip(hosts.items(), others, strict=True)
    ]


def _counters(machines: Machines) -> dict[str, object] | None:
    """The table of counters, its cells as they are shown. None without --counters."""
    rows = counter_rows(machines)
    if not rows:
        return None
    columns = shown_columns(rows)
    return {
        "heads": ["host", "process", *(head for _, head in columns)],
        "note": " ".join(
            text for part, text in _UNITS.items() if any(name.endswith(part) for name, _ in columns)
        ),
        "rows": [
            [
                row.host,
                row.process or "all recorded processes",
                *(shown_cell(row, name) for name, _ in columns),
            ]
            for row in rows[:_MOST_ROWS]
        ],
        "more_rows": max(0, len(rows) - _MOST_ROWS),
    }


def _processes(metrics: HostMetrics, host: str, machines: Machines, data: PageData) -> Iterator[_ProcessRow]:
    numbers = data.numbers_of_processes(host)
    for pid in metrics.ids("process"):
        values = [_process_value(metrics, pid, column) for column in _PROCESS_COLUMNS]
        yield _ProcessRow(host, process_name(pid, machines.labels.get((host, pid))), numbers.get(pid), values)


def _process_value(metrics: HostMetrics, pid: str, column: _ProcessColumn) -> float | None:
    values = metrics.column(column.of, pid, column.name).values
    known = [one for one in values if one is not None]
    found = max(known, default=None) if column.most else metrics.mean(values)
    return None if found is None else round(found, 2)


def _process_table(rows: list[_ProcessRow]) -> dict[str, object]:
    """The rows that used most CPU time first, with the columns that any of them has."""
    known = [at for at in range(len(_PROCESS_COLUMNS)) if any(row.values[at] is not None for row in rows)]
    shown = sorted(rows, key=lambda row: -(row.values[0] or 0.0))[:_MOST_ROWS]
    return {
        "columns": [members(_PROCESS_COLUMNS[at], "label", "title", "unit") for at in known],
        "rows": [{**asdict(row), "values": [row.values[at] for at in known]} for row in shown],
        "more_rows": len(rows) - len(shown),
    }


def _has_any(values: object, zero: bool = False) -> bool:
    """Whether anything was read, but 0 where that does not count."""
    assert isinstance(values, list)
    return any(one is not None if zero else one for host in values for one in host)


def _joined(metrics: HostMetrics, chart: _Chart) -> Values:
    columns = [
        metrics.column(chart.of, id, name).values for id in metrics.ids(chart.of) for name in chart.columns
    ]
    if not columns:
        return [None] * len(metrics.times)
    rows = ([one for one in row if one is not None] for row in zip(*columns, strict=True))
    return [chart.join(row) if row else None for row in rows]


def _figure(
    metrics: HostMetrics,
    chart: _Chart,
    joined: Values,
    figures: Mapping[str, Figure],
    of_counters: Mapping[str, float],
) -> tuple[float, float] | None:
    """The mean and the highest value. What the terminal and `--json` have, too, is the same here."""
    if chart.figure:
        figure = figures.get(chart.figure)
        return None if figure is None else (round(figure.mean, 2), round(figure.most, 2))
    mean = metrics.mean(joined)
    if mean is None:
        return None
    mean = of_counters.get(chart.columns[0], mean)
    return round(mean, 2), round(max(one for one in joined if one is not None), 2)


def _buckets(
    metrics: HostMetrics, values: Values, level: bool, start: float, width: float, count: int
) -> list[float | None]:
    """The highest value of each bucket.

    A rate is of the time since the reading before, a level of the time around its reading. That time belongs
    to the bucket at its middle, and to all whose middle is in it: a peak is seldom in two buckets, and none
    is left out where readings are a little more than a bucket apart.
    """
    found: list[float | None] = [None] * count
    for moment, passed, value in zip(metrics.times, metrics.seconds, values, strict=True):
        if value is None:
            continue
        middle, half = (moment - start) / width, (passed or 0.0) / width / 2
        if level:
            half = min(half, _MOST_AROUND)
            middle = count - 0.5 if count <= middle < count + 1 else middle  # the last reading, at the end
        else:
            middle -= half
        for place in {floor(middle), *range(floor(middle - half + 0.5), floor(middle + half - 0.5) + 1)}:
            if 0 <= place < count:
                found[place] = round(max(value, found[place] or 0.0), 2)
    return found
