"""From the stored profiles of an event to pictures of hosts and cluster, one host in memory at a time."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import BinaryIO, Dict, List, Optional, Tuple

from hprofiler._flamegraph import MeanMerger, Profile
from hprofiler.measures import duration, in_words, interval_in_words, measure_of
from hprofiler.model import Outcome
from hprofiler.report.comparison import Compared
from hprofiler.report.facts import HostFacts, RunFacts
from hprofiler.report.pictures import remove_pictures, write_pictures
from hprofiler.report.reading import HostProfile, Names, Reader
from hprofiler.report.telling import telling
from hprofiler.report.words import coverage, percent, short_name
from hprofiler.store import RunFolder, safe_name

# How many of a host's methods are remembered to tell where a method of the cluster is hot.
_REMEMBERED = 200


@dataclass(frozen=True)
class Shares:
    """What is kept of a host once its pictures are written: its total, and what its hottest methods cost.

    `whole` is the total before trimming; `telling` is that of which the hottest methods are parts.
    """

    key: str
    name: str
    total: int
    whole: int
    telling: int
    hottest: Dict[str, int]

    def share(self, method: str) -> float:
        """The method's own part of what tells; 0 for a method that is not among the remembered."""
        return self.hottest.get(method, 0) / self.telling


@dataclass
class Gathered:
    """The run's profiles of an event put together; the first value of each is the one that is shown.

    `cluster` and `mean` are None when there is not one sample. `whole` is all hosts' total before trimming.
    """

    cluster: Optional[Profile] = None
    mean: Optional[Profile] = None
    hosts: List[Shares] = field(default_factory=list)
    problems: List[Outcome] = field(default_factory=list)
    compared: Compared = field(default_factory=Compared)
    whole: int = 0


def gather(folder: RunFolder, facts: RunFacts, spool: BinaryIO, names: Names) -> Gathered:
    """Write all pictures of the event; the hosts' viewer data goes to `spool`: base64, a line a host.

    Pictures of an earlier report that nothing is left for are removed.
    """
    reader = Reader(folder, facts, names)
    gathered = Gathered(problems=reader.problems)
    merger = MeanMerger()
    for host in facts.hosts:
        read = reader.read_host(host)
        gathered.whole += read.whole if read else 0
        if read is None or read.profile.total() == 0:
            remove_pictures(folder.host_dir(host.key), safe_name(facts.event))
            continue
        _write_host(folder, facts, host, read, gathered)
        spool.write(base64.b64encode(read.profile.to_viewer()) + b"\n")
        merger.add(read.profile)
        gathered.cluster = _merged(gathered.cluster, read.profile)
    if gathered.cluster is not None:
        gathered.mean = merger.finish()
    gathered.compared = reader.comparison.finish()
    _write_cluster(folder, facts, gathered)
    return gathered


def picture_title(facts: RunFacts, scope: str) -> str:
    what = facts.selector or facts.target or "all processes"
    return f"{what} · {scope} · {measure_of(facts.event).title}"


def totals_of(profile: Profile) -> Dict[str, int]:
    """The sums of a profile by value name."""
    return {name: profile.total(name) for name, _ in profile.values}


def sampled(facts: RunFacts) -> str:
    """How the event was sampled: "300 Hz for 60 s", "every 512 KiB for 60 s"."""
    intervals = (one.interval for host in facts.hosts for one in host.recordings)
    how = f"{facts.frequency} Hz" if facts.event == "cpu" else interval_in_words(facts.event, intervals)
    return f"{how} for {duration(facts.duration)}".strip()


def _merged(into: Optional[Profile], profile: Profile) -> Profile:
    if into is None:
        return profile
    into.merge(profile)
    return into


def _write_host(
    folder: RunFolder, facts: RunFacts, host: HostFacts, read: HostProfile, gathered: Gathered
) -> None:
    profile = read.profile
    unreadable = sum(1 for problem in gathered.problems if problem.host == host.name)
    processes = f"{len(host.recordings) - unreadable} of {host.processes} processes"
    write_pictures(
        profile,
        measure_of(facts.event),
        folder.host_dir(host.key),
        safe_name(facts.event),
        picture_title(facts, host.name),
        f"{processes} · {_subtitle(facts, profile, left_out(facts, profile.total(), read.whole))}",
    )
    told = telling(facts.event, profile).profile
    hottest = {method.name: method.self_value for method in told.top(_REMEMBERED) if method.self_value > 0}
    gathered.hosts.append(Shares(host.key, host.name, profile.total(), read.whole, told.total(), hottest))


def _write_cluster(folder: RunFolder, facts: RunFacts, gathered: Gathered) -> None:
    covered, _ = coverage(facts, len(gathered.problems))
    name = safe_name(facts.event)
    scopes: List[Tuple[Optional[Profile], str, str]] = [
        (gathered.cluster, name, "cluster, every sample counts once"),
        (gathered.mean, f"{name}-mean", "cluster average, every host weighs the same"),
    ]
    cluster = gathered.cluster
    trimmed = left_out(facts, cluster.total(), gathered.whole) if cluster else ""
    for profile, file_name, scope in scopes:
        if profile is None:
            remove_pictures(folder.cluster_dir, file_name)
            continue
        title, subtitle = picture_title(facts, scope), f"{covered} · {_subtitle(facts, profile, trimmed)}"
        write_pictures(profile, measure_of(facts.event), folder.cluster_dir, file_name, title, subtitle)


def left_out(facts: RunFacts, left: int, whole: int) -> str:
    """ "trimmed to the job's own frames, 12.3 % left out"; "" where nothing was trimmed."""
    if not facts.trimmed:
        return ""
    return f"trimmed to the job's own frames, {percent(whole - left, whole)} left out"


def _subtitle(facts: RunFacts, profile: Profile, trimmed: str) -> str:
    named = telling(facts.event, profile).profile
    hottest = named.top(1)[0]
    share = percent(hottest.self_value, named.total())
    told = [f"{in_words(facts.event, totals_of(profile))}, {sampled(facts)}", trimmed]
    return " · ".join([*filter(None, told), f"hottest: {short_name(hottest.name)[:80]} {share}"])
