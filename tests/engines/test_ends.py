"""JVMs that end, and JVMs of many threads."""

from __future__ import annotations

import signal
import time

import pytest

from tests.engines.conftest import Zoo
from tests.engines.measured import FREQUENCY, Runner, points


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_a_jvm_that_exits_in_the_middle(record: Runner, zoo: Zoo, engine: str) -> None:
    """What was sampled so far is kept, and the others go on."""
    short = zoo.jvm("cpu=0.4", options=["-XX:+PreserveFramePointer"])
    other = zoo.jvm("cpu=0.4", options=["-XX:+PreserveFramePointer"])

    def end() -> None:
        time.sleep(2)  # what is tested is that time is recorded
        short.outer.kill(signal.SIGTERM)

    run = record([short, other], "--engine", engine, seconds=4, meanwhile=end)
    outcome = run.outcome(short)
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"], outcome
    recording = run.recording(short)
    assert 1.5 < recording["seconds"] < 3.5
    assert recording["samples"]["taken"] > 0.8 * FREQUENCY * recording["cpu_seconds"] > 0
    if engine == "async-profiler":  # a JVM that has ended tells perf nothing of its code
        assert run.stacks(short, "cpu", "samples").of("Cpu.inJava") > 0
    assert run.outcome(other)["status"] == "ok" or engine == "perf"
    assert run.cpu_seconds_agree(other)


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


def test_the_waits_of_500_threads(record: Runner, zoo: Zoo) -> None:
    jvm = zoo.jvm("crowd=500")
    run = record([jvm], "-e", "cpu,wall", seconds=4)
    jvm.finish()
    wall = run.stacks(jvm, "wall", "wall").of("[truth-crowd-N]")
    # one thread goes round and signals them all: where it gets no CPU, rounds are missed
    truth = 500 * run.recording(jvm, "wall")["seconds"] * 1e9
    assert 0.3 * truth < wall < 1.05 * truth
    assert run.cpu_seconds_agree(jvm)
