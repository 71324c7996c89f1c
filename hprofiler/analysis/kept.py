"""What is kept of live objects: heaps that grow, and methods that keep what they allocate, as a leak does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hprofiler._flamegraph import Profile
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.machines import Machines
from hprofiler.analysis.profiles import Names, Reader
from hprofiler.analysis.subject import Finding, Walk, says
from hprofiler.analysis.words import percent, short_name
from hprofiler.model.measures import size
from hprofiler.runfolder import RunFolder

# The least part of what a method allocated that is still there if it keeps it, and of all live objects.
_KEPT = 0.7
_OF_ALL = 0.03
# The least growth of a heap that is worth a sentence: a part of all live objects.
_GROWN = 0.1


def kept_objects(folder: RunFolder, facts: RunFacts, live: Profile, machines: Machines) -> list[Finding]:
    """Who keeps what it allocates, where allocations were recorded, too; how heaps grew."""
    if facts.event != "live":
        return []
    jvms = {(host.name, one.pid) for host in facts.hosts for one in host.recordings}
    grown = [machines.grown[one] for one in jvms if one in machines.grown]
    before, after = (sum(one[at] for one in grown) for at in (0, 1))
    grows = len(grown) == len(jvms) and after - before >= _GROWN * live.total()
    heap = "the heap" if len(jvms) == 1 else "the heaps"
    text = f"{heap} without eden grew from {size(round(before))} to {size(round(after))}" if grows else ""
    named = _who_keeps(folder, facts, live)
    if named is None:
        if not grows:
            return []
        known = facts.recorded.get("alloc")
        more = "" if known else " With -e live,alloc the report says who keeps what it allocates."
        return [says("live-kept", f"{text[0].upper()}{text[1:]}.{more}")]
    name, kept, allocated = named
    part = f" keeps {percent(kept, allocated)} of what it allocated, {size(kept)}"
    more = f": a leak, if that goes on. Meanwhile {text}." if grows else ": a leak, if that goes on."
    return [says("live-kept", ("method", short_name(name)), part + more, method=name)]


def _who_keeps(folder: RunFolder, facts: RunFacts, live: Profile) -> tuple[str, int, int] | None:
    """The method that keeps most of what it allocated, with both amounts."""
    if not facts.recorded.get("alloc") or facts.time is not None or facts.trimmed:
        return None
    jvms = {(host.name, one.pid) for host in facts.hosts for one in host.recordings}
    allocated = _allocated(folder, facts, jvms)
    if allocated is None:
        return None
    kept, made = Walk(live, classes=True).owners, Walk(allocated, classes=True).owners
    least = _OF_ALL * live.total()
    return next(
        (
            (name, cost, max(cost, made[name]))
            for name, cost in kept.most_common()
            if cost >= least and cost >= _KEPT * made[name]
        ),
        None,
    )


def _allocated(folder: RunFolder, facts: RunFacts, jvms: Collection[tuple[str, int]]) -> Profile | None:
    """What the same processes allocated."""
    of_alloc = replace(facts, hosts=facts.record.hosts).of("alloc")
    reader = Reader(folder, of_alloc, Names())
    whole: Profile | None = None
    for host in of_alloc.hosts:
        for recording in host.recordings:
            if (host.name, recording.pid) not in jvms:
                continue
            try:
                profile = reader.read(host, recording)
            except (OSError, ValueError, RuntimeError):  # the event's own analysis says so
                return None
            if whole is None:
                whole = profile
            else:
                whole.merge(profile)
    return whole
