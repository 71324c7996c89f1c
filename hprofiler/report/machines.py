"""Metrics of hosts: findings and a table for the terminal, JSON."""

from __future__ import annotations

from collections.abc import Callable

from hprofiler.analysis.machines import THRESHOLDS, Figure, Machines
from hprofiler.analysis.words import and_more
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.report.counters import counters_record, shown_number

_HOSTS_SHOWN = 10


def shown_percent(value: float) -> str:
    return f"{shown_number(value)}%"


# Always shown; the others where a host is beyond their threshold.
_ALWAYS = ("cpu", "run_queue", "memory", "gc")
_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "cpu": ("CPU", shown_percent),
    "steal": ("steal", shown_percent),
    "run_queue": ("run queue", shown_number),
    "throttled": ("throttled", shown_percent),
    "memory": ("memory", shown_percent),
    "major_faults": ("major faults/s", shown_number),
    "disk_await": ("disk await", lambda value: f"{shown_number(value)} ms"),
    "retransmitted": ("retransmitted", shown_percent),
    "gc": ("GC", shown_percent),
    "of_other_nodes": ("of other nodes", shown_percent),
}


def machines_text(machines: Machines) -> str:
    """What stands out, and means of the hosts, the worst first; "" without metrics."""
    if not machines.figures:
        return ""
    if not machines.findings:
        return "hosts: nothing stands out in their metrics (view Machines of the report)"
    lines = ["hosts:"]
    for finding in machines.findings:
        lines += [f"  {printable(finding.text)}", f"    {finding.remedy}"]
    beyond = {THRESHOLDS[one.code].figure for one in machines.findings}
    names = [
        name
        for name in _COLUMNS
        if name in beyond or (name in _ALWAYS and any(name in one for one in machines.figures.values()))
    ]
    hosts = sorted(machines.figures, key=lambda host: (-machines.severity.get(host, 0.0), host))
    rows = [("host", *(_COLUMNS[name][0] for name in names))]
    rows += [
        (printable(host), *(_cell(machines.figures[host].get(name), name) for name in names))
        for host in hosts[:_HOSTS_SHOWN]
    ]
    lines += table_lines(rows, right=range(1, len(names)), indent=2)
    return "\n".join([*lines, *and_more(len(hosts) - _HOSTS_SHOWN, "hosts")])


def _cell(figure: Figure | None, name: str) -> str:
    return "" if figure is None else _COLUMNS[name][1](figure.mean)


def machines_record(machines: Machines) -> dict[str, object]:
    """The section of `--json`."""
    return {
        "hosts": {
            host: {name: members(one, "mean", "most", "unit", "id") for name, one in figures.items()}
            for host, figures in machines.figures.items()
        },
        "findings": [
            {
                **members(one, "code", "host", "hosts"),
                "parameters": dict(one.parameters),
                "text": one.text,
                "remedy": one.remedy,
                "threshold_of": one.source,
            }
            for one in machines.findings
        ],
        "counters": counters_record(machines),
    }
