"""The perf engine: inlined frames of JVMs, faults, waits and switches beside what the kernel counts."""

from __future__ import annotations

import pytest

from tests.burners.counting import Native, Truth
from tests.engines.conftest import Zoo
from tests.engines.measured import Run, Runner, Stacks, near

JDKS = (8, 17, 25)
FRAME_POINTER = "-XX:+PreserveFramePointer"


@pytest.fixture(scope="module")
def jvms(zoo: Zoo) -> dict[int, Truth]:
    return {jdk: zoo.jvm("busy=1", jdk=jdk, options=[FRAME_POINTER]) for jdk in JDKS}


@pytest.fixture(scope="module")
def runs(record: Runner, jvms: dict[int, Truth]) -> dict[str, Run]:
    programs = list(jvms.values())
    return {engine: record(programs, "--engine", engine, seconds=4) for engine in ("async-profiler", "perf")}


@pytest.mark.nightly
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


@pytest.fixture
def faulting(zoo: Zoo) -> Truth:
    """Kept arrays fill fresh pages of the heap for 50 s: a fault for every 4 KiB or less.

    Threads of the JVM's own, which fault when they begin, are as many on each machine.
    """
    return zoo.jvm("live=8", options=[FRAME_POINTER, "-XX:ActiveProcessorCount=2"])


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_page_faults(record: Runner, faulting: Truth, engine: str) -> None:
    """As many as the kernel counts."""
    raw = ["--keep-raw"] if engine == "async-profiler" else []
    run = record([faulting], "--engine", engine, "-e", "page-faults", *raw, seconds=4)
    assert run.profile(faulting, "page-faults").values == [("page-faults", "count")]
    faults = run.stacks(faulting, "page-faults", "page-faults").total
    least, most = run.counted(faulting, "page-faults", "process.faults")
    assert 0.9 * least <= faults <= 1.1 * most and most > 100, (least, faults, most)


@pytest.fixture(scope="module")
def program(zoo: Zoo) -> Native:
    """One that is not a JVM."""
    return zoo.native("c", 0.2)


@pytest.fixture(scope="module")
def off_cpu(record: Runner, program: Native) -> Run:
    return record([program], "-e", "offcpu", seconds=3)


@pytest.mark.parametrize(
    ("thread", "method", "kind", "part"),
    [
        ("[c-sleeper", "nap", "[sleep]", 0.95),
        ("[c-reader", "read_pipe", "[", 0.95),
        ("[c-locker", "lock_mutex", "[lock]", 0.80),
    ],
)
def test_off_cpu(off_cpu: Run, program: Native, thread: str, method: str, kind: str, part: float) -> None:
    """A wait that began before the recording, or ends after it, is not seen by who records switches."""
    seconds = off_cpu.recording(program, "offcpu")["seconds"]
    waited = off_cpu.stacks(program, "offcpu", "offcpu")
    assert near(waited.of(thread), seconds * 1e9, 0.10)
    assert waited.of(thread, method, kind) > part * waited.of(thread)


@pytest.mark.nightly
@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize("event", ["context-switches", "sched:sched_switch"])
def test_switches_are_as_many_as_the_kernel_counts(record: Runner, program: Native, event: str) -> None:
    """As a software event, and as a tracepoint."""
    run = record([program], "-e", event, seconds=3)
    assert run.recording(program, event)["engine"] == "perf"
    (value,) = run.profile(program, event).values
    assert value == (event, "count")
    switches = run.stacks(program, event, event)
    assert run.agree(program, event, "process.switches", 0.10, switches.total)
    assert run.agree(program, event, "naps", 0.10, switches.of("nap"))
