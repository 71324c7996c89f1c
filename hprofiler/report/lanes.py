"""What else is known by time, as lanes above the page's heat map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nlargest

from hprofiler.analysis.facts import RunFacts
from hprofiler.model import Pauses
from hprofiler.report.page import Lane, Span

# Of more pauses a page has the longest.
_MOST_PAUSES = 50_000


def pause_lanes(facts: RunFacts, processes: Mapping[tuple[str, int], int], seconds: float) -> list[Lane]:
    """A lane of garbage collections for each of the page's processes, whose numbers are by host and pid.

    `seconds` is how much time the page shows: what hosts say of other times is left out.
    """
    found = [
        (processes[host.name, one.pid], span)
        for host in facts.hosts
        for one in host.pauses
        if (host.name, one.pid) in processes
        for span in _spans(one, facts, seconds)
    ]
    name = "GC pauses"
    if len(found) > _MOST_PAUSES:
        name = f"GC pauses (the {_MOST_PAUSES:,} longest)"
        found = nlargest(_MOST_PAUSES, found, key=lambda one: one[1][1] - one[1][0])
    by_process: dict[int, list[Span]] = {}
    for process, span in sorted(found):
        by_process.setdefault(process, []).append(span)
    return [Lane(name, "gc", spans, process) for process, spans in by_process.items()]


def _spans(pauses: Pauses, facts: RunFacts, seconds: float) -> Iterator[Span]:
    """Pauses in seconds since the run's start, those that are shown."""
    if facts.start is None:
        return
    first, last = facts.time or (0.0, seconds)
    names = pauses.collectors
    for collector, end, length in zip(pauses.collector, pauses.end, pauses.duration, strict=False):
        begin, over = (end - length - facts.start) / 1e6, (end - facts.start) / 1e6
        if first < over and begin < min(last, seconds) and begin <= over:
            yield max(0.0, begin), min(over, seconds), names[collector] if 0 <= collector < len(names) else ""
