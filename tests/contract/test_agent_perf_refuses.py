"""What perf cannot do is said before anything is recorded, with a remedy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.conftest import OTHER_USER, as_user
from tests.contract.perf_engine import FRAME_POINTERS, record, refused

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

COUNTERS = next(Path("/sys/bus/event_source/devices").glob("cpu*"), None)
no_counters = pytest.mark.skipif(COUNTERS is not None, reason="this machine has hardware counters")


@pytest.mark.parametrize("event", ["cycles", "cache-misses", "instructions"])
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
    for remedy in ("choose a software event", "perf list", "--engine async-profiler for a JVM"):
        assert remedy in done.outcome["remedy"], done.outcome


@pytest.mark.parametrize("event", ["alloc", "live", "lock", "wall", "nativemem"])
def test_what_only_async_profiler_can(agent, burn, event):
    outcome = refused(agent, burn(), [event])
    assert event in outcome["reason"] and "async-profiler" in outcome["remedy"]


def test_off_cpu_of_a_jvm_is_async_profilers(agent, burn):
    outcome = refused(agent, burn(), ["offcpu"])
    assert "loses the Java frames" in outcome["reason"] and "async-profiler" in outcome["remedy"]


@pytest.mark.usefixtures("tracepoints")
@pytest.mark.parametrize("event", ["no-such-event", "no:such", "/tmp/x.o", "sched:*", "page-faults:u"])
def test_an_event_that_perf_does_not_know(agent, burn, event):
    outcome = refused(agent, burn(), [event])
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert "no event" in outcome["reason"] and "perf list" in outcome["remedy"], outcome


@pytest.mark.usefixtures("tracepoints")
def test_a_tracepoint_is_roots(start_agent, burn):
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    outcome = refused(agent, burn(user=OTHER_USER), ["sched:sched_switch"])
    assert "tracepoint" in outcome["reason"] and "sudo" in outcome["remedy"], outcome


WRAPPER = "#!/bin/sh\necho WARNING: perf not found for kernel 5.15.0-91 >&2\nexit 2\n"


def with_another(perf):
    """The words before a command for which this file stands in the place of the host's perf."""
    there = Path(shutil.which("perf")).resolve()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", perf, there]


def program(path, text, mode=0o755):
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (WRAPPER, 0o755, "perf not found for kernel"),
        (WRAPPER, 0o777, "writable by others"),
        ("#!/bin/sh\nexec sleep 60\n", 0o755, "takes longer"),
    ],
)
def test_a_perf_that_is_no_use_is_passed_over(agent_by, private, burn, tmp_path, text, mode, why):
    agent = agent_by(*with_another(program(tmp_path / "perf", text, mode)), private)
    outcome = refused(agent, burn(), ["cpu"])
    assert why in outcome["reason"] and "install perf" in outcome["remedy"], outcome


def test_a_perf_with_a_version_in_its_name_is_found(agent_by, private, burn, tmp_path):
    shutil.copy(shutil.which("perf"), tmp_path / "perf_5.10")
    wrapper = program(tmp_path / "wrapper", WRAPPER)
    path = f"{tmp_path}:{os.environ['PATH']}"
    agent = agent_by(*with_another(wrapper), private, env={"PATH": path})
    assert good(record(agent, burn(options=[FRAME_POINTERS]), duration=1).outcome)


def test_a_perf_that_is_a_script_runs_the_hosts_programs(agent_by, private, burn, tmp_path):
    """Not those that the caller's `PATH` has: by sudo that may be another user's."""
    own, ran = tmp_path / "own", tmp_path / "ran"
    own.mkdir()
    program(own / "uname", f"#!/bin/sh\ntouch {ran}\nexec /bin/uname\n")
    perf = shutil.copy(shutil.which("perf"), tmp_path / "real")
    script = program(tmp_path / "perf", f'#!/bin/sh\nuname >/dev/null\nexec {perf} "$@"\n')
    agent = agent_by(*with_another(script), private, env={"PATH": f"{own}:{os.environ['PATH']}"})
    assert good(record(agent, burn(options=[FRAME_POINTERS]), duration=1).outcome)
    assert not ran.exists()


@pytest.mark.nightly
def test_buffers_are_as_large_as_the_user_may_have(agent_by, private, burn):
    """For 10,000 Hz they would be larger than what a user may lock in memory."""
    burner = burn(user=OTHER_USER, options=[FRAME_POINTERS])
    for path in (private.parent, private):
        os.chown(path, OTHER_USER, OTHER_USER)
    agent = agent_by("prlimit", "--memlock=65536", *as_user(OTHER_USER), private)
    done = record(agent, burner, frequency=10_000)
    assert done.head()["samples"]["taken"] > 0, done.outcome
