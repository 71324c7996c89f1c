"""The agent records real JVMs: shares, counts, fallbacks, several at a time, endings in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.contract.agent_driver import FREQUENCY, good
from tests.contract.cleaning import clean
from tests.contract.conftest import LEAST, OTHER_USER, as_burnt, found, is_profiled, waits_until_gone

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, 25])
def test_shares_are_those_that_were_burnt(agent, library, burn, jdk):
    burner = burn(jdk=jdk)
    ready, refused = agent.prepare(library, found(agent, burner), duration=2)
    assert (ready, refused) == ([burner.outer.pid], {})
    assert agent.start() == {burner.outer.pid: {"cpu": "perf_events"}}
    result = agent.collect()
    outcome, head = result.outcomes[burner.outer.pid], result.heads[burner.outer.pid]
    assert good(outcome) and (outcome["stage"], result.left) == ("record", [])
    assert as_burnt(result.profiles[burner.outer.pid])
    assert 2 <= head["seconds"] < 20
    assert head["samples"]["expected"] == pytest.approx(FREQUENCY * head["cpu_seconds"], abs=1)
    assert head["samples"]["taken"] >= 0.5 * head["samples"]["expected"]
    assert not is_profiled(burner.outer.pid)


def test_the_profile_says_whose_it_is(agent, library, burn):
    burner = burn()
    process = {**found(agent, burner)[0], "label": "executor 7", "labels": {"container": "c_01"}}
    agent.prepare(library, [process], duration=0.5)
    agent.start()
    profile = Profile.from_bytes(agent.collect().profiles[burner.outer.pid])
    assert profile.values == [("samples", "count"), ("cpu", "nanoseconds")]
    labels = dict(profile.labels)
    assert labels.pop("host")
    assert labels == {"pid": str(burner.outer.pid), "process": "executor 7", "container": "c_01"}


def test_several_jvms_of_several_users_start_together(agent, library, burn):
    burners = [burn(role="alpha"), burn(role="beta", user=OTHER_USER)]
    pids = {burner.outer.pid for burner in burners}
    ready, _ = agent.prepare(library, found(agent, *burners), duration=2)
    assert set(ready) == pids
    started = agent.start()
    assert started[burners[0].outer.pid]["cpu"] == "perf_events"
    assert started[burners[1].outer.pid]["cpu"] in ("perf_events", "cpu-clock,alluser")
    result = agent.collect()
    assert result.outcomes.keys() == pids and all(map(good, result.outcomes.values()))
    for pid in pids:
        assert as_burnt(result.profiles[pid])
        assert result.heads[pid]["samples"]["taken"] >= 0.5 * result.heads[pid]["samples"]["expected"]
    assert not any(is_profiled(pid) for pid in pids)


def test_an_agent_that_is_the_jvms_user(start_agent, library_file, burn):
    burner = burn(user=OTHER_USER)
    agent = start_agent(user=OTHER_USER)
    assert agent.hello()["host"]["uid"] == OTHER_USER
    library = agent.put(library_file.read_bytes())
    agent.prepare(library, found(agent, burner))
    agent.start()
    result = agent.collect()
    assert good(result.outcomes[burner.outer.pid])
    assert as_burnt(result.profiles[burner.outer.pid])


def test_a_second_session_right_after_the_first(start_agent, library_file, burn):
    burner = burn()
    for _ in range(3):
        agent = start_agent()
        blobs = agent.hello()["blobs"]
        library = blobs[0] if blobs else agent.put(library_file.read_bytes())
        ready, refused = agent.prepare(library, found(agent, burner), duration=0.5)
        assert ready == [burner.outer.pid], refused
        agent.start()
        assert good(agent.collect().outcomes[burner.outer.pid])
        assert agent.bye() == 0


def test_a_session_may_record_twice(agent, library, burn):
    burner = burn()
    for _ in range(2):
        agent.prepare(library, found(agent, burner), duration=0.5)
        agent.start()
        assert good(agent.collect().outcomes[burner.outer.pid])


def test_stopping_early_keeps_what_was_recorded(agent, library, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner), duration=60)
    agent.start()
    time.sleep(1.5)  # what is tested is that time is recorded
    agent.send("stop")
    result = agent.collect()
    assert 1.5 <= result.heads[burner.outer.pid]["seconds"] < 50
    assert result.heads[burner.outer.pid]["samples"]["taken"] > LEAST
    assert not is_profiled(burner.outer.pid)


def test_stopping_before_the_start(agent, library, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner))
    agent.send("stop")
    result = agent.collect()
    assert result.outcomes[burner.outer.pid]["status"] == "failed"
    assert (result.recording, result.profiles) == (0, {})


def test_an_idle_jvm_is_no_failure(agent, library, burn):
    burner = burn(load=0.0)
    agent.prepare(library, found(agent, burner), duration=1)
    agent.start()
    result = agent.collect()
    assert good(result.outcomes[burner.outer.pid])
    assert result.heads[burner.outer.pid]["samples"]["taken"] <= 0.2 * FREQUENCY


@pytest.mark.parametrize("how", ["exit", "sigterm"])
def test_a_jvm_that_ends_in_the_middle_keeps_its_samples(agent, library, burn, how):
    ending, other = burn(), burn(role="beta")
    agent.prepare(library, found(agent, ending, other), duration=6)
    agent.start()
    time.sleep(2)  # what is tested is that time is recorded
    if how == "exit":
        ending.process.stdin.close()
    else:
        ending.outer.kill(signal.SIGTERM)
    result = agent.collect()
    outcome, head = result.outcomes[ending.outer.pid], result.heads[ending.outer.pid]
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    assert 2 <= head["seconds"] < 6
    assert (outcome["ended"], outcome["seconds"]) == ("process", head["seconds"])
    assert "ended" not in result.outcomes[other.outer.pid]
    assert as_burnt(result.profiles[ending.outer.pid])
    assert good(result.outcomes[other.outer.pid])
    assert result.left == []


def test_a_jvm_that_is_killed_loses_only_its_own(agent, library, burn):
    killed, other = burn(), burn(role="beta")
    agent.prepare(library, found(agent, killed, other), duration=4)
    agent.start()
    killed.outer.kill(signal.SIGKILL)
    result = agent.collect()
    outcome = result.outcomes[killed.outer.pid]
    assert (outcome["status"], outcome["stage"]) == ("failed", "fetch")
    assert "killed" in outcome["reason"] and outcome["remedy"] and outcome["ended"] == "process"
    assert killed.outer.pid not in result.profiles
    assert good(result.outcomes[other.outer.pid])
    assert result.left == []


def test_a_jvm_that_ends_between_prepare_and_start(agent, library, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner))
    burner.outer.kill()
    waits_until_gone(burner.outer)
    agent.send("start")
    result = agent.collect()
    outcome = result.outcomes[burner.outer.pid]
    assert (outcome["stage"], outcome["ended"]) == ("start", "process") and "has ended" in outcome["reason"]
    assert (result.recording, result.left) == (0, [])


def test_without_perf_events_a_timer_takes_their_place(agent, library, burn):
    burner = burn(prefix=[sys.executable, str(Path(__file__).with_name("without_perf_events.py"))])
    agent.prepare(library, found(agent, burner), duration=2)
    assert agent.start() == {burner.outer.pid: {"cpu": "ctimer"}}
    result = agent.collect()
    outcome = result.outcomes[burner.outer.pid]
    assert outcome["status"] == "degraded"
    assert "perf events cannot be used" in outcome["reason"]
    assert as_burnt(result.profiles[burner.outer.pid])


def test_an_event_that_cannot_be_had_says_why(agent, library, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner), events=["no_such_event"])
    agent.send("start")
    outcome = agent.collect().outcomes[burner.outer.pid]
    assert (outcome["status"], outcome["stage"]) == ("failed", "start")
    assert "for no_such_event: Unsupported event type" in outcome["reason"], outcome
    assert outcome["remedy"].startswith("no_such_event is not one of async-profiler's events")
    opened = [os.readlink(file) for file in Path(f"/proc/{burner.outer.pid}/fd").iterdir()]
    assert not [path for path in opened if "/.hprofiler-run-" in path], "its log is closed"
    assert not is_profiled(burner.outer.pid)


def test_an_event_that_no_function_can_be_is_refused_before_anything_is_loaded(agent, library, burn):
    burner = burn()
    _, refused = agent.prepare(library, found(agent, burner), events=["page-fault"])
    outcome = refused[burner.outer.pid]
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert "no event page-fault" in outcome["reason"], outcome
    assert "libasyncProfiler" not in Path(f"/proc/{burner.outer.pid}/maps").read_text()


@pytest.mark.nightly
def test_a_jvm_on_musl_finds_the_same_file_the_next_time(agent, library, burn, tmp_path):
    """Under another inode musl would load it once more. All of musl here is a library of its name."""
    mapped = Path("/proc/self/maps").read_text().split()
    some = next(path for path in mapped if path.endswith(".so.6") and "/libm" in path)
    shutil.copy(some, tmp_path / "ld-musl-x86_64.so.1")
    burner = burn(env={"LD_PRELOAD": str(tmp_path / "ld-musl-x86_64.so.1")})
    staged = Path(f"/tmp/.hprofiler-ap-{library[:16]}-{os.geteuid()}")
    inodes = set()
    for _ in range(2):
        ready, refused = agent.prepare(library, found(agent, burner), duration=0.5)
        assert ready, refused
        agent.start()
        result = agent.collect()
        assert good(result.outcomes[burner.outer.pid]) and result.left == []
        inodes.add((staged / "libasyncProfiler.so").stat().st_ino)
    assert len(inodes) == 1
    assert str(staged) in clean(agent, kept=True)["removed"]
