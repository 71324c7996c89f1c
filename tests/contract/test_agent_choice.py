"""Which engine records which of the events asked for, and what is said of those that are left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.conftest import OTHER_USER
from tests.contract.test_agent_perf import FRAME_POINTERS, NO_ATTACH
from tests.contract.test_agent_perf_refuses import no_counters
from tests.lab import attach, tracefs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel events")

ENGINES = ("auto", "async-profiler")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("events", "recorded", "left_out", "why"),
    [
        (["page-faults", "alloc", "cpu"], ["alloc", "cpu"], "page-faults", "only one of cpu, page-faults"),
        pytest.param(["cpu", "cache-misses"], ["cpu"], "cache-misses", "cannot count", marks=no_counters),
    ],
)
def test_what_has_no_place_is_left_out(agent, burn, engine, events, recorded, left_out, why):
    """One attach records what goes together; a whole JVM is not moved to another engine for the rest."""
    done = agent.record(burn(role="alloc"), events=events, engine=engine)
    assert {event: done.head(event)["engine"] for event in done.events} == dict.fromkeys(
        recorded, "async-profiler"
    )
    assert done.outcome["status"] == "degraded" and done.outcome["remedy"]
    assert why in done.outcome["reason"] and left_out in done.outcome["reason"]


@pytest.mark.parametrize(
    ("engine", "event", "reason"),
    [
        pytest.param("auto", "cache-misses", "this machine cannot count cache-misses", marks=no_counters),
        pytest.param(
            "async-profiler",
            "cpu/cache-misses/",
            "this machine cannot count cpu/cache-misses/",
            marks=no_counters,
        ),
        ("async-profiler", "sched:*", "sched:*"),
        ("async-profiler", "page-fault", "no event page-fault"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_is_loaded(
    agent, untouched, engine, event, reason
):
    outcome = agent.refuse(untouched, events=[event], engine=engine)
    assert outcome["reason"].count(reason) == 1 and outcome["remedy"], outcome
    assert not attach.profiler_libraries(untouched.outer.pid)


@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize("event", ["page-faults", "Burner.warm", "sched:sched_switch"])
def test_what_async_profiler_counts_it_counts_under_auto_as_well(agent, burn, event):
    burner = burn(role="alloc" if event == "page-faults" else "alpha", load=0.5)
    done = agent.record(burner, events=[event], engine="auto")
    head = done.head(event)
    assert (head["engine"], head["source"], done.outcome["status"]) == ("async-profiler", event, "ok")
    assert done.profile(event).values == [(event, "count")] and done.profile(event).total(0) > 0


@pytest.mark.nightly
@pytest.mark.usefixtures("tracepoints")
def test_a_tracepoint_that_a_jvm_of_users_may_not_see(agent, burn):
    """The kernel shows them to root alone, whom the JVM is not; perf may be."""
    ready, refused = agent.prepare(burn(user=OTHER_USER), events=["sched:sched_switch"])
    assert ready, refused
    agent.send("start")
    outcome = agent.expect("outcome")
    assert (outcome["status"], outcome["stage"]) == ("failed", "start"), outcome
    assert "--become sudo --engine perf" in outcome["remedy"]


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_a_tracepoint_that_nothing_has_mounted_is_refused_and_left_so(new_agent, untouched, engine):
    """perf as root would mount them, and leave a host that has what it did not have."""
    agent = new_agent(by=tracefs.WITHOUT)
    outcome = agent.refuse(untouched, events=["sched:sched_switch"], engine=engine)
    assert outcome["code"] == "tracefs-not-mounted" and "mount -t tracefs" in outcome["remedy"], outcome
    assert "tracefs" not in Path(f"/proc/{agent.process.pid}/mounts").read_text()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"keep_raw": True}, "the raw recording was left out: perf's output is folded as it arrives"),
        ({"wall_interval": 10_000_000}, "--wall-interval has no effect"),
    ],
    ids=["keep raw", "interval"],
)
def test_options_that_mean_nothing_to_perf_are_named(agent, burn, option, why):
    done = agent.record(burn(options=[FRAME_POINTERS]), engine="perf", duration=0.5, **option)
    assert done.outcome["status"] == "degraded"
    assert why in done.outcome["reason"] and "leave --" in done.outcome["remedy"], done.outcome


def test_each_of_several_troubles_keeps_its_remedy_and_is_named_once(agent, burn):
    outcome = agent.record(burn(options=[NO_ATTACH]), events=["cpu", "alloc"], engine="auto").outcome
    assert outcome["reason"].count(NO_ATTACH) == 1, outcome
    for trouble in ("not by async-profiler", "alloc cannot be recorded", "have no names", "broken"):
        assert trouble in outcome["reason"], outcome
    for remedy in (f"without {NO_ATTACH}", "--engine async-profiler for a JVM", FRAME_POINTERS):
        assert outcome["remedy"].count(remedy) == 1, outcome


def test_a_process_is_recorded_by_its_engine_or_not_at_all(agent, burn):
    """By which one of its kind was recorded alone, whatever `auto` would do."""
    plain, closed = agent.found(burn(options=[FRAME_POINTERS], load=0.4), burn(options=[NO_ATTACH]))
    wanted = [{**plain, "engine": "perf"}, {**closed, "engine": "async-profiler"}]
    ready, refused = agent.prepare(*wanted, engine="auto")
    assert ready == [plain["pid"]] and "DisableAttachMechanism" in refused[closed["pid"]]["reason"]
    agent.start()
    assert agent.collect().of(plain["pid"]).head()["engine"] == "perf"
