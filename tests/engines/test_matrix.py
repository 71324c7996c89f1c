"""JDK 8 to 25 with either engine: shares and absolute totals beside the programs' own counters."""

from __future__ import annotations

import pytest

from tests.burners.counting import Truth
from tests.engines.conftest import Zoo
from tests.engines.measured import FREQUENCY, SIGMAS, Run, Runner, near, points, scatter
from tests.lab import jdks
from tests.needed import lacking

pytestmark = pytest.mark.nightly

ENGINES = ("async-profiler", "perf")
CPU = {"java": "Cpu.inJava", "native": "Cpu.inNative", "kernel": "Cpu.inKernel"}
ALLOC = {"small": 24, "medium": 1016, "large": 50_016, "huge": 1_000_016}
"""Sizes of the objects of each site."""
AT_THE_EDGES = 2
"""Objects that may have been made just before or just after the recording, of which each was sampled."""
FRAME_POINTER = "-XX:+PreserveFramePointer"


@pytest.fixture(scope="module")
def jvms(zoo: Zoo) -> dict[int, Truth]:
    """A JVM of every version that can be had, all at once."""
    there = [version for version in jdks.VERSIONS if _is_there(version)]
    works = ("cpu=0.28", "alloc=40")
    return {version: zoo.jvm(*works, jdk=version, options=[FRAME_POINTER]) for version in there}


def _is_there(version: int) -> bool:
    return not jdks.everything()[version].startswith("not available")


@pytest.fixture(scope="module")
def runs(record: Runner, jvms: dict[int, Truth]) -> dict[str, Run]:
    """One run of each engine over all JVMs."""
    programs: list[Truth] = list(jvms.values())
    many = ["--alloc-interval", "32k"]
    return {
        "async-profiler": record(programs, "-e", "cpu,alloc", *many, "--keep-raw", seconds=6),
        "perf": record(programs, "--engine", "perf", seconds=6),
    }


@pytest.fixture(params=jdks.VERSIONS, ids=lambda version: f"jdk{version}")
def jvm(request: pytest.FixtureRequest, jvms: dict[int, Truth]) -> Truth:
    version: int = request.param
    if version not in jvms:
        lacking(jdks.everything()[version])
    return jvms[version]


@pytest.fixture(params=ENGINES)
def run(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    return runs[request.param]


def test_the_engine_asked_for_is_used(runs: dict[str, Run], jvm: Truth) -> None:
    assert [runs[engine].recording(jvm)["engine"] for engine in ENGINES] == list(ENGINES)


def test_cpu_seconds(run: Run, jvm: Truth) -> None:
    recording = run.recording(jvm)
    assert run.cpu_seconds_agree(jvm), (recording, run.grown(jvm))
    assert near(recording["samples"]["expected"], FREQUENCY * recording["cpu_seconds"], 0.01)
    assert recording["samples"]["taken"] > 0.5 * recording["samples"]["expected"]


def test_shares_of_cpu_time(run: Run, jvm: Truth) -> None:
    """By the last frame's kind: the C library and zlib may have no frame pointers to walk by.

    Some kernel time is the threads' going to sleep, more so on a busy machine.
    """
    truth = _truth(run, jvm)
    samples = run.stacks(jvm, "cpu", "samples")
    thread = samples.of("[truth-cpu-")
    found = {
        "java": samples.of("[truth-cpu-", CPU["java"]) / thread,
        "native": samples.of_leaf("", "[truth-cpu-") / thread,
        "kernel": samples.of_leaf("k", "[truth-cpu-") / thread,
    }
    for name, share in truth.items():
        assert found[name] == pytest.approx(share, abs=points(thread, share, 0.05)), (name, found, truth)


def _truth(run: Run, jvm: Truth) -> dict[str, float]:
    counted = run.grown(jvm)
    total = sum(counted[f"cpu.{name}.ns"] for name in CPU)
    return {name: counted[f"cpu.{name}.ns"] / total for name in CPU}


def test_whole_stacks(runs: dict[str, Run], jvm: Truth) -> None:
    """From the thread's root to the method, interpreted frames included."""
    samples = runs["async-profiler"].stacks(jvm, "cpu", "samples")
    whole = samples.of(
        "Thread.run", "Cpu.run", "Share.one", "Cpu$Timed.slice", "Cpu$InJava.burn", CPU["java"]
    )
    assert whole > 0.95 * samples.of(CPU["java"])


def test_callers_of_native_and_kernel_code(runs: dict[str, Run], jvm: Truth) -> None:
    """async-profiler finds the Java method above; perf where all in between keeps frame pointers."""
    run = runs["async-profiler"]
    samples = run.stacks(jvm, "cpu", "samples")
    thread = samples.of("[truth-cpu-")
    truth = _truth(run, jvm)
    for name, kind in (("native", ""), ("kernel", "k")):
        below = samples.of("[truth-cpu-", CPU[name])
        assert below / thread == pytest.approx(truth[name], abs=points(thread, truth[name], 0.05)), name
        assert samples.of_leaf(kind, "[truth-cpu-", CPU[name]) > 0.8 * below


def test_allocated_bytes(runs: dict[str, Run], jvms: dict[int, Truth], jvm: Truth) -> None:
    run = runs["async-profiler"]
    if jvm is jvms.get(8):
        assert "alloc" not in run.recordings(jvm)
        assert run.outcome(jvm)["status"] == "degraded"
        assert "debug symbols" in run.told(jvm)
        return
    counted = run.grown(jvm, "alloc")
    space = run.stacks(jvm, "alloc", "alloc_space")
    objects = run.stacks(jvm, "alloc", "alloc_objects")
    assert near(space.total, counted["alloc.everywhere.bytes"], 0.10), (space.total, counted)
    interval, thread = run.recording(jvm, "alloc")["interval"], counted["alloc.thread.bytes"]
    for site, size in ALLOC.items():
        made, number = counted[f"alloc.{site}.bytes"], counted[f"alloc.{site}.objects"]
        share, sampled = made / thread, thread / interval
        found = space.of(f"Alloc.{site}") / space.of("[truth-alloc-")
        assert found == pytest.approx(share, abs=points(sampled, share)), site
        within = number * (0.05 + SIGMAS * scatter(made, size, interval)) + AT_THE_EDGES
        assert objects.of(f"Alloc.{site}") == pytest.approx(number, abs=within), site


@pytest.fixture(scope="module")
def unasked(record: Runner, jvms: dict[int, Truth]) -> Run:
    """A run for which no interval was asked for; all JVMs together have some thousand samples."""
    return record(list(jvms.values()), "-e", "alloc", "--keep-raw", seconds=8)


def test_the_interval_chosen_is_stated(unasked: Run, jvms: dict[int, Truth], jvm: Truth) -> None:
    if jvm is not jvms.get(8):
        assert unasked.recording(jvm, "alloc")["interval"] >= 512 * 1024
        assert "allocation interval" in unasked.told(jvm)


def test_allocated_bytes_at_the_interval_chosen(unasked: Run, jvms: dict[int, Truth]) -> None:
    """Of all JVMs together: one alone has too few samples."""
    told = counted = variance = 0.0
    for jvm in (jvm for version, jvm in jvms.items() if version > 8):
        made, interval = unasked.grown(jvm, "alloc"), unasked.recording(jvm, "alloc")["interval"]
        told += unasked.stacks(jvm, "alloc", "alloc_space").total
        counted += made["alloc.everywhere.bytes"]
        sites = {made[f"alloc.{site}.bytes"]: size for site, size in ALLOC.items()}
        variance += sum((amount * scatter(amount, size, interval)) ** 2 for amount, size in sites.items())
    chance = SIGMAS * variance**0.5 / counted
    assert near(told, counted, max(0.10, chance)), (told, counted, chance)
