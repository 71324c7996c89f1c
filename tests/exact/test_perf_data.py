"""perf.data read by us equals what `perf script` prints of the same file, sample for sample."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import perf_recordings as recordings
from tests.exact.perf_recordings import CLOCK, DD, GCC, GXX, RUSTC, Sample

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
    """A recording and what perf says of it."""

    def __init__(self, recording: Path) -> None:
        self.recording = recording
        self.script = recordings.perf_script(recording)
        self.samples = recordings.parsed(self.script)


@pytest.fixture(scope="module", params=["c", "c++", "rust", "kernel", "packed", "piped", "mixed", "java"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    recorded = Case(made(request.param, tmp_path_factory.mktemp(request.param)))
    yield recorded
    recordings.remove_perf_maps(recorded.samples)


def unlike(ours: Sample, perfs: Sample) -> str:
    lines = [f"{perfs[:5]} | {ours[:5]}"]
    lines += [f"{p} | {o}" for p, o in zip(perfs.frames, ours.frames, strict=False) if p != o]
    return "\n".join([*lines, f"{len(perfs.frames)} | {len(ours.frames)} frames"])


def test_each_sample_is_perf_scripts(case):
    ours = recordings.parsed(recordings.our_script(case.recording))
    assert len(case.samples) > 50
    assert len(ours) == len(case.samples)
    wrong = [unlike(mine, theirs) for mine, theirs in zip(ours, case.samples, strict=False) if mine != theirs]
    assert not wrong, f"{len(wrong)} of {len(ours)} samples differ (perf | ours), first:\n{wrong[0]}"


def test_the_whole_machine(tmp_path):
    program = recordings.compiled(tmp_path, GCC, "burn.c")
    recording = recordings.record(tmp_path / "all.data", ["-a", *CLOCK], [str(program)])
    # What else runs here is not the test's.
    known = {"burn", "dd", "swapper"}
    theirs = [
        sample for sample in recordings.parsed(recordings.perf_script(recording)) if sample.comm in known
    ]
    ours = [sample for sample in recordings.parsed(recordings.our_script(recording)) if sample.comm in known]
    assert len(theirs) > 100
    assert ours == theirs


def test_folded_it_is_what_inferno_makes_of_the_script(case):
    profile = Profile.open(str(case.recording), kernel=True, jit=True)
    events = list(dict.fromkeys(sample.event for sample in case.samples))
    single = len(profile.values) == 2
    names = [name for name, _ in profile.values]
    assert set(names[::2]) == ({"samples"} if single else set(events))
    assert names[1::2] == (["period"] if single else [f"{name}_period" for name in names[::2]])
    for value, name in list(enumerate(names))[::2]:
        script = case.script if name == "samples" else only(case.samples, name)
        expected = recordings.inferno_folded(script)
        text = Profile.from_bytes(script.encode(), "perf-script", kernel=True, jit=True)
        for folded in (profile.to_folded(value), text.to_folded()):
            assert without_hidden(recordings.folded(folded.decode())) == expected
    assert sum(profile.total(value) for value in range(0, len(names), 2)) == len(case.samples)


def test_modules_are_those_that_perf_prints(case):
    ours = Profile.open(str(case.recording)).modules()
    # As text a symbol in brackets is passed over.
    ours = {name: module for name, module in ours.items() if not name.startswith("(")}
    assert ours == Profile.from_bytes(case.script.encode(), "perf-script").modules()
    assert len(set(ours.values())) > 1


def test_periods_add_up_to_what_perf_prints(case):
    profile = Profile.open(str(case.recording))
    for value, (name, unit) in list(enumerate(profile.values))[1::2]:
        event = None if name == "period" else name[: -len("_period")]
        printed = recordings.periods(case.recording)
        assert profile.total(value) == sum(period for of, period in printed if event in (None, of))
        assert unit == ("nanoseconds" if name in ("period", "cpu-clock_period") else "count")


def only(samples: list[Sample], event: str) -> str:
    """The script of one event's samples: inferno takes the first event it sees."""
    lines = []
    for sample in samples:
        if sample.event == event:
            lines.append(f"{sample.comm} {sample.pid}/{sample.tid} {sample.time}: {event}: ")
            lines += [f"\t{frame}" for frame in sample.frames] + [""]
    return "\n".join(lines) + "\n"


def without_hidden(stacks: dict[str, int]) -> dict[str, int]:
    """As inferno has it: it takes frames of an anonymous namespace for names of processes, and drops them;
    samples without any frame it does not count."""
    kept: dict[str, int] = {}
    for stack, count in stacks.items():
        frames = [frame for frame in stack.split(";") if not frame.startswith("(")]
        if len(frames) > 1:
            kept[";".join(frames)] = kept.get(";".join(frames), 0) + count
    return kept


def test_the_unknown_is_counted_as_perf_prints_it(case):
    unknown = Profile.open(str(case.recording)).unknown
    frames = [frame for sample in case.samples for frame in sample.frames]
    unnamed = [frame for frame in frames if "[unknown] (" in frame]
    assert unknown["samples"] == len(case.samples)
    assert unknown["frames"] == len(frames)
    assert unknown["unknown_frames"] == len(unnamed) == sum(unknown["modules"].values())
    leaves = [sample.frames[0] for sample in case.samples if sample.frames]
    assert unknown["leaf_samples"] == sum("[unknown] (" in leaf for leaf in leaves)


def test_convert_tells_what_is_unknown(tmp_path):
    program = recordings.compiled(tmp_path, [*GCC, "-s"], "burn.c")
    recording = recordings.record(tmp_path / "stripped.data", CLOCK, [str(program)])
    run = subprocess.run(
        [sys.executable, "-m", "hprofiler", "convert", str(recording), "-o", str(tmp_path / "out.folded")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "of samples end in an unknown function" in run.stderr
    assert "[burn]" in (tmp_path / "out.folded").read_text()
