"""Which engine records which of the events asked for, and what is refused or left out, with a remedy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.conftest import OTHER_USER, executable
from tests.contract.test_agent_perf import FRAME_POINTERS, NO_ATTACH
from tests.lab import attach, tracefs

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel events"),
    pytest.mark.usefixtures("tracepoints"),
]

COUNTERS = next(Path("/sys/bus/event_source/devices").glob("cpu*"), None)
no_counters = pytest.mark.skipif(COUNTERS is not None, reason="this machine has hardware counters")


@pytest.mark.parametrize("engine", ["auto", pytest.param("async-profiler", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("events", "recorded", "left_out", "why"),
    [
        (["page-faults", "alloc", "cpu"], ["alloc", "cpu"], "page-faults", "only one of cpu, page-faults"),
        pytest.param(["cpu", "cache-misses"], ["cpu"], "cache-misses", "cannot count", marks=no_counters),
    ],
)
def test_an_event_is_left_out(agent, burn, engine, events, recorded, left_out, why):
    """One attach records what goes together; a whole JVM is not moved to another engine for the rest."""
    done = agent.record(burn(role="alloc"), events=events, engine=engine)
    engines = {event: done.head(event)["engine"] for event in done.events}
    assert engines == dict.fromkeys(recorded, "async-profiler")
    assert done.outcome["status"] == "degraded" and done.outcome["remedy"]
    assert why in done.outcome["reason"] and left_out in done.outcome["reason"]


@pytest.mark.parametrize(
    ("engine", "event", "reason", "remedy"),
    [
        pytest.param("auto", "cache-misses", "cannot count cache-misses", "", marks=no_counters),
        pytest.param("async-profiler", "cpu/cache-misses/", "cannot count cpu/cache-", "", marks=no_counters),
        ("async-profiler", "sched:*", "sched:*", ""),
        ("async-profiler", "page-fault", "no event page-fault", ""),
        pytest.param("perf", "cycles", "cannot count cycles", "software event", marks=no_counters),
        ("perf", "alloc", "alloc", "async-profiler"),
        ("perf", "offcpu", "loses the Java frames", "async-profiler"),
        ("perf", "no:such", "no event", "perf list"),
        ("perf", "page-faults:u", "no event", "perf list"),
    ],
)
def test_an_event_is_refused_before_anything_is_loaded(agent, untouched, engine, event, reason, remedy):
    outcome = agent.refuse(untouched, events=[event], engine=engine)
    assert reason in outcome["reason"] and outcome["remedy"] and remedy in outcome["remedy"], outcome
    assert not attach.profiler_libraries(untouched.outer.pid)


@pytest.mark.parametrize("event", ["page-faults", "Burner.warm", "sched:sched_switch"])
def test_async_profiler_counts_events_under_auto(agent, burn, event):
    burner = burn(role="alloc" if event == "page-faults" else "alpha", load=0.5)
    done = agent.record(burner, events=[event], engine="auto")
    head = done.head(event)
    assert (head["engine"], head["source"], done.outcome["status"]) == ("async-profiler", event, "ok")
    assert done.profile(event).values == [(event, "count")] and done.profile(event).total(0) > 0


def test_perf_records_the_events_it_can(agent, burn):
    """Beside a tracepoint other events have the frequency asked for."""
    events = ["cpu", "page-faults", "sched:sched_switch", "task-clock", "no-such-event", "alloc"]
    burner = burn(role="alloc", options=[FRAME_POINTERS])
    done = agent.record(burner, engine="perf", events=events)
    assert (set(done.events), done.outcome["status"]) == (set(events[:4]), "degraded")
    assert done.profile("page-faults").values == [("page-faults", "count")]
    assert done.profile("sched:sched_switch").total(0) > 0
    head = done.head("task-clock")
    assert 0 < head["samples"]["taken"] < 2 * 997 * (head["cpu_seconds"] + 0.1), head
    for word in ("no event no-such-event", "alloc cannot be recorded by perf"):
        assert word in done.outcome["reason"], done.outcome
    for remedy in ("perf list", "--engine async-profiler for a JVM"):
        assert remedy in done.outcome["remedy"], done.outcome


# Tracepoints


@pytest.mark.nightly
def test_a_tracepoint_of_an_ordinary_users_jvm(agent, burn):
    """The kernel shows it to root alone, who perf is and the JVM is not."""
    ready, refused = agent.prepare(burn(user=OTHER_USER), events=["sched:sched_switch"])
    assert ready, refused
    agent.send("start")
    outcome = agent.expect("outcome")
    assert (outcome["status"], outcome["stage"]) == ("failed", "start"), outcome
    assert "--become sudo --engine perf" in outcome["remedy"]


def test_a_tracepoint_for_an_ordinary_users_agent(new_agent, burn):
    agent, burner = new_agent(user=OTHER_USER), burn(user=OTHER_USER)
    outcome = agent.refuse(burner, engine="perf", events=["sched:sched_switch"])
    assert "tracepoint" in outcome["reason"] and "sudo" in outcome["remedy"], outcome


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_a_tracepoint_that_is_not_mounted_is_refused(new_agent, untouched, engine):
    """perf as root would mount tracefs, and leave the host changed."""
    agent = new_agent(by=tracefs.WITHOUT)
    outcome = agent.refuse(untouched, events=["sched:sched_switch"], engine=engine)
    assert outcome["code"] == "tracefs-not-mounted" and "mount -t tracefs" in outcome["remedy"], outcome
    assert "tracefs" not in Path(f"/proc/{agent.process.pid}/mounts").read_text()


# The engine of a process


def test_each_of_several_notes_keeps_its_remedy(agent, burn):
    outcome = agent.record(burn(options=[NO_ATTACH]), events=["cpu", "alloc"], engine="auto").outcome
    assert outcome["reason"].count(NO_ATTACH) == 1, outcome
    for note in ("not by async-profiler", "alloc cannot be recorded", "have no names", "broken"):
        assert note in outcome["reason"], outcome
    for remedy in (f"without {NO_ATTACH}", "--engine async-profiler for a JVM", FRAME_POINTERS):
        assert outcome["remedy"].count(remedy) == 1, outcome


def test_an_option_without_effect_on_perf_is_named(agent, burn):
    options = {"keep_raw": True, "wall_interval": 10_000_000}
    done = agent.record(burn(options=[FRAME_POINTERS]), engine="perf", **options)
    assert done.outcome["status"] == "degraded" and "leave --" in done.outcome["remedy"], done.outcome
    for why in ("the raw recording was left out", "--wall-interval has no effect"):
        assert why in done.outcome["reason"], done.outcome


def test_a_process_is_recorded_by_its_engine_or_not_at_all(agent, burn):
    """By the engine of its canary, whatever `auto` would choose."""
    plain, closed = agent.found(burn(options=[FRAME_POINTERS], load=0.4), burn(options=[NO_ATTACH]))
    wanted = [{**plain, "engine": "perf"}, {**closed, "engine": "async-profiler"}]
    ready, refused = agent.prepare(*wanted, engine="auto")
    assert ready == [plain["pid"]] and "DisableAttachMechanism" in refused[closed["pid"]]["reason"]
    agent.start()
    assert agent.collect().of(plain["pid"]).head()["engine"] == "perf"


# Which perf is run

WRAPPER = "#!/bin/sh\necho WARNING: perf not found for kernel 5.15.0-91 >&2\nexit 2\n"


def test_a_perf_with_a_version_in_its_name_is_found(new_agent, burn, tmp_path):
    shutil.copy(shutil.which("perf"), tmp_path / "perf_5.10")
    path = f"{tmp_path}:{os.environ['PATH']}"
    agent = new_agent(perf=executable(tmp_path / "wrapper", WRAPPER), env={"PATH": path})
    assert good(agent.record(burn(options=[FRAME_POINTERS]), engine="perf").outcome)


def test_a_perf_that_is_a_script_runs_the_hosts_programs(new_agent, burn, tmp_path):
    """Not those of the caller's `PATH`: by sudo that may be another user's."""
    own, ran = tmp_path / "own", tmp_path / "ran"
    own.mkdir()
    executable(own / "uname", f"#!/bin/sh\ntouch {ran}\nexec /bin/uname\n")
    perf = shutil.copy(shutil.which("perf"), tmp_path / "real")
    script = executable(tmp_path / "perf", f'#!/bin/sh\nuname >/dev/null\nexec {perf} "$@"\n')
    agent = new_agent(perf=script, env={"PATH": f"{own}:{os.environ['PATH']}"})
    assert good(agent.record(burn(options=[FRAME_POINTERS]), engine="perf").outcome)
    assert not ran.exists()
