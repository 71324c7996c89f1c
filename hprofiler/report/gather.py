"""From the stored profiles of an event to pictures of hosts and cluster, one host in memory at a time."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import BinaryIO, Dict, List, Literal, Optional, Tuple

from hprofiler._flamegraph import MeanMerger, Profile
from hprofiler.measures import duration, in_words, interval_in_words, measure_of
from hprofiler.model import Outcome, Status
from hprofiler.report.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.report.pictures import remove_pictures, write_pictures
from hprofiler.report.words import coverage, percent, short_name
from hprofiler.store import RunFolder, safe_name

# How many of a host's methods are remembered to tell where a method of the cluster is hot.
_REMEMBERED = 200


@dataclass(frozen=True)
class Names:
    """What becomes of names: `raw` keeps apart what every JVM numbers anew; `threads` keeps thread groups."""

    raw: bool = False
    threads: bool = False


@dataclass(frozen=True)
class Shares:
    """What is kept of a host once its pictures are written: its total, and what its hottest methods cost."""

    key: str
    name: str
    total: int
    hottest: Dict[str, int]

    def share(self, method: str) -> float:
        """The method's own part of this host's total; 0 for a method that is not among the remembered."""
        return self.hottest.get(method, 0) / self.total


@dataclass
class Gathered:
    """The run's profiles of an event put together; the first value of each is the one that is shown.

    `cluster` and `mean` are None when there is not one sample.
    """

    cluster: Optional[Profile] = None
    mean: Optional[Profile] = None
    hosts: List[Shares] = field(default_factory=list)
    problems: List[Outcome] = field(default_factory=list)


def gather(folder: RunFolder, facts: RunFacts, spool: BinaryIO, names: Names) -> Gathered:
    """Write all pictures of the event; the hosts' viewer data goes to `spool`: base64, a line a host.

    Pictures of an earlier report that nothing is left for are removed.
    """
    gathered = Gathered()
    merger = MeanMerger()
    for host in facts.hosts:
        profile = _read_host(folder, facts, host, gathered, names)
        if profile is None or profile.total() == 0:
            remove_pictures(folder.host_dir(host.key), safe_name(facts.event))
            continue
        _write_host(folder, facts, host, profile, gathered)
        spool.write(base64.b64encode(profile.to_viewer()) + b"\n")
        merger.add(profile)
        gathered.cluster = _merged(gathered.cluster, profile)
    if gathered.cluster is not None:
        gathered.mean = merger.finish()
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


def _read_host(
    folder: RunFolder, facts: RunFacts, host: HostFacts, gathered: Gathered, names: Names
) -> Optional[Profile]:
    """The host's processes as one profile; what cannot be read or added up becomes a line of the ledger."""
    measure = measure_of(facts.event)
    merged: Optional[Profile] = None
    for recording in host.recordings:
        path = folder.profile_path(host.key, recording.pid, facts.event)
        try:
            labels = {"host": host.name, "pid": str(recording.pid), "process": recording.label}
            threads: Literal["groups", False] = "groups" if names.threads else False
            profile = Profile.open(path, "pprof", threads=threads).with_labels(labels)
            if tuple(profile.values) != measure.columns:
                raise ValueError(f"it counts {profile.values}, not {list(measure.columns)}")
            profile = profile if names.raw else profile.canonical()
            merged = _merged(merged, profile.select(measure.shown_first) if measure.shown else profile)
        except (OSError, ValueError, RuntimeError) as error:
            gathered.problems.append(_unreadable(recording, error))
    return merged


def _merged(into: Optional[Profile], profile: Profile) -> Profile:
    if into is None:
        return profile
    into.merge(profile)
    return into


def _unreadable(recording: RecordingFacts, error: Exception) -> Outcome:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Outcome(
        host=recording.host,
        status=Status.FAILED,
        stage="report",
        reason=f"its profile in the run folder cannot be used: {reason}",
        remedy="record again",
        pid=recording.pid,
        label=recording.label,
    )


def _write_host(
    folder: RunFolder, facts: RunFacts, host: HostFacts, profile: Profile, gathered: Gathered
) -> None:
    unreadable = sum(1 for problem in gathered.problems if problem.host == host.name)
    processes = f"{len(host.recordings) - unreadable} of {host.processes} processes"
    write_pictures(
        profile,
        measure_of(facts.event),
        folder.host_dir(host.key),
        safe_name(facts.event),
        picture_title(facts, host.name),
        f"{processes} · {_subtitle(facts, profile)}",
    )
    methods = profile.top(_REMEMBERED)
    hottest = {method.name: method.self_value for method in methods if method.self_value > 0}
    gathered.hosts.append(Shares(host.key, host.name, profile.total(), hottest))


def _write_cluster(folder: RunFolder, facts: RunFacts, gathered: Gathered) -> None:
    covered, _ = coverage(facts, len(gathered.problems))
    name = safe_name(facts.event)
    scopes: List[Tuple[Optional[Profile], str, str]] = [
        (gathered.cluster, name, "cluster, every sample counts once"),
        (gathered.mean, f"{name}-mean", "cluster average, every host weighs the same"),
    ]
    for profile, file_name, scope in scopes:
        if profile is None:
            remove_pictures(folder.cluster_dir, file_name)
            continue
        title, subtitle = picture_title(facts, scope), f"{covered} · {_subtitle(facts, profile)}"
        write_pictures(profile, measure_of(facts.event), folder.cluster_dir, file_name, title, subtitle)


def _subtitle(facts: RunFacts, profile: Profile) -> str:
    hottest = profile.top(1)[0]
    share = percent(hottest.self_value, profile.total())
    told = f"{in_words(facts.event, totals_of(profile))}, {sampled(facts)}"
    return f"{told} · hottest: {short_name(hottest.name)[:80]} {share}"
