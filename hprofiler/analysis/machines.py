"""What a run's metrics say of its hosts: a few figures of each, and what stands out by thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hprofiler.analysis.counters import HostCounters, low_ipc, ratios
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.metrics import HostMetrics, PythonWorkers, Values, python_workers, used_without_eden
from hprofiler.analysis.noise import SIGMAS
from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file
from hprofiler.model import HostRecord, Outcome, Status
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.metrics_file import read_metrics

MOST = 5
# With fewer, a ratio of requests, segments or pages is chance.
_SEGMENTS = 100.0
_PAGES = 1000.0
_WAITING = 1.0
_LONGEST_ID = 60


@dataclass(frozen=True)
class Figure:
    """A metric over the recording: its mean, its highest value, and of which thing. The worst of several."""

    mean: float
    most: float
    unit: str
    id: str = ""


@dataclass(frozen=True)
class Threshold:
    """From what mean on a figure is worth a sentence, what to do then, and whose threshold it is."""

    figure: str
    least: float
    text: str
    remedy: str
    source: str


FIGURES: Mapping[str, tuple[str, str]] = {
    "cpu": ("host", "cpu_busy"),
    "iowait": ("host", "cpu_iowait"),
    "steal": ("host", "cpu_steal"),
    "run_queue": ("host", "runnable"),
    "memory": ("host", "memory_used"),
    "major_faults": ("host", "major_faults"),
    "swap_in": ("host", "swap_in"),
    "disk_await": ("disk", "await"),
    "disk_read": ("disk", "read"),
    "disk_written": ("disk", "written"),
    "network_received": ("network", "received"),
    "network_sent": ("network", "sent"),
    "retransmitted": ("host", "tcp_retransmitted"),
    "throttled": ("cgroup", "periods_throttled"),
    "gc": ("jvm", "gc"),
    "of_other_nodes": ("node", "of_other_nodes"),
}
"""The figures of a host: the kind of thing, and its column. Of several things that with the highest mean."""

_ALERTS = "the rules of awesome-prometheus-alerts"
THRESHOLDS: Mapping[str, Threshold] = {
    "cpu-throttled": Threshold(
        "throttled",
        25.0,
        "{host}: its CPU limit stopped {id} in {mean:.0f} % of its periods",
        "Raise or remove the CPU limit, or run fewer threads",
        "CPUThrottlingHigh of kubernetes-mixin",
    ),
    "cpu-steal": Threshold(
        "steal",
        10.0,
        "{host}: the hypervisor took {mean:.0f} % of the CPU time (steal)",
        "Use another host, or a size of instance that does not share CPUs",
        _ALERTS,
    ),
    "run-queue": Threshold(
        "run_queue",
        2.0,
        "{host}: the CPUs are overloaded: on average {mean:.0f} threads ran or waited for {cpus} CPUs",
        "Run fewer tasks at a time, or look for other programs on the host (htop, ps)",
        "NodeSystemSaturation of the mixin of node_exporter",
    ),
    "major-faults": Threshold(
        "major_faults",
        1000.0,
        "{host}: {mean:,.0f} major page faults a second; memory is short",
        "Give processes less memory, or the host more",
        _ALERTS,
    ),
    "gc": Threshold(
        "gc",
        10.0,
        "{host}: garbage collection paused {process} for {mean:.0f} % of the time",
        "Give it more heap, or find what allocates: -e alloc",
        "Spark's web interface",
    ),
    "disk-await": Threshold(
        "disk_await",
        100.0,
        "{host}: requests to disk {id} took {mean:,.0f} ms on average",
        "See who uses the disk (iostat -x, pidstat -d), or use a faster disk",
        _ALERTS,
    ),
    "retransmits": Threshold(
        "retransmitted",
        1.0,
        "{host}: {mean:.1f} % of the TCP segments were sent again",
        "Look for dropped packets: ip -s link, ss -ti",
        "our own choice",
    ),
    "numa-imbalance": Threshold(
        "of_other_nodes",
        20.0,
        "{host}: {mean:.0f} % of the memory allocated on NUMA node {id} was for programs on other nodes",
        "Bind each process to a node (numactl), or use -XX:+UseNUMA",
        "our own choice",
    ),
    "low-ipc": Threshold(
        "ipc",
        SIGMAS,
        "{host}: {mean:.2f} instructions per cycle, the median of the hosts is {others:.2f}",
        "Compare its cache misses, memory traffic and other programs with those of another host",
        "our own choice",
    ),
}
"""By the code of the finding. The limit of `run-queue` is for each CPU; `low-ipc` has deviations."""


@dataclass(frozen=True)
class MetricFinding:
    """What stands out on the `hosts` that are beyond a threshold, with the figures of the worst.

    `code` is a key of THRESHOLDS. `severity` is how many times the limit is reached.
    """

    code: str
    host: str
    severity: float
    hosts: int = 1
    parameters: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        text = THRESHOLDS[self.code].text.format(host=self.host, **self.parameters)
        others = self.hosts - 1
        more = f", and {others} more host{'s are' if others > 1 else ' is'} beyond the threshold"
        job = self.parameters.get("job_cpus")
        digits = 1 if job is not None and float(job) >= 1 else 2
        used = "" if job is None else f" The recorded processes used {job:.{digits}f} CPUs."
        return f"{text}{more if others else ''}.{used}"

    @property
    def remedy(self) -> str:
        return f"{THRESHOLDS[self.code].remedy}."

    @property
    def source(self) -> str:
        return THRESHOLDS[self.code].source


@dataclass(frozen=True)
class Machines:
    """Figures of every host with metrics, what stands out (the worst first), and files that are damaged.

    `severity` is that of each host's worst finding, `labels` are those of processes, by host and pid.
    `heaps` are what heaps with an eden last had in use outside it, by host and pid; `grown` is that in the
    first and in the last quarter, at the least. `python` has the Python workers of Spark's JVMs, recorded or
    not.
    """

    figures: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    findings: tuple[MetricFinding, ...] = ()
    severity: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Outcome, ...] = ()
    counters: Mapping[str, HostCounters] = field(default_factory=dict)
    labels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    heaps: Mapping[tuple[str, int], float] = field(default_factory=dict)
    grown: Mapping[tuple[str, int], tuple[float, float]] = field(default_factory=dict)
    python: Mapping[tuple[str, int], PythonWorkers] = field(default_factory=dict)


def read_machines(folder: RunFolder, facts: RunFacts) -> Machines:
    """One host's metrics are in memory at a time."""
    figures: dict[str, Mapping[str, Figure]] = {}
    found: list[MetricFinding] = []
    notes: list[Outcome] = []
    counters: dict[str, HostCounters] = {}
    labels: dict[tuple[str, str], str] = {}
    heaps: dict[tuple[str, int], float] = {}
    grown: dict[tuple[str, int], tuple[float, float]] = {}
    python: dict[tuple[str, int], PythonWorkers] = {}
    for host in facts.hosts:
        path = folder.metrics_path(host.name)
        if not is_file(path):
            continue
        try:
            metrics = HostMetrics(read_metrics(path))
        except RunFolderError as error:
            note = Outcome(
                host.name, Status.DEGRADED, "report", error.reason, error.remedy, code="damaged-metrics"
            )
            notes.append(note)
            continue
        figures[host.name] = host_figures(metrics)
        own = {str(one.pid): one.label for one in host.recordings if one.label}
        cpus = job_cpus(metrics, host, facts.seconds)
        found += host_findings(host.name, figures[host.name], metrics.facts, own, cpus)
        labels |= {(host.name, pid): label for pid, label in own.items()}
        for pid in host.recorded:
            used = used_without_eden(metrics, str(pid))
            if used:
                heaps[host.name, pid] = used[-1]
                quarter = -(-len(used) // 4)
                grown[host.name, pid] = min(used[:quarter]), min(used[-quarter:])
            if workers := python_workers(metrics, str(pid)):
                python[host.name, pid] = workers
        if counted := metrics.counters():
            counters[host.name] = counted
    ipc = {host: value for host, one in counters.items() if (value := ratios(one.all).get("ipc"))}
    for name, value, others, times in low_ipc(ipc):
        found.append(MetricFinding("low-ipc", name, times, parameters={"mean": value, "others": others}))
    severity: dict[str, float] = {}
    for one in found:
        severity[one.host] = max(one.severity, severity.get(one.host, 0.0))
    return Machines(figures, worst(found), severity, tuple(notes), counters, labels, heaps, grown, python)


def host_figures(metrics: HostMetrics) -> dict[str, Figure]:
    """The figures of a host that were read."""
    found = {}
    for name, (of, column) in FIGURES.items():
        figures = [figure for id in metrics.ids(of) if (figure := _figure(metrics, of, id, column))]
        if figures:
            found[name] = max(figures, key=lambda one: one.mean)
    return found


def _figure(metrics: HostMetrics, of: str, id: str, name: str) -> Figure | None:
    column = metrics.column(of, id, name)
    weights: Values | None = None
    if name == "await":
        # A disk with little to do may be slow: no process waits long for it.
        queue = metrics.mean(metrics.column(of, id, "queue").values)
        weights = metrics.column(of, id, "operations").values
        if queue is None or queue < _WAITING:
            return None
    if name == "tcp_retransmitted":
        weights = metrics.increase(of, id, "tcp_segments_sent")
        sent = metrics.mean(metrics.rate(of, id, "tcp_segments_sent"))
        if sent is None or sent < _SEGMENTS:
            return None
    if name == "periods_throttled":
        weights = metrics.increase(of, id, "periods")
    if name == "of_other_nodes":
        weights = metrics.increase_of_all(of, id, ("local_pages", "other_pages"))
        allocated = sum(weight for weight in weights if weight is not None)
        if allocated < _PAGES * (metrics.times[-1] - metrics.times[0]):
            return None
    mean = metrics.mean(column.values, weights)
    if mean is None:
        return None
    return Figure(mean, max(one for one in column.values if one is not None), column.unit, id)


def job_cpus(metrics: HostMetrics, host: HostRecord, seconds: float) -> float | None:
    """How many CPUs a host's recorded processes used on average. None if that is not known.

    Where some joined or ended it is their CPU time while they were recorded, in a run of so many `seconds`:
    metrics lack what each used before its first reading, and go on after the last has ended. Of a process
    whose recording was cut short that is not known.
    """
    gone = {one.pid for one in host.outcomes if one.gone}
    if gone or any(one.joined for one in host.recordings):
        if {one.pid for one in host.short} - gone:
            return None
        used_by: dict[int, float] = {}
        for one in host.recordings:
            used_by[one.pid] = max(one.cpu_seconds, used_by.get(one.pid, 0.0))
        return sum(used_by.values()) / seconds or None
    columns = [metrics.column("process", id, "cpu").values for id in metrics.ids("process")]
    pairs = [pair for values in columns for pair in zip(values, metrics.seconds, strict=True)]
    used = [share * seconds for share, seconds in pairs if share is not None and seconds is not None]
    return sum(used) / 100 / (metrics.times[-1] - metrics.times[0]) if used else None


def process_name(pid: str, label: str | None) -> str:
    """ "executor 3 (pid 4711)"."""
    return f"{label} (pid {pid})" if label else f"pid {pid}"


def host_findings(
    host: str,
    figures: Mapping[str, Figure],
    facts: Mapping[str, int],
    labels: Mapping[str, str] = {},
    job_cpus: float | None = None,
) -> Sequence[MetricFinding]:
    """What of a host is beyond a threshold. `labels` are of processes by pid."""
    found = []
    cpus = facts.get("cpus", 0)
    for code, threshold in THRESHOLDS.items():
        figure = figures.get(threshold.figure)
        limit = threshold.least * cpus if code == "run-queue" else threshold.least
        if figure is None or not limit or figure.mean <= limit:
            continue
        parameters: dict[str, str | int | float] = {"mean": figure.mean, "most": figure.most, "limit": limit}
        if figure.id:
            parameters["id"] = figure.id if len(figure.id) <= _LONGEST_ID else f"…{figure.id[-_LONGEST_ID:]}"
        if code == "run-queue":
            parameters["cpus"] = cpus
            if job_cpus is not None:
                parameters["job_cpus"] = job_cpus
        if code == "gc":
            parameters["process"] = process_name(figure.id, labels.get(figure.id))
        found.append(MetricFinding(code, host, figure.mean / limit, parameters=parameters))
    return found


def worst(found: Iterable[MetricFinding]) -> tuple[MetricFinding, ...]:
    """One finding of each code, that of the worst host; the worst `MOST` of them."""
    by_code: dict[str, list[MetricFinding]] = {}
    for one in found:
        by_code.setdefault(one.code, []).append(one)
    chosen = []
    for group in by_code.values():
        first = max(group, key=lambda one: one.severity)
        chosen.append(MetricFinding(first.code, first.host, first.severity, len(group), first.parameters))
    return tuple(sorted(chosen, key=lambda one: -one.severity)[:MOST])
