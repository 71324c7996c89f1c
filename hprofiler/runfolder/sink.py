"""Checks what arrives from agents and writes it to the run folder."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.base.errors import HostError, ProfileError
from hprofiler.model import Host, Process, Recording, SampleTimes
from hprofiler.model.measures import measure_of
from hprofiler.model.metrics import Metrics
from hprofiler.runfolder import RunFolder, replacing, times_name
from hprofiler.runfolder.metrics_file import add_metrics, write_metrics
from hprofiler.runfolder.parts import MOST, Limits, Parts
from hprofiler.runfolder.record_folder import writing
from hprofiler.runfolder.window import Window

# Hosts send in parallel, but few profiles are decoded at a time, so that memory does not grow with hosts.
_CONVERSIONS = min(8, max(2, os.cpu_count() or 1))


# A few kilobytes can hold millions of nodes or long names, so large profiles are decoded one at a time.
_USUAL = Limits(1 << 19, 1 << 18, 8 << 20)
# Sum over a host's profiles: a day of four hundred processors in nanoseconds. Sums over all hosts have 63
# bits.
_MOST_OF_HOST = 1 << 55
_MOST_OF_THREADS = 1 << 58
_CLOCK_SET = "look whether the host's clock was set during the recording, and record again"
# Seconds by which times may be off. Clocks were compared once, and may be set during a recording.
_SLACK = 60.0
_AGAIN = "record again, for a shorter time or with fewer events if the profile is too large"
_OF_THREADS = frozenset({"wall", "offcpu", "delay"})


class FolderSink:
    """Writes to the run folder: profiles as gzipped pprof with the thread as a label.

    A profile with times is also kept as it arrived, because pprof has none.
    """

    def __init__(self, folder: RunFolder, window: Window | None = None) -> None:
        """With a `window`, all profiles stay parts until it is cut."""
        self._folder = folder
        self._window = window
        self._turns = threading.BoundedSemaphore(_CONVERSIONS)
        self._large = threading.Lock()
        self._counting = threading.Lock()
        self._sums: dict[tuple[str, str], int] = {}
        self._began = time.time()

    def profile(
        self, host: Host, recording: Recording, pieces: Iterator[bytes], more: bool = False
    ) -> Recording:
        """`collect.ProfileSink.profile`. Raises ProfileError for a profile with other values."""
        path = self._folder.profile_path(host.name, recording.process.pid, recording.event)
        arrived = path.with_name(f".{path.name}.arrived")
        try:
            with writing(path):
                self._write(arrived, pieces)
                parts = Parts(path)
                if more or parts or self._window:
                    return self._within_bounds(self._add_part, arrived, parts, host, recording, more)
                return self._within_bounds(self._converted, arrived, path, host, recording)
        finally:
            with contextlib.suppress(OSError):  # the earlier error is more useful
                arrived.unlink(missing_ok=True)

    def raw(self, host: Host, process: Process, name: str, pieces: Iterator[bytes]) -> None:
        """`collect.ProfileSink.raw`. Raw files are not masked, so only the owner may read them."""
        path = self._folder.raw_path(host.name, process.pid, name)
        with writing(path):
            self._write(path, pieces, mode=0o600)

    def metrics(self, host: Host, metrics: Metrics, more: bool = False) -> None:
        """`collect.ProfileSink.metrics`."""
        off = self._off(metrics.time[0], sum(metrics.time)) if metrics.time else 0.0
        if off > _SLACK:
            raise HostError("fetch", f"their times are {off:.0f} s off", _CLOCK_SET, code="times-impossible")
        if more and self._window:
            return  # the last message has all of them
        path = self._folder.metrics_path(host.name)
        with writing(path):
            (add_metrics if more else write_metrics)(path, metrics)

    def _within_bounds(self, keep: Callable[..., Recording], *arguments: object) -> Recording:
        """Keep a profile within the usual bounds, or else one at a time within the largest."""
        with self._turns:
            try:
                return keep(_USUAL, *arguments)
            except _Unreadable:  # it may just exceed the usual bounds
                pass
        with self._large:
            return keep(MOST, *arguments)

    def _converted(
        self, most: Limits, arrived: Path, path: Path, host: Host, recording: Recording
    ) -> Recording:
        """Writes the compact profile as pprof, and keeps it if it has times."""
        profile = _read(arrived, recording, most)
        recording = self._with_figures(recording, profile)
        with self._counted(host, recording):
            labels = recording.process.profile_labels(host.name)
            profile.with_labels(labels).write(path, "pprof", thread_label=True)
            if recording.times:
                try:
                    arrived.replace(path.with_name(times_name(path)))
                except OSError:
                    path.unlink(missing_ok=True)
                    raise
            return recording

    def _add_part(
        self, most: Limits, arrived: Path, parts: Parts, host: Host, recording: Recording, more: bool
    ) -> Recording:
        """Keeps a part of a recording. With the last one, all of them become its profile."""
        profile = _read(arrived, recording, most)
        recording = self._with_figures(recording, profile)
        with self._counted(host, recording):
            if recording.times_off:
                profile.without_times().write(arrived, "compact")
            if self._window:
                self._window.add(parts, arrived, recording)
                return recording
            try:
                parts.add(arrived, recording)
                whole = None if more else parts.settle(recording.process.profile_labels(host.name))
            except ValueError as error:
                raise ProfileError(f"{_what(recording)} cannot be put together: {error}", _AGAIN) from error
        if whole is None:
            return recording
        times = SampleTimes(whole.times.start, whole.times.width) if whole.times else None
        return replace(recording, times=times)

    def _with_figures(self, recording: Recording, profile: Profile) -> Recording:
        """With the profile's sums, and its times: impossible ones would stretch those of all hosts."""
        totals = {name: profile.total(name) for name, _ in profile.values}
        times = profile.times
        if not times:
            return replace(recording, totals=totals)
        off = self._off(times.start, times.end)
        if off > _SLACK:
            # Times of a profile without samples may begin with the host, and matter to nobody.
            return replace(recording, totals=totals, times_off=off if times.samples else 0.0)
        return replace(recording, totals=totals, times=SampleTimes(times.start, times.width))

    def _off(self, start: int, end: int) -> float:
        """By how many seconds times (microseconds since 1970) lie outside the run."""
        return max(self._began - start / 1e6, end / 1e6 - time.time(), 0.0)

    @contextmanager
    def _counted(self, host: Host, recording: Recording) -> Iterator[None]:
        """Raises ProfileError for impossible amounts, which would spoil the sums over all hosts.

        Amounts count only if the block, which writes the profile, succeeds.
        """
        totals = recording.totals
        with self._counting:
            sums = {name: self._sums.get((host.name, name), 0) + total for name, total in totals.items()}
            for name, total in sums.items():
                if total > (_MOST_OF_THREADS if name in _OF_THREADS else _MOST_OF_HOST):
                    raise ProfileError(
                        f"{_what(recording)} is impossible: {totals[name]} {name}", "record again"
                    )
            self._count(host, totals, 1)
        try:
            yield
        except BaseException:
            with self._counting:
                self._count(host, totals, -1)
            raise

    def _count(self, host: Host, totals: Mapping[str, int], times: int) -> None:
        for name, total in totals.items():
            key = (host.name, name)
            self._sums[key] = self._sums.get(key, 0) + times * total

    @staticmethod
    def _write(path: Path, pieces: Iterator[bytes], mode: int = 0o666) -> None:
        with replacing(path, mode) as file:
            for piece in pieces:
                file.write(piece)


class _Unreadable(ProfileError):
    """The profile is damaged or exceeds the bounds."""


def _read(arrived: Path, recording: Recording, most: Limits) -> Profile:
    what = _what(recording)
    try:
        profile = Profile.open(arrived, "compact", **most._asdict())
    except (ValueError, RuntimeError) as error:
        reason = str(error).replace(f"{arrived}: ", "")
        raise _Unreadable(f"{what} cannot be read: {reason}", _AGAIN) from error
    if tuple(profile.values) != measure_of(recording.event).columns:
        raise ProfileError(f"{what} has other values: {profile.values}", "record again")
    return profile


def _what(recording: Recording) -> str:
    return f"the {recording.event} profile of process {recording.pid}"
