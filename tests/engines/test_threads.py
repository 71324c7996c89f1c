"""JVMs of many threads."""

from __future__ import annotations

import pytest

from tests.engines.conftest import Zoo
from tests.engines.measured import Runner, near, points

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_500_threads(record: Runner, zoo: Zoo, engine: str) -> None:
    jvm = zoo.jvm("crowd=500", options=["-XX:+PreserveFramePointer"])
    run = record([jvm], "--engine", engine, seconds=4)
    jvm.finish()
    counted = run.grown(jvm)
    assert run.cpu_seconds_agree(jvm)
    samples = run.stacks(jvm, "cpu", "samples")
    # what the threads count leaves out their falling asleep
    least = min(1.0, counted["crowd.ns"] / counted["process.ns"])
    assert samples.of("[truth-crowd-N]") / samples.total > least - points(samples.total, least, 0.03)
    groups = {frames[0] for frames, _ in samples.stacks if "truth-crowd" in frames[0]}
    assert groups == {"[truth-crowd-N]"}


@pytest.mark.parametrize(("threads", "interval"), [(500, 50), (180, 10)])
def test_the_waits_of_many_threads(record: Runner, zoo: Zoo, threads: int, interval: int) -> None:
    """One thread goes round and signals them all. Where it falls behind, that is made up for and told."""
    jvm = zoo.jvm(f"crowd={threads}")
    run = record([jvm], "-e", "cpu,wall", "--keep-raw", seconds=4)
    jvm.finish()
    recording = run.recording(jvm, "wall")
    wall = run.stacks(jvm, "wall", "wall").of("[truth-crowd-N]")
    truth = threads * recording["seconds"] * 1e9
    assert near(wall, truth, run.wall_slack(jvm, asked=interval)), (wall, truth, recording)
    slower = recording["interval"] / (interval * 1e6)
    assert slower >= 1
    assert slower < 1.05 or "could not keep up" in run.told(jvm), (slower, run.told(jvm))
    assert run.cpu_seconds_agree(jvm)
