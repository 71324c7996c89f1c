"""What perf cannot do is said before anything is recorded, with a remedy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.conftest import OTHER_USER, executable
from tests.contract.test_agent_perf import FRAME_POINTERS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

COUNTERS = next(Path("/sys/bus/event_source/devices").glob("cpu*"), None)
no_counters = pytest.mark.skipif(COUNTERS is not None, reason="this machine has hardware counters")


@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize(
    ("event", "reason", "remedy"),
    [
        pytest.param("cycles", "cannot count cycles", "software event", marks=no_counters),
        ("alloc", "alloc", "async-profiler"),
        ("offcpu", "loses the Java frames", "async-profiler"),
        ("no-such-event", "no event", "perf list"),
        ("no:such", "no event", "perf list"),
        ("page-faults:u", "no event", "perf list"),
    ],
)
def test_an_event_of_a_jvm_that_perf_does_not_record(agent, untouched, event, reason, remedy):
    outcome = agent.refuse(untouched, engine="perf", events=[event])
    assert reason in outcome["reason"] and remedy in outcome["remedy"], outcome


def test_the_other_events_are_recorded(agent, burn):
    events = ["cpu", "no-such-event", "alloc"]
    done = agent.record(burn(options=[FRAME_POINTERS]), engine="perf", events=events)
    assert (done.events, done.outcome["status"]) == (["cpu"], "degraded")
    for word in ("no event no-such-event", "alloc cannot be recorded by perf"):
        assert word in done.outcome["reason"], done.outcome
    for remedy in ("perf list", "--engine async-profiler for a JVM"):
        assert remedy in done.outcome["remedy"], done.outcome


@pytest.mark.usefixtures("tracepoints")
def test_a_tracepoint_is_roots(new_agent, burn):
    agent, burner = new_agent(user=OTHER_USER), burn(user=OTHER_USER)
    outcome = agent.refuse(burner, engine="perf", events=["sched:sched_switch"])
    assert "tracepoint" in outcome["reason"] and "sudo" in outcome["remedy"], outcome


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


@pytest.mark.nightly
def test_buffers_are_as_large_as_the_user_may_have(new_agent, burn):
    """For 10,000 Hz they would be larger than what a user may lock in memory."""
    agent = new_agent(by=["prlimit", "--memlock=65536"], user=OTHER_USER)
    done = agent.record(burn(user=OTHER_USER, options=[FRAME_POINTERS]), engine="perf", frequency=10_000)
    assert done.head()["samples"]["taken"] > 0, done.outcome
