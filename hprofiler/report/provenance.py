"""Provenance of profiles out of run folders: how much of the run they are.

run.json knows of no report, so a trimmed report's profiles do not say what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hprofiler.analysis.coverage import coverage, host_coverage, sampled
from hprofiler.analysis.facts import RunFacts, read_facts
from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file
from hprofiler.model import HostRecord
from hprofiler.report.pictures import KINDS
from hprofiler.runfolder import RUN_FILE, RunFolder, safe_name

# Below a run folder: cluster/FILE, hosts/HOST/FILE, hosts/HOST/PID/FILE.
_DEEPEST = 4
_ENDINGS = [*(f"{mean}{kind}" for mean in ("", "-mean") for kind in KINDS), ".time"]
_RAW_FILE = "recording.jfr"


def provenance_of(names: Sequence[str], warn: Callable[[str], None]) -> str:
    """ "4 of 5 processes on 2 of 2 hosts, interrupted · 99 Hz for 60 s"; "" unless all files are of runs.

    `warn` gets a line for each run.json that cannot be read.
    """
    runs: dict[Path, list[Path]] = {}
    for name in names:
        path = Path(name).resolve()
        folder = next((one for one in path.parents[1:_DEEPEST] if is_file(one / RUN_FILE)), None)
        if name == "-" or folder is None:
            return ""
        runs.setdefault(folder, []).append(path.relative_to(folder))
    words: dict[Path, str] = {}
    for path, files in runs.items():
        try:
            run = RunFolder.open(path)
        except RunFolderError as error:
            warn(f"the picture does not say of how much it is: {error.reason}")
            return ""
        words[path] = _words(run, read_facts(run.record), files)
    if not all(words.values()):
        return ""
    return " · ".join(words.values() if len(words) == 1 else (f"{p.name}: {w}" for p, w in words.items()))


def _words(folder: RunFolder, facts: RunFacts, files: Sequence[Path]) -> str:
    written = {f"{safe_name(event)}{ending}" for event in facts.events for ending in _ENDINGS} | {_RAW_FILE}
    if not written.issuperset(file.name for file in files):  # somebody put others there
        return ""
    event = _event(facts, files)
    facts = facts.of(event) if event else facts
    scopes = {file.parts[1:-1] for file in files}  # none is the cluster; then host, and pid
    hosts = [(host, folder.host_dir(host.name).name) for host in facts.hosts]
    alone = next((host for host, name in hosts if {(name,)} == scopes), None)
    chosen = facts if () in scopes else _chosen(facts, hosts, scopes)
    if not chosen.recordings:
        return ""
    known = f"{alone.name}: {host_coverage(facts, alone, ())}" if alone else coverage(chosen).interrupted
    return f"{known} · {sampled(chosen)}" if event else known


def _event(facts: RunFacts, files: Sequence[Path]) -> str | None:
    """The one event that all the files are of; an engine's own recordings are of several."""
    for event in facts.events:
        if {file.name for file in files} <= {f"{safe_name(event)}{ending}" for ending in _ENDINGS}:
            return event
    return None


def _chosen(
    facts: RunFacts, hosts: Sequence[tuple[HostRecord, str]], scopes: set[tuple[str, ...]]
) -> RunFacts:
    """The run with the recordings in the scopes alone; all of it where none with a sample is left out."""
    kept = [
        host.part(one for one in host.recordings if {(name,), (name, str(one.pid))} & scopes)
        for host, name in hosts
    ]
    chosen = replace(facts, hosts=tuple(kept))
    with_samples = [sum(1 for one in run.recordings if any(one.totals.values())) for run in (facts, chosen)]
    return facts if with_samples[0] == with_samples[1] else chosen
