"""Several events in one recording of async-profiler: their profiles, intervals, and what a JVM cannot do."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.contract.agent_driver import good, leftovers
from tests.contract.conftest import OTHER_USER, as_burnt, found, is_profiled
from tests.lab import attach
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

VALUES = {
    "cpu": [("samples", "count"), ("cpu", "nanoseconds")],
    "wall": [("wall_samples", "count"), ("wall", "nanoseconds")],
    "offcpu": [("offcpu_samples", "count"), ("offcpu", "nanoseconds")],
    "alloc": [("alloc_objects", "count"), ("alloc_space", "bytes")],
    "live": [("inuse_objects", "count"), ("inuse_space", "bytes")],
    "lock": [("contentions", "count"), ("delay", "nanoseconds")],
    "nativemem": [("native_allocs", "count"), ("native_space", "bytes")],
    "page-faults": [("page-faults", "count")],
}
MIB = 1 << 20
BEHIND = 200_000_000
"""On a busy machine the wall-clock sampler falls behind; the interval told, in ns, is the true one."""


def record(agent, library, burner, events, duration=1, **more):
    """The outcome of a burner's recording, and head and profile of each event."""
    pid = burner.outer.pid
    ready, refused = agent.prepare(library, found(agent, burner), duration=duration, events=events, **more)
    assert ready == [pid], refused
    agent.start()
    result = agent.collect()
    assert result.left == [] and not is_profiled(pid)
    profiles = {
        event: (head, Profile.from_bytes(payload))
        for event, (head, payload) in result.events.get(pid, {}).items()
    }
    return result, result.outcomes[pid], profiles


@pytest.mark.parametrize("jdk", [11, 17, 21, 25])
def test_all_events_in_one_recording(agent, library, burn, jdk):
    events = ["cpu", "alloc", "live", "lock", "wall", "offcpu", "nativemem"]
    burner = burn(jdk=jdk, role="alloc")
    _, outcome, profiles = record(agent, library, burner, events, duration=2)
    assert good(outcome)
    assert list(profiles) == events
    for event, (head, profile) in profiles.items():
        assert profile.values == VALUES[event], event
        assert (head["engine"], head["event"]) == ("async-profiler", event)
        assert sum(head["timeline"]) == head["samples"]["taken"]
        assert len(head["timeline"]) <= head["seconds"] + 1
        assert 0 < head["attach_seconds"] < 10
        stacks = profile.to_folded(0, False).decode().splitlines()
        assert all(re.match(r"\[[^;]*\]", stack) for stack in stacks), event
    assert profiles["cpu"][0]["source"] == "perf_events"
    assert profiles["cpu"][1].total(1) == pytest.approx(profiles["cpu"][0]["cpu_seconds"] * 1e9, rel=0.1)
    assert "[burner];" in profiles["cpu"][1].to_folded(0, False).decode()
    assert "libjvm.so" in profiles["wall"][1].modules().values()
    assert 0 < profiles["offcpu"][1].total(1) < profiles["wall"][1].total(1)
    assert "allocation interval" in outcome["reason"]


@pytest.mark.nightly
def test_stacks_that_a_method_event_broke_are_told(agent, library, burn):
    """The class of a method that was recorded as an event is another one from then on."""
    burner = burn(jdk=17, load=0.5)
    _, before, _ = record(agent, library, burner, ["cpu"])
    record(agent, library, burner, ["Burner.hotAlpha"])
    _, outcome, profiles = record(agent, library, burner, ["cpu"], duration=2)
    assert good(outcome) and "of the stacks are broken: async-profiler" in outcome["reason"], outcome
    assert "];break_" in profiles["cpu"][1].to_folded(0, False).decode()
    assert "broken" not in before["reason"]


def test_a_process_keeps_its_wait_below_its_thread(agent, library, burn):
    _, _, profiles = record(agent, library, burn(load=0.0), ["offcpu"])
    head, profile = profiles["offcpu"]
    assert 10_000_000 <= head["interval"] < BEHIND and head["samples"]["expected"] == 0
    assert set(profiles) == {"offcpu"}
    waits = {stack.split(";")[1] for stack in profile.to_folded(0, False).decode().splitlines()}
    assert waits <= {
        f"[{wait}]"
        for wait in ("lock", "park", "sleep", "network", "disk", "idle pool thread", "wait", "other")
    }


def test_intervals_that_were_asked_for(agent, library, burn):
    asked = {"alloc_interval": 3 * MIB, "lock_threshold": 5_000_000, "wall_interval": 20_000_000}
    burner = burn(role="alloc")
    _, outcome, profiles = record(agent, library, burner, ["wall", "alloc", "lock"], **asked)
    intervals = {event: head["interval"] for event, (head, _) in profiles.items()}
    assert intervals["alloc"] == 3 * MIB and intervals["lock"] == 5_000_000
    assert "allocation interval" not in outcome["reason"]
    head, profile = profiles["wall"]
    assert profile.total(0) == head["samples"]["taken"]
    assert 20_000_000 <= intervals["wall"] < BEHIND
    assert profile.total(1) == pytest.approx(intervals["wall"] * profile.total(0), rel=0.001)


@pytest.mark.nightly
def test_the_least_intervals_are_taken(agent, library, burn):
    asked = {"alloc_interval": 4096, "lock_threshold": 0, "wall_interval": 1_000_000}
    burner = burn(role="alloc", load=0.1)
    _, outcome, profiles = record(agent, library, burner, ["wall", "alloc", "lock"], duration=1, **asked)
    intervals = {event: head["interval"] for event, (head, _) in profiles.items()}
    assert (intervals["alloc"], intervals["lock"]) == (4096, 0), outcome
    assert 1_000_000 <= intervals["wall"] < BEHIND, outcome
    assert profiles["alloc"][1].total(1) > 0


@pytest.mark.nightly
@pytest.mark.parametrize(("option", "told"), [([], "allocated"), (["-XX:-UsePerfData"], "does not publish")])
def test_an_allocation_interval_is_chosen_and_said(agent, library, burn, option, told):
    _, outcome, profiles = record(agent, library, burn(role="alloc", options=option), ["alloc"])
    assert re.search(rf"allocation interval \d+ [MK]iB \(.*{told}.*\)", outcome["reason"])
    interval = profiles["alloc"][0]["interval"]
    assert MIB // 2 <= interval <= 16 * MIB and interval & (interval - 1) == 0
    assert option == [] or interval == 2 * MIB


def test_one_event_that_counts_beside_others(agent, library, burn):
    _, outcome, profiles = record(agent, library, burn(role="alloc"), ["page-faults", "alloc"])
    assert profiles["page-faults"][1].values == VALUES["page-faults"]
    assert profiles["page-faults"][0]["interval"] == 0 and good(outcome)


def test_a_java_method(agent, library, burn):
    method = "Burner.warm"
    _, outcome, profiles = record(agent, library, burn(), [method, "wall"])
    head, profile = profiles[method]
    assert head["source"] == method and good(outcome)
    assert profile.values == [(method, "count")]
    assert profile.total(0) == head["samples"]["taken"] > 0
    stacks = [line.rpartition(" ")[0] for line in profile.to_folded(0, False).decode().splitlines()]
    assert {stack.split(";")[-1] for stack in stacks} == {method}


@pytest.mark.nightly
def test_what_jdk_8_cannot_do_is_left_out(agent, library, burn):
    burner = burn(jdk=8)
    result, outcome, profiles = record(agent, library, burner, ["cpu", "live", "lock"])
    assert (outcome["status"], sorted(profiles)) == ("degraded", ["cpu", "lock"])
    assert "live needs JDK 11 or later" in outcome["reason"] and "later JDK" in outcome["remedy"]
    assert as_burnt(result.profiles[burner.outer.pid])


def test_nothing_is_loaded_where_no_event_is_left(agent, library, burn):
    burner = burn(jdk=8)
    ready, refused = agent.prepare(library, found(agent, burner), events=["live"])
    outcome = refused[burner.outer.pid]
    assert (ready, outcome["status"], outcome["stage"]) == ([], "failed", "prepare")
    assert "live needs JDK 11" in outcome["reason"] and outcome["remedy"]
    assert not attach.profiler_libraries(burner.outer.pid)


@pytest.mark.nightly
def test_allocations_of_jdk_8_need_symbols(agent, library, burn):
    """Whether they are there depends on the JDK that could be had; what is promised is kept either way."""
    burner = burn(jdk=8, role="alloc")
    _, outcome, profiles = record(agent, library, burner, ["cpu", "alloc"])
    if "alloc" in profiles:
        assert profiles["alloc"][1].total(1) > 0
    else:
        assert "debug symbols" in outcome["reason"] and list(profiles) == ["cpu"]
        assert "install the JDK's debug symbols" in outcome["remedy"]


def test_the_recording_itself(agent, library, burn):
    burner = burn()
    result, outcome, profiles = record(agent, library, burner, ["cpu"], keep_raw=True)
    head, recording = result.raws[burner.outer.pid]
    assert (head["name"], head["size"], recording[:4]) == ("recording.jfr", len(recording), b"FLR\0")
    again = Profile.from_bytes(recording)
    assert again.total(0) == profiles["cpu"][1].total(0) > 0
    assert good(outcome)


def test_nobody_gets_a_recording_unasked(agent, library, burn):
    result, _, _ = record(agent, library, burn(), ["cpu"], duration=0.5)
    assert result.raws == {}


@pytest.mark.nightly
def test_of_a_killed_jvm_the_finished_parts_are_read(agent, library, burn):
    """One whose every allocation is recorded fills a part of 8 MiB in no time."""
    burner = burn(role="alloc")
    pid = burner.outer.pid
    agent.prepare(library, found(agent, burner), duration=60, events=["alloc"], alloc_interval=4096)
    agent.start()
    (folder,) = [path for path in leftovers(held=True) if f"/.hprofiler-run-{agent.process.pid}-" in path]
    wait_for("two parts", lambda: sum(file.stat().st_size for file in Path(folder).iterdir()) > 20 * MIB)
    burner.outer.kill(signal.SIGKILL)
    result = agent.collect()
    outcome = result.outcomes[pid]
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    assert "a damaged recording" in outcome["reason"]
    assert result.heads[pid]["samples"]["taken"] > 10_000
    assert result.left == []


def test_timers_give_the_cpu_time_of_the_process(agent, library, burn):
    """Its user may use neither perf events of the kernel nor many of its ticks."""
    burner = burn(user=OTHER_USER)
    _, outcome, profiles = record(agent, library, burner, ["cpu", "lock"], duration=2)
    head, profile = profiles["cpu"]
    assert profile.total(1) == pytest.approx(head["cpu_seconds"] * 1e9, rel=0.1), outcome
