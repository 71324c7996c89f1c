"""Counters of processors (`--counters`): a table for the terminal and the page, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from hprofiler.analysis.counters import Groups, HostCounters, added, ratios, totals
from hprofiler.analysis.machines import Machines, process_name
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines

_HOSTS_SHOWN = 10
_PROCESSES_SHOWN = 5
_ALL = 0.995


def shown_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{value:.0f}%"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def _rate(value: float) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return shown_number(value)


def _bytes(value: float) -> str:
    return f"{value / (1 << 30):.1f} GiB/s"


_COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "cpus": ("CPUs", _ratio),
    "ipc": ("IPC", _ratio),
    "retiring": ("retiring", _share),
    "bad_speculation": ("bad spec.", _share),
    "frontend_bound": ("frontend", _share),
    "backend_bound": ("backend", _share),
    "smt_contention": ("SMT", _share),
    "stalls_frontend_pkc": ("frontend stalls/1k", shown_number),
    "stalls_backend_pkc": ("backend stalls/1k", shown_number),
    "l1d_mpki": ("L1d MPKI", shown_number),
    "l1i_mpki": ("L1i MPKI", shown_number),
    "l2_mpki": ("L2 MPKI", shown_number),
    "llc_mpki": ("LLC MPKI", shown_number),
    "dtlb_mpki": ("dTLB MPKI", shown_number),
    "branch_mpki": ("branch MPKI", shown_number),
    "memory_read": ("memory read", _bytes),
    "memory_written": ("memory written", _bytes),
    "memory_total": ("memory traffic", _bytes),
    "memory_of_peak": ("of peak", _share),
    "memory_estimate": ("memory (estimate)", _bytes),
    "power": ("power", lambda value: f"{value:.0f} W"),
    "context_switches": ("switches/s", _rate),
    "cpu_migrations": ("migrations/s", _rate),
    "page_faults": ("page faults/s", _rate),
    "counted": ("counted", _share),
}
"""Figures of a row, in the order of the table: a heading, and how a value is shown."""
_PER_SECOND = ("context_switches", "cpu_migrations", "page_faults")


@dataclass(frozen=True)
class Row:
    """The counters of all hosts, of a host, or of a process."""

    host: str
    process: str
    figures: Mapping[str, float]


def _of_machine(one: HostCounters) -> dict[str, float]:
    """What is counted for the machine as a whole."""
    found = {f"memory_{kind}": value for kind, value in one.memory.items()}
    others = {"memory_of_peak": one.memory_of_peak, "power": one.watts}
    return found | {name: value for name, value in others.items() if value is not None}


def _figures(groups: Groups, seconds: float, of_machine: Mapping[str, float]) -> dict[str, float]:
    known = totals(groups)
    found = dict(ratios(groups))
    if "task_clock_ns" in known:
        found["cpus"] = known["task_clock_ns"][0] / 1e9 / seconds
    found |= {name: known[name][0] / seconds for name in _PER_SECOND if name in known}
    found |= of_machine
    least = min((one.counted for one in groups.values()), default=1.0)
    if least < _ALL:
        found["counted"] = 100 * least
    return found


def _busiest(one: HostCounters) -> Sequence[str]:
    """Processes by the CPU time they used."""

    def used(pid: str) -> float:
        return totals(one.processes[pid]).get("task_clock_ns", (0.0, 1.0))[0]

    return sorted(one.processes, key=lambda pid: (-used(pid), pid))


def counter_rows(machines: Machines) -> list[Row]:
    """All hosts together; then each host, the lowest IPC first, and its processes, the busiest first.

    A host with one process has one row for both.
    """
    rows: list[Row] = []
    hosts = machines.counters
    if len(hosts) > 1:
        groups = added(one.all for one in hosts.values())
        of_machines: Counter[str] = Counter()
        for one in hosts.values():
            of_machines.update(_of_machine(one))
        of_machines.pop("memory_of_peak", None)  # shares do not add up
        seconds = max(one.seconds for one in hosts.values())
        rows.append(Row("all hosts", "", _figures(groups, seconds, of_machines)))
    figures = {host: _figures(one.all, one.seconds, _of_machine(one)) for host, one in hosts.items()}
    for host in sorted(hosts, key=lambda host: (figures[host].get("ipc", inf), host)):
        one = hosts[host]
        names = {pid: process_name(pid, machines.labels.get((host, pid))) for pid in _busiest(one)}
        if len(names) == 1:
            rows.append(Row(host, next(iter(names.values())), figures[host]))
            continue
        rows.append(Row(host, "", figures[host]))
        for pid, name in names.items():
            rows.append(Row(host, name, _figures(one.processes[pid], one.seconds, {})))
    return rows


def shown_columns(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The names and headings of the figures that a row has."""
    return [(name, head) for name, (head, _) in _COLUMNS.items() if any(name in row.figures for row in rows)]


def shown_cell(row: Row, name: str) -> str:
    value = row.figures.get(name)
    return "" if value is None else _COLUMNS[name][1](value)


def counters_text(machines: Machines) -> str:
    """The table of a run with --counters; "" without."""
    rows = counter_rows(machines)
    if not rows:
        return ""
    columns = shown_columns(rows)
    shown = [("host", "process", *(head for _, head in columns))]
    hosts = processes = left_out = 0
    last = ""
    for row in rows:
        is_first, last = row.host != last, row.host
        hosts, processes = (hosts + 1, 0) if is_first else (hosts, processes + 1)
        if hosts > _HOSTS_SHOWN or processes > _PROCESSES_SHOWN:
            left_out += 1
            continue
        cells = (shown_cell(row, name) for name, _ in columns)
        shown.append((printable(row.host if is_first else ""), printable(row.process), *cells))
    lines = ["counters:", *table_lines(shown, right=range(2, len(columns) + 2), indent=2)]
    lines += [f"  … and {left_out} more rows: see --json"] if left_out else []
    return "\n".join(lines)


def counters_record(machines: Machines) -> dict[str, object]:
    """The member `counters` of `metrics` in `--json`."""
    return {
        host: {
            "seconds": one.seconds,
            "all": _record(one.all, one.seconds),
            "processes": {pid: _record(groups, one.seconds) for pid, groups in one.processes.items()},
            "memory_bytes_per_second": one.memory,
            "memory_percent_of_peak": one.memory_of_peak,
            "watts": one.watts,
        }
        for host, one in machines.counters.items()
    }


def _record(groups: Groups, seconds: float) -> dict[str, object]:
    return {
        "counts": {
            name: {"total": round(count), "per_second": count / seconds, "counted": counted}
            for name, (count, counted) in totals(groups).items()
        },
        "ratios": ratios(groups),
    }
