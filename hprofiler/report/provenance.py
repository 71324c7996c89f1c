"""Of how much profiles are that somebody takes out of run folders: counted as the run's own pictures count.

What a report left out of them (`--trim`) only its pictures tell: run.json knows of no report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hprofiler.analysis.coverage import coverage, host_covered, sampled
from hprofiler.analysis.facts import HostFacts, RecordingFacts, RunFacts, read_facts
from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file
from hprofiler.model.measures import counted
from hprofiler.report.pictures import KINDS
from hprofiler.runfolder import RUN_FILE, RunFolder, safe_name

_RUNS_SHOWN = 3
# Where a run keeps profiles: how far above one its folder is, and what is below that.
_PLACES = ((1, "cluster"), (2, "hosts"), (3, "hosts"))
# What an engine wrote of a process, of several events.
_RAW_FILE = "recording.jfr"

Scope = tuple[str, ...]
"""Nothing is the cluster, a folder's name a host, a pid behind it a process."""


@dataclass(frozen=True)
class _Taken:
    """A file where a run keeps its profiles."""

    folder: Path
    file: str
    scope: Scope


def taken_from_runs(names: Sequence[str], warn: Callable[[str], None]) -> str:
    """ "4 of 5 processes on 2 of 2 hosts, interrupted · 99 Hz for 60 s"; "" where no file is a run's.

    Of runs whose run.json cannot be read `warn` is told, and their files are as those of no run.
    """
    runs: dict[Path, list[_Taken]] = {}
    for one in filter(None, map(_taken, names)):
        runs.setdefault(one.folder, []).append(one)
    told: dict[Path, str] = {}
    others = len(names)
    for folder, found in runs.items():
        facts = _facts_of(folder, warn)
        taken = [one for one in found if facts and _is_written(facts, one)]
        if facts and taken and (words := _covered(RunFolder(folder), facts, taken)):
            told[folder] = words
            others -= len(taken)
    if not told:
        return ""
    parts = list(told.values())
    if len(told) > 1:
        parts = [f"{folder.name}: {words}" for folder, words in list(told.items())[:_RUNS_SHOWN]]
        parts += [f"{len(told) - _RUNS_SHOWN} more runs"] if len(told) > _RUNS_SHOWN else []
    return " · ".join([*parts, *([f"{counted(others, 'profiles')} of no run"] if others else [])])


def _taken(name: str) -> _Taken | None:
    """Which file of a run this is by its place; None for all others, and for stdin, which has none."""
    path = Path(name).resolve()
    for above, kept_in in _PLACES if name != "-" else ():
        if above < len(path.parents) and path.parents[above - 1].name == kept_in:
            folder = path.parents[above]
            if is_file(folder / RUN_FILE):
                return _Taken(folder, path.name, path.parts[-above:-1])
    return None


def _facts_of(folder: Path, warn: Callable[[str], None]) -> RunFacts | None:
    try:
        return read_facts(RunFolder.open(folder).record)
    except RunFolderError as error:
        warn(f"the picture does not say of how much it is: {error.reason}")
        return None


def _is_written(facts: RunFacts, one: _Taken) -> bool:
    """Whether the run writes a file of this name there; what people put beside its own is of no run."""
    if one.file == _RAW_FILE and len(one.scope) == 2:
        return True
    return any(one.file in _files(event, one.scope) for event in facts.events)


def _files(event: str, scope: Scope) -> set[str]:
    """What a run writes of the event there."""
    name = safe_name(event)
    if len(scope) == 2:
        return {f"{name}.pb.gz"}
    return {f"{name}{mean}{kind}" for mean in (("",) if scope else ("", "-mean")) for kind in KINDS}


def _covered(folder: RunFolder, facts: RunFacts, taken: Sequence[_Taken]) -> str:
    event = _event(facts, taken)
    facts = facts.of(event) if event else facts
    scopes = {one.scope for one in taken}
    chosen = _chosen(folder, facts, scopes)
    if not any(host.recordings for host in chosen.hosts):
        return ""
    alone = [host for host in facts.hosts if {(_folder_of(folder, host),)} == scopes]
    told = f"{alone[0].name}: {host_covered(facts, alone[0], ())}" if alone else coverage(chosen).interrupted
    return f"{told} · {sampled(chosen)}" if event else told


def _event(facts: RunFacts, taken: Sequence[_Taken]) -> str | None:
    """The one event that all the files are of; an engine's own recordings are of several."""
    for event in facts.events:
        if all(one.file in _files(event, one.scope) for one in taken):
            return event
    return None


def _chosen(folder: RunFolder, facts: RunFacts, scopes: set[Scope]) -> RunFacts:
    """The run with no recordings but those in the scopes; all of it where none with a sample is left out."""
    if () in scopes:
        return facts
    hosts: list[HostFacts] = []
    complete = True
    for host in facts.hosts:
        name = _folder_of(folder, host)
        kept = [one for one in host.recordings if {(name,), (name, str(one.pid))} & scopes]
        complete = complete and _with_samples(kept) == _with_samples(host.recordings)
        hosts.append(replace(host, recordings=tuple(kept)))
    return facts if complete else replace(facts, hosts=tuple(hosts))


def _with_samples(recordings: Sequence[RecordingFacts]) -> int:
    return sum(1 for one in recordings if any(one.totals.values()))


def _folder_of(folder: RunFolder, host: HostFacts) -> str:
    return folder.host_dir(host.key).name
