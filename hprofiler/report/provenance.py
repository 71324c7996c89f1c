"""Provenance of profiles out of run folders: how much of the run they are.

run.json knows of no report, so a trimmed report's profiles do not say what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hprofiler.analysis.coverage import coverage, host_coverage, sampled
from hprofiler.analysis.facts import HostFacts, RunFacts, read_facts
from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file
from hprofiler.model import Recording
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
class _RunFile:
    """A file where a run keeps its profiles."""

    folder: Path
    file: str
    scope: Scope


def provenance_of(names: Sequence[str], warn: Callable[[str], None]) -> str:
    """ "4 of 5 processes on 2 of 2 hosts, interrupted · 99 Hz for 60 s"; "" where no file is a run's.

    `warn` gets a line for each run.json that cannot be read; its files count as those of no run.
    """
    runs: dict[Path, list[_RunFile]] = {}
    for one in filter(None, map(_run_file, names)):
        runs.setdefault(one.folder, []).append(one)
    known: dict[Path, str] = {}
    others = len(names)
    for folder, found in runs.items():
        facts = _facts_of(folder, warn)
        files = [one for one in found if facts and _is_written(facts, one)]
        if facts and files and (words := _words(RunFolder(folder), facts, files)):
            known[folder] = words
            others -= len(files)
    if not known:
        return ""
    parts = list(known.values())
    if len(known) > 1:
        parts = [f"{folder.name}: {words}" for folder, words in list(known.items())[:_RUNS_SHOWN]]
        parts += [f"{len(known) - _RUNS_SHOWN} more runs"] if len(known) > _RUNS_SHOWN else []
    return " · ".join([*parts, *([f"{counted(others, 'profiles')} of no run"] if others else [])])


def _run_file(name: str) -> _RunFile | None:
    """Which file of a run this is by its place; None for all others, and for stdin, which has none."""
    path = Path(name).resolve()
    for above, kept_in in _PLACES if name != "-" else ():
        if above < len(path.parents) and path.parents[above - 1].name == kept_in:
            folder = path.parents[above]
            if is_file(folder / RUN_FILE):
                return _RunFile(folder, path.name, path.parts[-above:-1])
    return None


def _facts_of(folder: Path, warn: Callable[[str], None]) -> RunFacts | None:
    try:
        return read_facts(RunFolder.open(folder).record)
    except RunFolderError as error:
        warn(f"the picture does not say of how much it is: {error.reason}")
        return None


def _is_written(facts: RunFacts, one: _RunFile) -> bool:
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


def _words(folder: RunFolder, facts: RunFacts, files: Sequence[_RunFile]) -> str:
    event = _event(facts, files)
    facts = facts.of(event) if event else facts
    scopes = {one.scope for one in files}
    chosen = _chosen(folder, facts, scopes)
    if not any(host.recordings for host in chosen.hosts):
        return ""
    alone = [host for host in facts.hosts if {(_folder_of(folder, host),)} == scopes]
    known = (
        f"{alone[0].name}: {host_coverage(facts, alone[0], ())}" if alone else coverage(chosen).interrupted
    )
    return f"{known} · {sampled(chosen)}" if event else known


def _event(facts: RunFacts, files: Sequence[_RunFile]) -> str | None:
    """The one event that all the files are of; an engine's own recordings are of several."""
    for event in facts.events:
        if all(one.file in _files(event, one.scope) for one in files):
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


def _with_samples(recordings: Sequence[Recording]) -> int:
    return sum(1 for one in recordings if any(one.totals.values()))


def _folder_of(folder: RunFolder, host: HostFacts) -> str:
    return folder.host_dir(host.name).name
