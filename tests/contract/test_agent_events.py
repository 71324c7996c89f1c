"""Several events in one recording of async-profiler: their profiles, intervals, and what a JVM cannot do.

How true their values are is measured in tests/engines.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from tests.burners import build
from tests.burners.burner import Program
from tests.contract.agent_driver import as_burnt, good
from tests.contract.conftest import LATER_JDK, OTHER_USER
from tests.lab import jdks, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

VALUES = {
    "cpu": [("samples", "count"), ("cpu", "nanoseconds")],
    "wall": [("wall_samples", "count"), ("wall", "nanoseconds")],
    "offcpu": [("offcpu_samples", "count"), ("offcpu", "nanoseconds")],
    "alloc": [("alloc_objects", "count"), ("alloc_space", "bytes")],
    "live": [("inuse_objects", "count"), ("inuse_space", "bytes")],
    "lock": [("contentions", "count"), ("delay", "nanoseconds")],
    "nativemem": [("native_allocs", "count"), ("native_space", "bytes")],
    "nativelive": [("native_inuse_allocs", "count"), ("native_inuse_space", "bytes")],
}
MIB = 1 << 20
BEHIND = 200_000_000
"""On a busy machine the wall-clock sampler falls behind; the interval reported, in ns, is the true one."""


@pytest.mark.parametrize("jdk", [11, 17, 21, LATER_JDK])
def test_all_events_in_one_recording(agent, burn, jdk):
    burner, began = burn(jdk=jdk, role="alloc"), time.monotonic()
    done = agent.record(burner, events=list(VALUES), duration=2)
    took = time.monotonic() - began
    assert good(done.outcome) and "allocation interval" in done.outcome["reason"]
    assert done.events == list(VALUES)
    for event in done.events:
        head, profile = done.head(event), done.profile(event)
        assert profile.values == VALUES[event], event
        assert (head["engine"], head["event"]) == ("async-profiler", event)
        assert 0 < head["attach_seconds"] < took - 2
        assert all(re.match(r"\[[^;]*\]", stack[0]) for stack, _ in done.stacks(event)), event
    assert done.head()["source"] == "perf_events"
    assert done.profile().total(1) == pytest.approx(done.head()["cpu_seconds"] * 1e9, rel=0.1)
    assert done.share("[burner]") > 0.5
    assert "libjvm.so" in done.profile("wall").modules().values()
    assert 0 < done.profile("offcpu").total(1) < done.profile("wall").total(1)


@pytest.mark.nightly
def test_stacks_that_a_method_event_broke_are_reported(agent, burn):
    """The class of a method that was recorded as an event is another one from then on."""
    burner = burn(jdk=17, load=0.5)
    assert "broken" not in agent.record(burner).outcome["reason"]
    agent.record(burner, events=["Burner.hotAlpha"])
    done = agent.record(burner, duration=2)
    assert good(done.outcome) and "of the stacks are broken: async-profiler" in done.outcome["reason"]
    assert any(stack[1].startswith("break_") for stack, _ in done.stacks())


@pytest.mark.parametrize(
    ("alloc", "lock", "wall"),
    [(3 * MIB, 5_000_000, 20_000_000), pytest.param(4096, 0, 1_000_000, marks=pytest.mark.nightly)],
    ids=["usual", "least"],
)
def test_intervals_that_were_asked_for(agent, burn, alloc, lock, wall):
    asked = {"alloc_interval": alloc, "lock_threshold": lock, "wall_interval": wall}
    done = agent.record(burn(role="alloc", load=0.5), events=["wall", "alloc", "lock"], **asked)
    intervals = {event: done.head(event)["interval"] for event in done.events}
    assert (intervals["alloc"], intervals["lock"]) == (alloc, lock), done.outcome
    assert "allocation interval" not in done.outcome["reason"]
    profile = done.profile("wall")
    assert profile.total(0) == done.head("wall")["samples"]["taken"]
    assert wall <= intervals["wall"] < BEHIND
    assert profile.total(1) == pytest.approx(intervals["wall"] * profile.total(0), rel=0.001)


@pytest.mark.parametrize("jdk", [8, 17, LATER_JDK])
def test_native_memory_that_is_not_freed(agent, keep_program, jdk):
    """Only what is kept counts, by who allocated it; not what is kept in the last tenth of the time."""
    java = str(jdks.home(jdk) / "bin" / "java")
    leaking = keep_program(Program(["env", f"CLASSPATH={build.classes()}", java, "-Xmx48m", "Leaking"]))
    began = time.monotonic()
    agent.begin(leaking, events=["nativelive", "nativemem"], alloc_interval=32 << 10, duration=600)
    kept = dict(word.split("=") for word in leaking.ask("kept ").split()[1:])
    least = 1.3 * (time.monotonic() - began) + 2
    procs.wait_for("the last tenth of the time", lambda: time.monotonic() - began > least)
    leaking.ask("kept ")
    done = agent.stop().of(leaking)
    assert good(done.outcome), done.outcome
    space = done.stacks("nativelive", 1)

    def bytes_of(site: str) -> int:
        return sum(count for stack, count in space if any(f"Leaking.{site}" in frame for frame in stack))

    for site, size in kept.items():
        assert bytes_of(site) == pytest.approx(int(size), rel=0.05), space
    assert bytes_of("freed") < 1e6 and done.share("Leaking.freed", "nativemem") > 0.1
    times = done.profile("nativelive").times
    assert times and times.samples == done.head("nativelive")["samples"]["taken"]


def test_a_java_method(agent, burn):
    method = "Burner.warm"
    done = agent.record(burn(), events=[method, "wall"])
    head, profile = done.head(method), done.profile(method)
    assert head["source"] == method and good(done.outcome)
    assert profile.values == [(method, "count")]
    assert profile.total(0) == head["samples"]["taken"] > 0
    assert {re.sub(r"_\[.\]$", "", stack[-1]) for stack, _ in done.stacks(method)} == {method}


@pytest.mark.nightly
def test_events_that_jdk_8_lacks_are_left_out(agent, burn):
    """Whether it records allocations depends on the debug symbols of the JDK that could be had."""
    burner = burn(jdk=8, role="alloc")
    done = agent.record(burner, events=["cpu", "live", "lock", "alloc"])
    assert done.outcome["status"] == "degraded" and {"cpu", "lock"} <= set(done.events)
    assert "live needs JDK 11 or later" in done.outcome["reason"] and "later JDK" in done.outcome["remedy"]
    assert as_burnt(done.payload())
    if "alloc" in done.events:
        assert done.profile("alloc").total(1) > 0
    else:
        assert "debug symbols" in done.outcome["reason"]
        assert "install the JDK's debug symbols" in done.outcome["remedy"]


def test_timers_give_the_cpu_time_of_the_process(agent, burn):
    """Its user may use neither perf events of the kernel nor many of its ticks."""
    done = agent.record(burn(user=OTHER_USER), events=["cpu", "lock"], duration=2)
    assert done.profile().total(1) == pytest.approx(done.head()["cpu_seconds"] * 1e9, rel=0.1), done.outcome
