"""Recordings of killed JVMs, and damaged ones: what is complete is read, the rest is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import jfr_recordings as jfr
from tests.lab.procs import wait_for

pytestmark = pytest.mark.nightly

HEADER = 68
SMALL = "event=cpu,interval=5ms,alloc=1m,chunktime=1s"


def test_async_profiler_killed_in_its_second_chunk(tmp_path: Path) -> None:
    """The first chunk is complete; the last has no names yet."""
    recording = tmp_path / "killed.jfr"
    jvm = jfr.start(25, recording, seconds=120, agent="4.4", options=SMALL)
    try:
        wait_for("a second chunk", lambda: recording.exists() and second_chunk_began(recording))
    finally:
        jvm.kill()
        jvm.communicate()
    profile = Profile.open(recording)
    content = recording.read_bytes()
    complete = complete_chunks(content)
    assert profile.to_folded() == Profile.from_bytes(content[:complete]).to_folded()
    assert profile.total() > 0
    broken = [f"JFR recording, byte {complete}"] if complete < len(content) else []
    assert [warning.split(": ")[0] for warning in profile.warnings] == broken


def second_chunk_began(recording: Path) -> bool:
    content = recording.read_bytes()
    return 0 < complete_chunks(content) < len(content) - 1000


def complete_chunks(content: bytes) -> int:
    """Where the last chunk ends that was finished: one that was not has but its header's size, or none.

    On a busy machine a JVM may finish more than one before it is killed.
    """
    place = 0
    while HEADER < (size := int.from_bytes(content[place + 8 : place + 16], "big")) <= len(content) - place:
        place += size
    return place


def test_jdk_killed_within_a_chunk(tmp_path: Path) -> None:
    """Its recorder writes names along with the events, every second."""
    repository = tmp_path / "repository"
    flags = [
        f"-XX:FlightRecorderOptions:repository={repository}",
        "-XX:StartFlightRecording:settings=profile",
    ]
    jvm = jfr.start(25, tmp_path / "unused", seconds=120, flags=flags)
    try:
        wait_for(
            "ten samples", lambda: any(readable_samples(path) > 10 for path in repository.glob("*/*.jfr"))
        )
    finally:
        jvm.kill()
        jvm.communicate()
    (recording,) = repository.glob("*/*.jfr")
    assert Profile.open(recording).total("samples") > 10


def readable_samples(recording: Path) -> int:
    """How many samples there are with what is flushed by now; none before the first names are written."""
    try:
        return Profile.open(recording).total("samples")
    except ValueError:
        return 0
