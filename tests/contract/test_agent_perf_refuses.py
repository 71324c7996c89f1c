"""What perf cannot do is said before anything is recorded, with a remedy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent
from tests.contract.conftest import OTHER_USER
from tests.contract.perf_engine import FRAME_POINTERS, record, refused

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

COUNTERS = next(Path("/sys/bus/event_source/devices").glob("cpu*"), None)
no_counters = pytest.mark.skipif(COUNTERS is not None, reason="this machine has hardware counters")


@pytest.mark.parametrize("event", ["cycles", "cache-misses", "instructions:u"])
@no_counters
def test_an_event_that_this_machine_cannot_count(agent, burn, event):
    outcome = refused(agent, burn(), [event])
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert f"cannot count {event}" in outcome["reason"], outcome
    assert outcome["remedy"]


@no_counters
def test_the_other_events_are_recorded(agent, burn):
    done = record(
        agent, burn(options=[FRAME_POINTERS]), ["cpu", "cycles", "no-such-event", "alloc"], duration=1
    )
    assert set(done.result.events[done.pid]) == {"cpu"}
    assert done.outcome["status"] == "degraded"
    for word in ("cannot count cycles", "no event no-such-event", "alloc cannot be recorded by perf"):
        assert word in done.outcome["reason"], done.outcome


@pytest.mark.parametrize("event", ["alloc", "live", "lock", "wall", "nativemem"])
def test_what_only_async_profiler_can(agent, burn, event):
    outcome = refused(agent, burn(), [event])
    assert event in outcome["reason"] and "async-profiler" in outcome["remedy"]


def test_off_cpu_of_a_jvm_is_async_profilers(agent, burn):
    outcome = refused(agent, burn(), ["offcpu"])
    assert "loses the Java frames" in outcome["reason"] and "async-profiler" in outcome["remedy"]


@pytest.mark.parametrize("event", ["no-such-event", "no:such", "/tmp/x.o"])
def test_an_event_that_perf_does_not_know(agent, burn, event):
    outcome = refused(agent, burn(), [event])
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert "no event" in outcome["reason"] and "perf list" in outcome["remedy"], outcome


def test_a_tracepoint_is_roots(start_agent, burn):
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    outcome = refused(agent, burn(user=OTHER_USER), ["sched:sched_switch"])
    assert "tracepoint" in outcome["reason"] and "sudo" in outcome["remedy"], outcome


WRAPPER = "#!/bin/sh\necho WARNING: perf not found for kernel 5.15.0-91 >&2\nexit 2\n"


@pytest.fixture
def agent_that_sees(private, tmp_path):
    """Starts agents for which another file stands in the place of the host's perf."""
    agents = []

    def start(text, mode):
        there = Path(shutil.which("perf")).resolve()
        instead = tmp_path / "perf"
        instead.write_text(text)
        instead.chmod(mode)
        script = 'mount --bind "$1" "$2" && exec "$0"'
        agents.append(Agent(["unshare", "-m", "sh", "-c", script, str(private), str(instead), str(there)]))
        agents[-1].hello()
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (WRAPPER, 0o755, "perf not found for kernel"),
        (WRAPPER, 0o777, "writable by others"),
        ("#!/bin/sh\nexec sleep 60\n", 0o755, "takes longer"),
    ],
)
def test_a_perf_that_is_no_use_is_passed_over(agent_that_sees, burn, text, mode, why):
    outcome = refused(agent_that_sees(text, mode), burn(), ["cpu"])
    assert why in outcome["reason"] and "install perf" in outcome["remedy"], outcome
