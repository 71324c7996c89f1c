"""What the work of an event was, for the terminal and for JSON."""

from __future__ import annotations

from typing import Any

from hprofiler._flamegraph import category_label
from hprofiler.analysis.facts import PYSPY, RunFacts
from hprofiler.analysis.result import EventAnalysis
from hprofiler.analysis.words import percent, plain
from hprofiler.analysis.work import EventWork, Sums, largest_first
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted
from hprofiler.report.page import PageData

_SHOWN = 5
_NO_PHASE = "no phase"
_BARS = 100


def may_inline(facts: RunFacts) -> bool:
    """Whether there is code that a compiler may have inlined into its callers."""
    return any(one.engine != PYSPY for host in facts.hosts for one in host.recordings)


def work_text(work: EventWork, inlined: bool = True) -> str:
    """The largest categories, with their shares on the hosts where they are most and least, and the phases of
    a data job; "" for none."""
    total = sum(work.categories.values())
    if not total:
        return ""
    named = largest_first(work.categories)
    hosts = {host: (sum(sums.values()), sums) for host, sums in work.hosts.items()}
    rows: list[tuple[str, ...]] = []
    for name, value in named[:_SHOWN]:
        shares = sorted((of.get(name, 0) / whole, host) for host, (whole, of) in hosts.items() if whole)
        spread = ""
        if len(shares) > 1:
            (least, _), (most, host) = shares[0], shares[-1]
            spread = f"{plain(percent(least, 1))} to {plain(percent(most, 1))} ({printable(host)})"
        rows.append((plain(percent(value, total)), printable(category_label(name)), spread))
    lines = [f"  by category{' (at least: inlined code counts for its caller)' if inlined else ''}:"]
    lines += table_lines(rows, right=(0,), indent=4)
    rest = sum(value for _, value in named[_SHOWN:])
    if rest:
        more = counted(len(named) - _SHOWN, "more categories")
        lines.append(f"    {plain(percent(rest, total))} in {more} (see the view Work)")
    if phases := [(phase, sum(parts.values())) for phase, parts in _phases(work)]:
        named_shares = (f"{phase} {plain(percent(value, total))}" for phase, value in phases)
        lines.append(f"  by phase: {', '.join(named_shares)}")
    return "\n".join(lines)


def _phases(work: EventWork) -> list[tuple[str, Sums]]:
    """What they are called, the largest first, and what is in none last; empty where all is in none."""
    named = [(phase, work.by_phase[phase]) for phase, _ in largest_first(work.phases) if phase]
    none = work.by_phase.get("")
    found = [(phase.replace("-", " "), parts) for phase, parts in named]
    return [*found, (_NO_PHASE, none)] if found and none else found


def work_record(work: EventWork) -> dict[str, object]:
    """Parts of the event's total by codes of categories and phases."""
    return {
        "categories": dict(largest_first(work.categories)),
        "phases": dict(largest_first({phase or "none": value for phase, value in work.phases.items()})),
        "hosts": {host: dict(largest_first(sums)) for host, sums in work.hosts.items()},
        "processes": [
            {"host": host, "pid": pid, "categories": dict(largest_first(sums))}
            for (host, pid), sums in work.processes.items()
        ],
        "stages": {stage: dict(largest_first(sums)) for stage, sums in work.stages.items()},
    }


def work_rows(data: PageData, analysis: EventAnalysis) -> list[dict[str, object]]:
    """The bars of the page: the whole, hosts, stages and processes, those that cost most first."""
    work, facts = analysis.work, analysis.facts
    if not work.categories:
        return []
    hosts = [
        _row("host", name, sums, f"host:{data.number_of_host(name)}") for name, sums in work.hosts.items()
    ]
    stages = [_row("stage", name, sums, stage=name) for name, sums in work.stages.items()]
    recordings = {(host.name, one.pid): (host, one) for host in facts.hosts for one in host.recordings}
    processes = []
    for key, sums in work.processes.items():
        host, recording = recordings[key]
        number = data.number_of_process(data.process(host, recording))
        label = f"{recording.label} on {host.name} (pid {recording.pid})"
        processes.append(_row("process", label, sums, f"process:{number}"))
    whole = _row("whole", "cluster" if len(hosts) > 1 else "all processes", work.categories)
    total = sum(work.categories.values())
    phases = [
        _row("phase", f"{phase} {percent(sum(parts.values()), total)}", parts)
        for phase, parts in _phases(work)
    ]
    rows = [{**whole, "inlined": may_inline(facts)}, *phases]
    for group in (hosts if len(hosts) > 1 else [], stages, processes if len(processes) > 1 else []):
        shown = sorted(group, key=lambda row: -row["total"])[:_BARS]
        rows += [{**row, "more": len(group) - len(shown)} for row in shown]
    return rows


def _row(kind: str, label: str, sums: Sums, scope: str = "", stage: str = "") -> dict[str, Any]:
    parts = dict(largest_first(sums))
    return {
        "kind": kind,
        "label": printable(label),
        "scope": scope,
        "slice": stage,
        "total": sum(parts.values()),
        "parts": parts,
    }
