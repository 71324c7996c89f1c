"""The processes of a run that cost most in an event, and what each does most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from hprofiler.analysis.attribution import Method, attribute
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.profiles import Names, Reader
from hprofiler.model import Process
from hprofiler.model.measures import measure_of
from hprofiler.runfolder import RunFolder


@dataclass(frozen=True)
class HeavyProcess:
    """`cost` is what its methods are shares of: without idle threads."""

    host: str
    process: Process
    cost: int
    hottest: Method


def heaviest(folder: RunFolder, facts: RunFacts, most: int) -> Sequence[HeavyProcess]:
    """At most `most` processes of an event, read again; those that cannot be read are named elsewhere."""
    reader, value = Reader(folder, facts, Names()), measure_of(facts.event).column[0]
    recordings = [(host, one) for host in facts.hosts for one in host.recordings if one.totals.get(value)]
    found = []
    for host, one in nlargest(most, recordings, key=lambda pair: pair[1].totals[value]):
        try:
            part = attribute(facts, reader.read(host, one))
        except (OSError, ValueError, RuntimeError):
            continue
        if part.methods:
            found.append(HeavyProcess(host.name, one.process, part.attributed, part.methods[0]))
    return sorted(found, key=lambda one: -one.cost)
