"""The table of `top`: the newest figures of every host, the worst first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hprofiler.analysis.machines import THRESHOLDS, Figure, host_figures, host_findings
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.cli.terminal.top_processes import TopProcess, busiest_first, processes_of
from hprofiler.model.measures import size
from hprofiler.report.counters import shown_number
from hprofiler.report.machines import shown_percent

if TYPE_CHECKING:
    from rich.table import Table

    from hprofiler.collect.visit_group import HostProgress
    from hprofiler.collect.watching import HostReading
    from hprofiler.model import Host

Row = tuple[str, ...]


def _rate(value: float) -> str:
    return f"{size(value)}/s" if value else "0"


_GAP = 2  # spaces between columns


_COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "cpu": ("CPU", shown_percent),
    "run_queue": ("run queue", shown_number),
    "memory": ("memory", shown_percent),
    "disk_read": ("disk read", _rate),
    "disk_written": ("written", _rate),
    "network_received": ("received", _rate),
    "network_sent": ("sent", _rate),
    "throttled": ("throttled", shown_percent),
    "gc": ("GC", shown_percent),
}
_LEFT_OUT = ("sent", "received", "written", "disk read", "throttled", "job memory", "memory")
"""Columns that a narrow terminal has no room for, the first one first."""
_WITH_IPC: Mapping[str, tuple[str, Callable[[float], str]]] = {
    **_COLUMNS,
    "ipc": ("IPC", lambda value: f"{value:.2f}"),
}


@dataclass
class _Host:
    """`job_cpu` are CPUs in use by the matching processes, `job_memory` their resident bytes."""

    name: str
    note: str = "connecting"
    failed: bool = False
    is_new: bool = False
    figures: Mapping[str, Figure] = field(default_factory=dict)
    beyond: frozenset[str] = frozenset()
    severity: float = 0.0
    processes: tuple[TopProcess, ...] = ()
    job_cpu: float = 0.0
    job_memory: float = 0.0


class TopTable:
    """Gets readings from every host's thread; gives rows, JSON, and a table for a terminal."""

    def __init__(self, hosts: Sequence[str], with_ipc: bool = False) -> None:
        self._columns = _WITH_IPC if with_ipc else _COLUMNS
        names = (head for head, _ in self._columns.values())
        self.heads = ("host", *names, "job CPU", "job memory", "processes")
        self._hosts = {name: _Host(name) for name in hosts}
        self.known: dict[str, Host] = {}
        """Hosts of readings by name."""
        self._changed = threading.Condition()

    def add(self, reading: HostReading) -> None:
        metrics = HostMetrics(reading.metrics)
        if len(metrics.times) < 2:
            return
        figures = host_figures(metrics)
        ipc = metrics.column("host", "", "ipc").values[-1]
        if ipc is not None:
            figures["ipc"] = Figure(ipc, ipc, "", "")
        findings = host_findings(reading.host.name, figures, metrics.facts)
        work = {name: _total(metrics, name) for name in ("cpu", "memory")}
        with self._changed:
            self.known[reading.host.name] = reading.host
            self._hosts[reading.host.name] = _Host(
                reading.host.name,
                note="",
                is_new=True,
                figures=figures,
                beyond=frozenset(THRESHOLDS[one.code].figure for one in findings),
                severity=max((one.severity for one in findings), default=0.0),
                processes=processes_of(reading, metrics),
                job_cpu=work["cpu"] / 100,
                job_memory=work["memory"],
            )
            self._changed.notify_all()

    def listen(self, progress: HostProgress) -> None:
        """Notes what a host does before its first reading, and why it failed."""
        if not progress.host:
            return
        with self._changed:
            host = self._hosts.setdefault(progress.host, _Host(progress.host))  # hosts may join
            if progress.stage not in ("push", "failed"):
                return
            host.failed = progress.stage == "failed"
            host.note = progress.detail if host.failed else "copying the agent"
            self._changed.notify_all()

    @property
    def has_readings(self) -> bool:
        return any(one.figures for one in self._hosts.values())

    def wait_for_all(self, seconds: float | None) -> None:
        """Until every host has a new reading or has failed, at most so long."""
        with self._changed:
            self._changed.wait_for(
                lambda: all(one.is_new or one.failed for one in self._hosts.values()), seconds
            )
            for one in self._hosts.values():
                one.is_new = False

    def rows(self) -> list[Row]:
        return [self._row(one) for one in self._sorted()]

    def processes(self) -> list[TopProcess]:
        """Those of all hosts, the busiest first."""
        with self._changed:
            return busiest_first([process for one in self._hosts.values() for process in one.processes])

    def record(self) -> dict[str, object]:
        """For JSON."""
        return {
            one.name: {
                "figures": {
                    name: members(figure, "mean", "unit", "id") for name, figure in one.figures.items()
                },
                "processes": len(one.processes),
                **members(one, "job_cpu", "job_memory", "note"),
                "process_list": [
                    members(process, "pid", "user", "label", "cpu", "memory", "heap", "gc")
                    for process in busiest_first(one.processes)
                ],
            }
            for one in self._sorted()
        }

    def table(self, width: int, height: int) -> Table:
        """As many hosts and columns as fit; what is beyond a threshold is red. No figure is cut."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        hosts = self._sorted()
        room = max(1, height - 2)
        shown = hosts[: room if len(hosts) <= room else room - 1]
        rows = [self._row(one) for one in shown]
        columns = _fitting(self.heads, rows, width)
        for number, cells in columns.items():
            table.add_column(
                self.heads[number], justify="right" if number else "left", no_wrap=True, width=cells
            )
        for one, row in zip(shown, rows, strict=True):
            red = [False, *(name in one.beyond for name in self._columns), False, False, one.failed]
            table.add_row(*(Text(row[number], "red" if red[number] else "") for number in columns))
        if len(hosts) > room:
            table.add_row(f"… and {len(hosts) - room + 1} more hosts")
        return table

    def _row(self, host: _Host) -> Row:
        name = printable(host.name)
        if not host.figures:
            return (name, *("" for _ in self.heads[2:]), printable(host.note))
        cells = (
            shown(host.figures[name].mean) if name in host.figures else ""
            for name, (_, shown) in self._columns.items()
        )
        last = printable(host.note) if host.failed else f"{len(host.processes):,}"
        memory = size(host.job_memory) if host.job_memory else "0"
        return (name, *cells, f"{host.job_cpu:.1f}", memory, last)

    def _sorted(self) -> list[_Host]:
        with self._changed:
            hosts = list(self._hosts.values())
        return sorted(hosts, key=_order)


def _fitting(heads: Row, rows: Sequence[Row], width: int) -> dict[int, int]:
    """The columns that fit, by number, with their widths. The names of hosts and the notes may be cut."""
    from rich.cells import cell_len  # names may have letters that are two columns wide

    cells = enumerate(zip(heads, *rows, strict=True))
    columns = {number: max(map(cell_len, column)) for number, column in cells}

    def too_wide() -> int:
        return sum(columns.values()) + _GAP * (len(columns) - 1) - width

    for head in _LEFT_OUT:
        if too_wide() <= 0:
            break
        del columns[heads.index(head)]
    for number in (len(heads) - 1, 0):
        columns[number] = max(len(heads[number]), columns[number] - max(0, too_wide()))
    return columns


def _order(host: _Host) -> tuple[float, float, str]:
    cpu = host.figures.get("cpu")
    return -host.severity, -cpu.mean if cpu else 0.0, host.name


def _total(metrics: HostMetrics, name: str) -> float:
    """A column of all matching processes together, at the last reading."""
    return sum(metrics.column("process", id, name).values[-1] or 0.0 for id in metrics.ids("process"))
