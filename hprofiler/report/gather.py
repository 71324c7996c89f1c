"""From the stored profiles to pictures of each host and of the cluster, one host in memory at a time."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import BinaryIO, Dict, List, Optional, Tuple

from hprofiler._flamegraph import MeanMerger, Profile
from hprofiler.model import Outcome, Status
from hprofiler.report.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.report.pictures import write_pictures
from hprofiler.report.words import coverage, percent, seconds, short_name
from hprofiler.store import RunFolder, safe_name

# How many of a host's methods are remembered to tell where a method of the cluster is hot.
_REMEMBERED = 200


@dataclass(frozen=True)
class Shares:
    """What is kept of a host once its pictures are written: samples, and what its hottest methods cost."""

    key: str
    name: str
    total: int
    hottest: Dict[str, int]

    def share(self, method: str) -> float:
        """The method's own part of this host's samples; 0 for a method that is not among the remembered."""
        return self.hottest.get(method, 0) / self.total


@dataclass
class Gathered:
    """The run's profiles put together. `cluster` and `mean` are None when there is not one sample."""

    cluster: Optional[Profile] = None
    mean: Optional[Profile] = None
    hosts: List[Shares] = field(default_factory=list)
    problems: List[Outcome] = field(default_factory=list)


def gather(folder: RunFolder, facts: RunFacts, spool: BinaryIO, raw_names: bool = False) -> Gathered:
    """Write all pictures of the run folder; the hosts' viewer data goes to `spool`: base64, a line a host.

    Names that every JVM numbers anew (lambdas, proxies ...) are made one before processes are merged, unless
    `raw_names`; the stored profiles keep theirs.
    """
    gathered = Gathered()
    merger = MeanMerger()
    for host in facts.hosts:
        profile = _read_host(folder, facts, host, gathered, raw_names)
        if profile is None or profile.total() == 0:
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
    return f"{what} · {scope}"


def _read_host(
    folder: RunFolder, facts: RunFacts, host: HostFacts, gathered: Gathered, raw_names: bool
) -> Optional[Profile]:
    """The host's processes as one profile; what cannot be read or added up becomes a line of the ledger."""
    merged: Optional[Profile] = None
    for recording in host.recordings:
        path = folder.profile_path(host.key, recording.pid, facts.event)
        try:
            labels = {"host": host.name, "pid": str(recording.pid), "process": recording.label}
            profile = Profile.read(str(path), "pprof").with_labels(labels)
            _check_values(gathered.cluster or merged, profile)
            merged = _merged(merged, profile if raw_names else profile.canonical())
        except (OSError, ValueError, RuntimeError) as error:
            gathered.problems.append(_unreadable(recording, error))
    return merged


def _merged(into: Optional[Profile], profile: Profile) -> Profile:
    if into is None:
        return profile
    into.merge(profile)
    return into


def _check_values(others: Optional[Profile], profile: Profile) -> None:
    if others is not None and others.values != profile.values:
        raise ValueError(f"it counts {profile.values}, the others {others.values}")


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
        folder.host_dir(host.key),
        safe_name(facts.event),
        picture_title(facts, host.name),
        f"{processes} · {_sampled(facts, profile)}",
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
        if profile is not None:
            subtitle = f"{covered} · {_sampled(facts, profile)}"
            write_pictures(profile, folder.cluster_dir, file_name, picture_title(facts, scope), subtitle)


def _sampled(facts: RunFacts, profile: Profile) -> str:
    hottest = profile.top(1)[0]
    share = percent(hottest.self_value, profile.total())
    sampled = f"{profile.total():,} samples, {facts.frequency} Hz for {seconds(facts.duration)}"
    return f"{sampled} · hottest: {short_name(hottest.name)[:80]} {share}"
