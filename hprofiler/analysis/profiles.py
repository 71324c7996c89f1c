"""The stored profiles of a host, read one by one."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hprofiler._flamegraph import Profile
from hprofiler.analysis.facts import RunFacts, is_program, root_patterns
from hprofiler.analysis.outliers import Comparison
from hprofiler.analysis.stages import divided
from hprofiler.base.paths import is_file, is_there
from hprofiler.model import HostRecord, Outcome, Recording, Status
from hprofiler.model.measures import measure_of
from hprofiler.runfolder import RunFolder

# Damage beyond so much is not looked for: a few bytes may unpack to any size.
_PIECE = 1 << 20
_MOST_PIECES = 256


@dataclass(frozen=True)
class Names:
    """How names are shown: `raw` does not merge generated names; `threads` keeps thread groups."""

    raw: bool = False
    threads: bool = False


# Takes each process's profile as it is shown, with groups of threads as outermost frames `[group]`.
Taker = Callable[[HostRecord, Recording, Profile], None]


@dataclass
class HostProfile:
    """A host's processes as one profile, the value shown first; `whole` was its total before trimming."""

    profile: Profile
    whole: int
    samples: int


class Reader:
    """Reads the profiles of an event, and lets `comparison` and `taker` see them, trimmed if need be.

    The taker's profiles have the times of their samples, if the run folder has them. What cannot be read or
    added up becomes a line of the ledger, in `problems`; times alone that cannot be read, one in `notes`.
    """

    def __init__(self, folder: RunFolder, facts: RunFacts, names: Names, taker: Taker | None = None) -> None:
        self.comparison = Comparison(facts.event)
        self.problems: list[Outcome] = []
        self.notes: list[Outcome] = []
        self._folder = folder
        self._facts = facts
        self._names = names
        self._taker = taker
        self._roots = root_patterns(facts.roots) if facts.trimmed else []
        self._program_roots = root_patterns(facts.program_roots) if facts.trimmed else []

    def read_host(self, host: HostRecord) -> HostProfile | None:
        """The host's processes as one profile; None when there is none."""
        merged: HostProfile | None = None
        for recording in host.recordings:
            try:
                merged = self._added(merged, host, recording)
            except (OSError, ValueError, RuntimeError) as error:
                self.problems.append(unreadable(host, recording, error))
        if merged is not None and merged.profile.total():
            self.comparison.add_host(host, merged.profile, merged.samples)
        return merged

    def _added(self, merged: HostProfile | None, host: HostRecord, recording: Recording) -> HostProfile:
        profile = shown_threads = self._read(host, recording, self._names.threads or self._taker is not None)
        shown, compared = profile.total(), self.comparison.whole(profile)
        roots = self._program_roots if is_program(recording.process) else self._roots
        if roots := roots or self._roots:
            profile = shown_threads = profile.below(roots)
        profile = shown_threads.without_times()  # sums have none
        if not self._names.threads and self._taker is not None:
            profile = profile.without_threads()
        _check_frames(profile)
        if self._taker is not None:
            self._taker(host, recording, shown_threads)
        samples = self.comparison.add_process(host, recording, profile, compared)
        # Last: a process that the taker refuses is in no sum.
        if merged is None:
            return HostProfile(profile, shown, samples)
        merged.profile.merge(profile)
        merged.whole += shown
        merged.samples += samples
        return merged

    def read(self, host: HostRecord, recording: Recording) -> Profile:
        """A process's profile as it was stored, not trimmed; its values are the event's, the one shown first.

        Broken stacks that cannot be trusted have lost their callers.

        Raises OSError, ValueError or RuntimeError for one that cannot be used.
        """
        profile = self._read(host, recording, self._names.threads)
        _check_frames(profile, profile.thread_count() if self._names.threads else 0)
        return profile

    def _read(self, host: HostRecord, recording: Recording, with_threads: bool) -> Profile:
        measure = measure_of(self._facts.event)
        path = self._folder.profile_path(host.name, recording.pid, self._facts.event)
        labels = {"host": host.name, "pid": str(recording.pid), "process": recording.label}
        broken = (host.name, recording.pid) in self._facts.untrusted
        groups = with_threads or broken
        threads: Literal["groups", False] = "groups" if groups else False
        if is_there(path) and not is_file(path):
            raise ValueError("it is not a regular file")
        damage = _damage(path)
        timed = with_threads or self._facts.time is not None or damage
        profile = self._read_times(host, recording, groups) if timed else None
        if profile is not None and damage:
            times = self._folder.times_path(host.name, recording.pid, self._facts.event).name
            reason = f"{path.name} is {damage}: read {times}, which has the same samples"
            self._note(host, recording, reason, "damaged-profile")
        if profile is None:
            profile = Profile.open(path, "pprof", threads=threads)
        if tuple(profile.values) != measure.columns:
            raise ValueError(f"it counts {profile.values}, not {list(measure.columns)}")
        if self._facts.is_mixed:
            profile = _by_cpu_time(profile, self._facts.record.sampling.frequency)
        profile = self._in_time(profile).with_labels(labels)
        profile = profile if self._names.raw else profile.canonical()
        if broken:
            profile = profile.without_callers()
            profile = profile if with_threads else profile.without_threads()
        return profile.select(measure.shown_first) if measure.shown else profile

    def _read_times(self, host: HostRecord, recording: Recording, with_threads: bool) -> Profile | None:
        """The profile with the times of its samples; None where they are not known."""
        path = self._folder.times_path(host.name, recording.pid, self._facts.event)
        if not is_there(path):
            return None
        try:
            if not is_file(path):
                raise ValueError("it is not a regular file")
            profile = Profile.open(path, "compact")
            totals = {name: profile.total(name) for name, _ in profile.values}
            if self._facts.time is None and recording.totals and totals != recording.totals:
                raise ValueError("it is of another recording")
        except (OSError, ValueError, RuntimeError) as error:
            reason = f"the times of its samples of {recording.event} cannot be used: {_reason(error)}"
            self._note(host, recording, reason, code="damaged-times")
            return None
        profile = divided(self._facts, host, recording, profile)
        return profile if with_threads else profile.without_threads()

    def _note(self, host: HostRecord, recording: Recording, reason: str, code: str) -> None:
        process = recording.pid, recording.label
        self.notes.append(Outcome(host.name, Status.DEGRADED, "report", reason, "", *process, code=code))

    def _in_time(self, profile: Profile) -> Profile:
        """The samples of the range that is looked at."""
        facts = self._facts
        if facts.time is None:
            return profile
        if profile.times is None or facts.start is None:
            raise ValueError("it is not known when its samples were taken")
        return profile.in_range(*facts.time.microseconds(facts.start))


def _damage(path: Path) -> str:
    """Whether a stored profile is "missing" or "damaged", else ""; the times of its samples may be there."""
    if not is_there(path):
        return "missing"
    try:
        with gzip.open(path) as packed:
            for _ in range(_MOST_PIECES):
                if not packed.read(_PIECE):
                    break
    except (OSError, EOFError, zlib.error):
        return "damaged"
    return ""


def _by_cpu_time(profile: Profile, frequency: int) -> Profile:
    """As many samples as its CPU time has at this frequency, so that processes of several engines add up."""
    if not profile.total("samples"):
        return profile
    return profile.with_total("samples", max(1, round(profile.total("cpu") / 1e9 * frequency)))


def _check_frames(profile: Profile, threads: int = 0) -> None:
    if profile.total() and profile.node_count() == threads:
        raise ValueError("no stack in it has a frame")


def unreadable(host: HostRecord, recording: Recording, error: Exception) -> Outcome:
    """The line of the ledger for a stored profile that cannot be used."""
    reason = f"its profile in the run folder cannot be used: {_reason(error)}"
    process = recording.pid, recording.label
    return Outcome(
        host.name, Status.FAILED, "report", reason, "record again", *process, code="damaged-profile"
    )


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
