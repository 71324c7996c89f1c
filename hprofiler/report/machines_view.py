"""What the page's view *Machines* shows: a few metrics of every host over the run's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.machines import Machines
from hprofiler.analysis.metrics import HostMetrics, Values
from hprofiler.base.errors import RunFolderError
from hprofiler.report.counters import counter_rows, shown_cell, shown_columns
from hprofiler.report.page import PageData
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.metrics_file import read_metrics

MOST_HOSTS = 200
_BUCKETS = 300
_MOST_ROWS = 500


@dataclass(frozen=True)
class _Chart:
    """A metric of hosts. `join` makes one number of those of several things, such as disks."""

    title: str
    unit: str
    of: str
    columns: tuple[str, ...]
    join: Callable[[Sequence[float]], float] = max


_CHARTS = (
    _Chart("CPU", "%", "host", ("cpu_busy",)),
    _Chart("run queue", "", "host", ("runnable",)),
    _Chart("CPU limit: periods throttled", "%", "cgroup", ("periods_throttled",)),
    _Chart("memory used", "%", "host", ("memory_used",)),
    _Chart("disk read and written", "B/s", "disk", ("read", "written"), sum),
    _Chart("disk await", "ms", "disk", ("await",)),
    _Chart("network received and sent", "B/s", "network", ("received", "sent"), sum),
    _Chart("GC of the JVM with most", "%", "jvm", ("gc",)),
    _Chart("instructions per cycle", "", "host", ("ipc",)),
    _Chart("slots waiting for memory and execution", "%", "host", ("backend_bound",)),
    _Chart("loads that missed the last cache, per 1,000 instructions", "", "host", ("llc_mpki",)),
    _Chart("memory traffic", "B/s", "host", ("memory_traffic",)),
    _Chart("power of sockets and memory", "W", "host", ("power",)),
    _Chart("memory traffic (estimate)", "B/s", "host", ("memory_traffic_estimate",)),
)


def machines_view(
    folder: RunFolder, facts: RunFacts, machines: Machines, data: PageData
) -> dict[str, object] | None:
    """Ready for JSON: charts over the seconds of the page, hosts by their worst finding first.

    A value is the highest of its bucket, None where nothing was read. None: no host has metrics, or it is not
    known when samples were taken.
    """
    if facts.start is None or not machines.figures:
        return None
    width = max(1.0, data.seconds / _BUCKETS)
    count = int(data.seconds / width) + 1
    hosts = sorted(machines.figures, key=lambda host: (-machines.severity.get(host, 0.0), host))
    charts: list[dict[str, object]] = [
        {"title": chart.title, "unit": chart.unit, "values": []} for chart in _CHARTS
    ]
    shown: list[dict[str, object]] = []
    for host in hosts[:MOST_HOSTS]:
        try:
            metrics = HostMetrics(read_metrics(folder.metrics_path(host)))
        except RunFolderError:
            continue
        shown.append({"name": host, "host": data.number_of_host(host)})
        for chart, record in zip(_CHARTS, charts, strict=True):
            values = record["values"]
            assert isinstance(values, list)
            values.append(_buckets(metrics, _joined(metrics, chart), facts.start / 1e6, width, count))
    return {
        "width": width,
        "hosts": shown,
        "more_hosts": max(0, len(hosts) - MOST_HOSTS),
        "charts": [one for one in charts if _has_any(one["values"])],
        "findings": [one.text for one in machines.findings],
        "counters": _counters(machines),
    }


def _counters(machines: Machines) -> dict[str, object] | None:
    """The table of counters, its cells as they are shown. None without --counters."""
    rows = counter_rows(machines)
    if not rows:
        return None
    columns = shown_columns(rows)
    return {
        "heads": ["host", "process", *(head for _, head in columns)],
        "rows": [
            [row.host, row.process, *(shown_cell(row, name) for name, _ in columns)]
            for row in rows[:_MOST_ROWS]
        ],
        "more_rows": max(0, len(rows) - _MOST_ROWS),
    }


def _has_any(values: object) -> bool:
    """Whether anything but 0 was read."""
    assert isinstance(values, list)
    return any(one for host in values for one in host)


def _joined(metrics: HostMetrics, chart: _Chart) -> Values:
    columns = [
        metrics.column(chart.of, id, name).values for id in metrics.ids(chart.of) for name in chart.columns
    ]
    if not columns:
        return [None] * len(metrics.times)
    rows = ([one for one in row if one is not None] for row in zip(*columns, strict=True))
    return [chart.join(row) if row else None for row in rows]


def _buckets(
    metrics: HostMetrics, values: Values, start: float, width: float, count: int
) -> list[float | None]:
    """The highest value of each bucket. A reading speaks of the time since the one before."""
    found: list[float | None] = [None] * count
    for moment, value in zip(metrics.times, values, strict=True):
        place = int((moment - start) / width)
        if value is not None and 0 <= place < count:
            found[place] = round(max(value, found[place] or 0.0), 2)
    return found
