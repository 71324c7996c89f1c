"""What the perf engine owes to JVMs: inlined frames, names, and plain words where frames are missing."""

from __future__ import annotations

import pytest

from tests.burners.counting import Truth
from tests.engines.conftest import Zoo
from tests.engines.measured import Run, Runner, Stacks, near, share_of_unknown

pytestmark = pytest.mark.nightly

JDKS = (8, 17, 25)
FRAME_POINTER = "-XX:+PreserveFramePointer"


@pytest.fixture(scope="module")
def jvms(zoo: Zoo) -> dict[int, Truth]:
    return {jdk: zoo.jvm("busy=1", jdk=jdk, options=[FRAME_POINTER]) for jdk in JDKS}


@pytest.fixture(scope="module")
def runs(record: Runner, jvms: dict[int, Truth]) -> dict[str, Run]:
    programs = list(jvms.values())
    return {engine: record(programs, "--engine", engine, seconds=4) for engine in ("async-profiler", "perf")}


@pytest.mark.parametrize("jdk", JDKS)
def test_inlined_frames_are_unfolded(runs: dict[str, Run], jvms: dict[int, Truth], jdk: int) -> None:
    """Stacks are as deep as async-profiler's, which asks the JVM itself."""
    depths = {engine: _depth(run.stacks(jvms[jdk], "cpu", "samples")) for engine, run in runs.items()}
    assert near(depths["perf"], depths["async-profiler"], 0.15), depths


def _depth(samples: Stacks) -> float:
    """Mean number of the burner's frames in the samples that have any."""
    counted = [(sum("truth/Busy" in frame for frame in frames), value) for frames, value in samples.stacks]
    inside = sum(value for depth, value in counted if depth)
    return sum(depth * value for depth, value in counted) / max(1, inside)


@pytest.mark.parametrize("jdk", JDKS)
def test_frames_have_names(runs: dict[str, Run], jvms: dict[int, Truth], jdk: int) -> None:
    samples = runs["perf"].stacks(jvms[jdk], "cpu", "samples")
    assert share_of_unknown(samples, jvms[jdk]) < 0.02


@pytest.mark.parametrize("jdk", JDKS)
def test_compiled_frames_have_their_kind(runs: dict[str, Run], jvms: dict[int, Truth], jdk: int) -> None:
    samples = runs["perf"].stacks(jvms[jdk], "cpu", "samples")
    kinds = {frame[-4:] for stack, _ in samples.stacks for frame in stack if "truth/Busy" in frame}
    assert {"_[j]", "_[i]"} <= kinds, kinds


def test_without_frame_pointers_it_is_said(record: Runner, zoo: Zoo) -> None:
    jvm = zoo.jvm("busy=1")
    run = record([jvm], "--engine", "perf", seconds=2)
    assert FRAME_POINTER in run.told(jvm)
    assert run.outcome(jvm)["status"] == "degraded"
    assert run.cpu_seconds_agree(jvm)


def test_with_frame_pointers_it_is_not(runs: dict[str, Run], jvms: dict[int, Truth]) -> None:
    assert FRAME_POINTER not in runs["perf"].told(jvms[17])


@pytest.fixture
def faulting(zoo: Zoo) -> Truth:
    """Kept arrays fill fresh pages of the heap for 50 s: a fault for every 4 KiB or less.

    Threads of the JVM's own, which fault when they begin, are as many on each machine.
    """
    return zoo.jvm("live=8", options=[FRAME_POINTER, "-XX:ActiveProcessorCount=2"])


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_page_faults(record: Runner, faulting: Truth, engine: str) -> None:
    """As many as the kernel counts."""
    raw = ["--keep-raw"] if engine == "async-profiler" else []
    run = record([faulting], "--engine", engine, "-e", "page-faults", *raw, seconds=4)
    assert run.profile(faulting, "page-faults").values == [("page-faults", "count")]
    faults = run.stacks(faulting, "page-faults", "page-faults").total
    least, most = run.counted(faulting, "page-faults", "process.faults")
    assert 0.9 * least <= faults <= 1.1 * most and most > 100, (least, faults, most)


def test_what_it_cannot_do_for_a_jvm(record: Runner, jvms: dict[int, Truth]) -> None:
    run = record([jvms[17]], "--engine", "perf", "-e", "alloc", seconds=1)
    outcome = run.outcome(jvms[17])
    assert outcome["status"] == "failed" and "async-profiler" in outcome["remedy"], outcome
