"""Parts of profiles in files by the time of their samples: a run folder has EVENT.time beside EVENT.pb.gz."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hprofiler._flamegraph import OptionError, Profile
from hprofiler.base.errors import ProfileError, RunFolderError, UsageError
from hprofiler.base.paths import is_file
from hprofiler.base.time_range import TimeRange
from hprofiler.runfolder import RUN_FILE, RunFolder

_PPROF, _TIMES = ".pb.gz", ".time"
# Below a run folder: cluster/FILE, hosts/HOST/FILE, hosts/HOST/PID/FILE.
_DEEPEST = 4
_REMEDY = "name a recording, or a profile in a run folder, which has EVENT.time beside EVENT.pb.gz"


def open_range(path: Path, time: TimeRange, *, threads: bool = False, **options: Any) -> Profile:
    """The samples that a profile has in a range: seconds from the start of its run, or of a recording.

    `threads` and `options` are those of `Profile.open`. Raises UsageError if it is not known when samples
    were taken, and what `Profile.open` does.
    """
    files = _files(path) if options.get("format") in (None, "pprof", "compact") else ()
    if files:
        options = {**options, "format": "compact"}
        start = _start_of_run(_run_of(path.resolve()))
        opened = ((file, Profile.open(file, **options)) for file in files)
        return Profile.merged(_part(file, profile, time, start, threads) for file, profile in opened)
    groups: Literal["groups", False] = "groups" if threads else False
    try:
        return Profile.open(path, threads=groups, time=time, **options)
    except OptionError:
        return _part(path, Profile.open(path, threads=groups, **options), time, None, True)


def _part(path: Path, profile: Profile, time: TimeRange, start: int | None, threads: bool) -> Profile:
    if profile.times is None:
        raise UsageError(f"it is not known when the samples of {path} were taken", _REMEDY)
    part = profile.in_range(*time.microseconds(profile.times.start if start is None else start))
    return part if threads else part.without_threads()


def _files(path: Path) -> Sequence[Path]:
    """The files with times of a process, or of all processes that a host's or the cluster's profile is of."""
    if path.name.endswith(_TIMES):
        return (path,)
    if not path.name.endswith(_PPROF):
        return ()
    own = path.with_name(path.name.removesuffix(_PPROF) + _TIMES)
    if is_file(own):
        return (own,)
    processes = _processes(path.resolve())
    files = [one.with_name(own.name) for one in processes]
    unknown = next((file for file in files if not is_file(file)), None)
    if unknown is not None:
        raise ProfileError(f"the times of all samples of {path} are not known: {unknown} is missing")
    return files


def _processes(path: Path) -> Sequence[Path]:
    """The processes' profiles that a profile in a run folder is the sum of."""
    run = _run_of(path)
    match path.relative_to(run).parts if run else ():
        case ("cluster", name):
            return sorted(path.parents[1].glob(f"hosts/*/*/{name}"))
        case ("hosts", _, name):
            return sorted(path.parent.glob(f"*/{name}"))
    return ()


def _run_of(path: Path) -> Path | None:
    return next((one for one in path.parents[1:_DEEPEST] if is_file(one / RUN_FILE)), None)


@lru_cache(maxsize=16)
def _start_of_run(run: Path | None) -> int | None:
    """When second 0 of a run is; None if it is not known."""
    if run is None:
        return None
    try:
        return RunFolder.open(run).record.start
    except RunFolderError:
        return None
