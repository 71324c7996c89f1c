"""Which engine records which of the events asked for, and what is told of those that are left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.contract.agent_driver import FREQUENCY, Agent
from tests.contract.conftest import OTHER_USER, as_user, found
from tests.contract.perf_engine import FRAME_POINTERS
from tests.contract.perf_engine import record as record_by_perf
from tests.contract.test_agent_events import record
from tests.contract.test_agent_perf_refuses import no_counters
from tests.lab import attach, procs, tracefs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel events")

ENGINES = ("auto", "async-profiler")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("events", "recorded", "left_out", "why"),
    [
        (["page-faults", "alloc", "cpu"], ["alloc", "cpu"], "page-faults", "only one of cpu, page-faults"),
        (["context-switches", "Burner.warm"], ["context-switches"], "Burner.warm", "counts only one of"),
        (["cpu", "minor-faults"], ["cpu"], "minor-faults", "no event minor-faults"),
        pytest.param(["cpu", "cache-misses"], ["cpu"], "cache-misses", "cannot count", marks=no_counters),
    ],
)
def test_what_has_no_place_is_left_out(agent, library, burn, engine, events, recorded, left_out, why):
    """One attach records what goes together; a whole JVM is not moved to another engine for the rest."""
    _, outcome, profiles = record(agent, library, burn(role="alloc"), events, duration=1, engine=engine)
    engines = {event: head["engine"] for event, (head, _) in profiles.items()}
    assert engines == dict.fromkeys(recorded, "async-profiler")
    assert outcome["status"] == "degraded"
    assert why in outcome["reason"] and left_out in outcome["reason"] and outcome["remedy"]


@no_counters
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("event", ["cache-misses", "cpu/cache-misses/"])
def test_a_counter_that_is_not_there_is_refused_before_anything_is_loaded(
    agent, library, burn, engine, event
):
    """In the same words by both engines, once."""
    outcome = refused(agent, library, burn(), event, engine)
    words = f"this machine cannot count {event}: its processor or virtual machine has no such counter"
    assert outcome["reason"] == words
    assert "page-faults" in outcome["remedy"]


@pytest.mark.parametrize("event", ["sched:*", "itimer"])
def test_what_is_no_event_is_refused_before_anything_is_loaded(agent, library, burn, event):
    outcome = refused(agent, library, burn(), event, "async-profiler")
    assert event in outcome["reason"] and outcome["remedy"]


def refused(agent: Agent, library, burner, event, engine):
    """The outcome of a JVM that no engine can be made ready for."""
    ready, outcomes = agent.prepare(library, found(agent, burner), events=[event], engine=engine)
    outcome = outcomes[burner.outer.pid]
    assert (ready, outcome["status"], outcome["stage"]) == ([], "failed", "prepare")
    assert not attach.profiler_libraries(burner.outer.pid)
    return dict(outcome)


@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize("event", ["page-faults", "context-switches", "Burner.warm", "sched:sched_switch"])
def test_what_async_profiler_counts_it_counts_under_auto_as_well(agent, library, burn, event):
    burner = burn(role="alloc" if event == "page-faults" else "alpha", load=0.5)
    _, outcome, profiles = record(agent, library, burner, [event], engine="auto")
    head, profile = profiles[event]
    assert (head["engine"], head["source"], outcome["status"]) == ("async-profiler", event, "ok")
    assert profile.values == [(event, "count")] and profile.total(0) > 0


@pytest.mark.nightly
@pytest.mark.usefixtures("tracepoints")
def test_a_tracepoint_that_a_jvm_of_users_may_not_see(agent, library, burn):
    """The kernel shows them to root alone, whom the JVM is not; perf may be."""
    burner = burn(user=OTHER_USER)
    ready, refused = agent.prepare(library, found(agent, burner), events=["sched:sched_switch"])
    assert ready == [burner.outer.pid], refused
    agent.send("start")
    outcome, _ = agent.next()
    assert (outcome["type"], outcome["status"], outcome["stage"]) == ("outcome", "failed", "start"), outcome
    assert "--become sudo --engine perf" in outcome["remedy"]


@pytest.mark.parametrize("engine", [*ENGINES, "perf"])
def test_a_tracepoint_that_nothing_has_mounted_is_refused_and_left_so(
    agent_by, private, burn, library_file, engine
):
    """perf as root would mount them, and leave a host that has what it did not have."""
    agent = agent_by(*tracefs.WITHOUT, private, "--any-library")
    library = agent.put(library_file.read_bytes())
    outcome = refused(agent, library, burn(), "sched:sched_switch", engine)
    assert outcome["code"] == "tracefs-not-mounted" and "mount -t tracefs" in outcome["remedy"], outcome
    assert outcome["reason"].count("sched:sched_switch") == 1
    assert "tracefs" not in Path(f"/proc/{agent.process.pid}/mounts").read_text()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"keep_raw": True}, "raw recording was left out: what perf writes is folded as it comes"),
        ({"alloc_interval": 1 << 20}, "--alloc-interval has no effect"),
        ({"lock_threshold": 1000}, "--lock-threshold has no effect"),
        ({"wall_interval": 10_000_000}, "--wall-interval has no effect"),
    ],
)
def test_options_that_mean_nothing_to_perf_are_told(agent, burn, option, why):
    done = record_by_perf(agent, burn(options=[FRAME_POINTERS]), ["cpu"], duration=0.5, **option)
    assert done.outcome["status"] == "degraded"
    assert why in done.outcome["reason"] and "leave --" in done.outcome["remedy"], done.outcome


@pytest.mark.nightly
def test_an_option_of_an_event_that_is_refused_is_told_once(agent, burn):
    burner = burn(options=[FRAME_POINTERS])
    done = record_by_perf(agent, burner, ["cpu", "alloc"], duration=0.5, alloc_interval=1 << 20)
    assert "alloc cannot be recorded by perf" in done.outcome["reason"]
    assert "--alloc-interval" not in done.outcome["reason"]


@pytest.mark.nightly
def test_each_of_several_troubles_keeps_its_remedy_and_is_told_once(agent, library, burn):
    burner = burn(options=["-XX:+DisableAttachMechanism"])
    _, outcome, _ = record(agent, library, burner, ["cpu", "alloc"], engine="auto")
    assert outcome["reason"].count("-XX:+DisableAttachMechanism") == 1, outcome
    for trouble in ("not by async-profiler", "alloc cannot be recorded", "have no names", "broken"):
        assert trouble in outcome["reason"], outcome
    for remedy in (
        "without -XX:+DisableAttachMechanism",
        "--engine async-profiler for a JVM",
        FRAME_POINTERS,
    ):
        assert outcome["remedy"].count(remedy) == 1, outcome


READS = """
with open('/dev/zero', 'rb', buffering=0) as zeros:
    into = bytearray(1 << 20)
    while zeros.readinto(into):
        pass
"""


@pytest.mark.nightly
def test_samples_of_user_code_are_expected_of_user_time(start_agent):
    """Nearly all of its time is the kernel's, which its user may not sample: nothing of that is lost."""
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    reader = subprocess.Popen([*as_user(OTHER_USER), sys.executable, "-c", READS])
    try:
        program = SimpleNamespace(outer=SimpleNamespace(pid=reader.pid))
        procs.wait_for("it", lambda: "python" in Path(f"/proc/{reader.pid}/cmdline").read_text()[:200], 30)
        done = record_by_perf(agent, program, duration=3)
    finally:
        reader.kill()
        reader.wait()
    head = done.head()
    if head["source"] != "cpu-clock,alluser":
        pytest.skip("this kernel lets every user sample it (perf_event_paranoid)")
    whole = head["cpu_seconds"] * FREQUENCY
    assert head["samples"]["expected"] < 0.5 * whole, head
    assert head["samples"]["lost"] <= head["samples"]["expected"]
