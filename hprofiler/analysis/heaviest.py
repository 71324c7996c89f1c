"""The processes of a run that cost most in an event, and what each does most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from hprofiler.analysis.attribution import Method, attribute
from hprofiler.analysis.profiles import Reader
from hprofiler.analysis.result import EventAnalysis
from hprofiler.model import Process
from hprofiler.runfolder import RunFolder


@dataclass(frozen=True)
class HeavyProcess:
    """`cost` is a part of what is attributed in the event: without idle threads."""

    host: str
    process: Process
    cost: int
    hottest: Method


def heaviest(folder: RunFolder, event: EventAnalysis, most: int) -> Sequence[HeavyProcess]:
    """At most `most` processes of an event, read again; those that cannot be read are named elsewhere.

    Processes with broken stacks are left out where tables leave them out.
    """
    facts = event.facts
    left_out = () if event.self_only else facts.untrusted
    costs = {who: cost for who, cost in event.busy.items() if cost and who not in left_out}
    kept = nlargest(most, costs, key=costs.__getitem__)
    reader, found = Reader(folder, facts, event.names), []
    for host in facts.hosts:
        for one in host.recordings:
            if (who := (host.name, one.pid)) not in kept:
                continue
            try:
                part = attribute(facts, reader.read(host, one))
            except (OSError, ValueError, RuntimeError):
                continue
            found.append(HeavyProcess(host.name, one.process, costs[who], part.methods[0]))
    return sorted(found, key=lambda one: -one.cost)
