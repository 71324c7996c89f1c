"""Our reading of perf.data equals the output of `perf script` for the same file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import jfr_recordings as jfr
from tests.exact import perf_recordings as recordings
from tests.exact.perf_recordings import CLOCK, DD, GCC, GXX, RUSTC

pytestmark = pytest.mark.nightly

MIXED = ["-F", "499", "-e", "cpu-clock,page-faults,context-switches"]
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "c": (GCC, "burn.c"),
    "c++": (GXX, "templates.cc"),
    "rust": (RUSTC, "traits.rs"),
}


def made(name: str, folder: Path) -> Path:
    """The recording of this name."""
    if name == "java":
        return recordings.record_java(folder)[0]
    if name == "kernel":
        return recordings.record(folder / "data", ["-F", "999", "-e", "cpu-clock"], DD)
    program = recordings.compiled(folder, *PROGRAMS.get(name, PROGRAMS["c"]))
    options = {"mixed": MIXED, "packed": ["-z", *CLOCK]}.get(name, CLOCK)
    return recordings.record(folder / "data", options, [str(program)], piped=name == "piped")


class Case:
    """A recording and perf's output for it."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self.script = recordings.perf_script(recording)
        self.samples = recordings.parsed(self.script)


@pytest.fixture(scope="module", params=["c", "c++", "rust", "kernel", "packed", "piped", "mixed", "java"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    recorded = Case(made(request.param, tmp_path_factory.mktemp(request.param)))
    yield recorded
    recordings.remove_perf_maps(recorded.samples)


def stacks(profile: Profile, value: str) -> dict[str, int]:
    """In perf's text symbols in brackets are ignored, and stubs have no names."""
    counts: Counter[str] = Counter()
    for stack, count in jfr.stacks(profile.to_folded(value)).items():
        frames = (re.sub(r".*@plt$", "@plt", frame) for frame in stack.split(";"))
        counts[";".join(frame for frame in frames if not frame.startswith("("))] += count
    return counts


def test_stacks_are_those_of_perf_script(case):
    ours = Profile.open(str(case.recording), tid=True, addrs=True)
    perfs = Profile.from_bytes(case.script.encode(), "perf-script", tid=True, addrs=True)
    assert len(case.samples) > 50
    assert sorted(perfs.values) == sorted(ours.values[::2])
    for value, _ in perfs.values:
        assert stacks(ours, value) == stacks(perfs, value)


def test_modules_are_those_that_perf_prints(case):
    # In perf's text symbols in brackets are ignored, and stubs have no names.
    ours, perfs = (
        {name: module for name, module in profile.modules().items() if not re.match(r"\(|.*@plt$", name)}
        for profile in (
            Profile.open(str(case.recording)),
            Profile.from_bytes(case.script.encode(), "perf-script"),
        )
    )
    assert ours == perfs and len(set(ours.values())) > 1


def test_periods_add_up_to_what_perf_prints(case):
    profile = Profile.open(str(case.recording))
    for value, (name, unit) in list(enumerate(profile.values))[1::2]:
        event = None if name == "period" else name[: -len("_period")]
        printed = recordings.periods(case.recording)
        assert profile.total(value) == sum(period for of, period in printed if event in (None, of))
        assert unit == ("nanoseconds" if name in ("period", "cpu-clock_period") else "count")


def test_the_unknown_is_counted_as_perf_prints_it(case):
    unknown = Profile.open(str(case.recording)).unknown
    frames = [frame for sample in case.samples for frame in sample.frames]
    unnamed = [frame for frame in frames if "[unknown] (" in frame]
    assert unknown["samples"] == len(case.samples)
    assert unknown["frames"] == len(frames)
    assert unknown["unknown_frames"] == len(unnamed) == sum(unknown["modules"].values())
    leaves = [sample.frames[0] for sample in case.samples if sample.frames]
    assert unknown["leaf_samples"] == sum("[unknown] (" in leaf for leaf in leaves)


OFF_CPU = ["-e", "context-switches/period=1/", "--switch-events", "-m", "8M"]
"""With buffers for all events if a busy machine gives perf no time to write."""


def test_waits_are_as_long_as_the_program_says(tmp_path):
    program = recordings.compiled(tmp_path, [*GCC, "-pthread"], "waits.c")
    told = tmp_path / "told"
    recording = recordings.record(tmp_path / "data", OFF_CPU, [str(program), str(told)], piped=True)
    truth = {name: int(nanoseconds) for name, nanoseconds in map(str.split, told.read_text().splitlines())}
    stacks, said = recordings.live(recording, "context-switches", "off-cpu")
    assert said["lost"] == 0
    measured = {
        "sleeps": waited(stacks, "[sleep]", "sleeps"),
        "contends": waited(stacks, "[lock]"),
        "receives": waited(stacks, "[network]"),
    }
    for name, nanoseconds in truth.items():
        assert measured[name] == pytest.approx(nanoseconds, rel=0.1), (name, measured, truth)


def waited(stacks: dict[str, int], kind: str, function: str | None = None) -> int:
    """Nanoseconds of one kind of wait, in stacks with a function."""
    total = 0
    for stack, nanoseconds in stacks.items():
        frames = stack.split(";")
        if frames[1] == kind and (function is None or function in frames):
            total += nanoseconds
    return total
