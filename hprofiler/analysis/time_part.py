"""The facts of a run as they are of a range of its time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import astuple, replace
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.facts import RunFacts
from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_file
from hprofiler.base.time_range import TimeRange
from hprofiler.model import HostRecord, Recording, Samples
from hprofiler.runfolder import RunFolder

WITHOUT_TIMES = "record it again, without --no-timeline"
"""What to do where it is not known when samples were taken."""


def facts_of_range(folder: RunFolder, facts: RunFacts, time: TimeRange) -> RunFacts:
    """The facts of the samples that were taken in a range.

    What was expected and lost, and CPU time, are the same part of a recording as its samples. Raises
    UsageError if the run folder has no times, or the range begins after all of them.
    """
    if facts.start is None:
        raise UsageError(f"it is not known when the samples of {folder.path} were taken", WITHOUT_TIMES)
    end = max(recorded_in(one, facts.start)[1] for one in facts.recordings if one.times)
    length = min(end, time.end) - time.begin
    if length <= 0:
        raise UsageError(f"no samples {time}: {folder.path} lasted {end:.6g} s", "name an earlier time")
    hosts = (_of_range(folder, facts.start, host, time) for host in facts.hosts)
    return replace(facts, hosts=tuple(hosts), time=time, duration=length)


def recorded_in(recording: Recording, start: int, time: TimeRange | None = None) -> tuple[float, float]:
    """The seconds of a run, which begins at `start`, in which a process was recorded; those of a range.

    Without times the recording may be anywhere: then the range is all of it.
    """
    begin, end = 0.0, recording.seconds
    if recording.times is not None:
        begin = (recording.times.start - start) / 1e6
        end += begin
    elif time is not None:
        begin, end = time.begin, min(time.end, time.begin + end)
    if time is None:
        return begin, end
    begin = max(begin, time.begin)
    return begin, max(begin, min(end, time.end))


def _of_range(folder: RunFolder, start: int, host: HostRecord, time: TimeRange) -> HostRecord:
    recordings = []
    for one in host.recordings:
        path = folder.times_path(host.name, one.pid, one.event)
        part = _part(one, path, time.microseconds(start))
        begin, end = recorded_in(one, start, time)
        if end > begin:
            joined = begin - time.begin if one.joined else 0.0
            recordings.append(replace(part, seconds=end - begin, joined=joined))
    # How long processes were recorded is no more a part of the duration.
    outcomes = [replace(outcome, seconds=None) for outcome in host.outcomes]
    return host.part(recordings, outcomes)


def _part(recording: Recording, path: Path, bounds: tuple[int, int]) -> Recording:
    """The samples of a range; none where they are not known, which the reader of profiles says."""
    totals: dict[str, int] = {}
    part = 0.0
    with suppress(OSError, ValueError, RuntimeError):
        whole = Profile.open(path, "compact") if is_file(path) else None
        if whole is not None and whole.times is not None:
            inside = whole.in_range(*bounds)
            totals = {name: inside.total(name) for name, _ in inside.values}
            part = (inside.times.samples if inside.times else 0) / max(1, whole.times.samples)
    samples = Samples(*(round(part * count) for count in astuple(recording.samples)))
    return replace(recording, samples=samples, cpu_seconds=part * recording.cpu_seconds, totals=totals)
