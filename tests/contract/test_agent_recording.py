"""The agent records real JVMs: shares, counts, fallbacks, several at a time, endings in the middle."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import FREQUENCY, LEAST, WORK, good
from tests.contract.conftest import OTHER_USER, a_library, is_profiled, waits_until_gone
from tests.contract.test_agent_perf import FRAME_POINTERS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, 25])
def test_shares_are_those_that_were_burnt(agent, burn, jdk):
    burner = burn(jdk=jdk)
    assert agent.begin(burner, duration=120) == {burner.outer.pid: {"cpu": "perf_events"}}
    burner.burn(WORK)
    status = Path(f"/proc/{burner.outer.pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) << 10
    result = agent.stop()
    done, head = result.of(burner), result.of(burner).head()
    assert done.is_good() and (done.outcome["stage"], result.left) == ("record", [])
    assert 0.2 < head["seconds"] < 120
    assert head["resident_bytes"] == pytest.approx(resident, rel=0.1)
    assert head["samples"]["expected"] == pytest.approx(FREQUENCY * head["cpu_seconds"], abs=1)
    assert head["samples"]["taken"] >= 0.5 * head["samples"]["expected"]
    assert not is_profiled(burner.outer.pid)


def test_the_profile_has_the_processs_labels(agent, burn):
    burner = burn()
    (process,) = agent.found(burner)
    agent.begin({**process, "label": "executor 7", "labels": {"container": "c_01"}})
    labels = dict(agent.collect().of(burner).profile().labels)
    assert labels.pop("host")
    assert labels == {"pid": str(burner.outer.pid), "process": "executor 7", "container": "c_01"}


def test_several_jvms_of_several_users_start_together(agent, burn):
    burners = [burn(role="alpha"), burn(role="beta", user=OTHER_USER)]
    started = agent.begin(*burners, duration=120)
    assert started[burners[0].outer.pid]["cpu"] == "perf_events"
    assert started[burners[1].outer.pid]["cpu"] in ("perf_events", "cpu-clock,alluser")
    for burner in burners:
        burner.burn(WORK)
    result = agent.stop()
    assert len(result.outcomes) == 2
    for burner in burners:
        samples = result.of(burner).head()["samples"]
        assert result.of(burner).is_good() and samples["taken"] >= 0.5 * samples["expected"]
        assert not is_profiled(burner.outer.pid)


def test_a_jvm_is_recorded_again_by_the_same_session_and_by_the_next(new_agent, burn):
    burner = burn()
    for recordings in (2, 1):
        agent = new_agent()
        for _ in range(recordings):
            assert good(agent.record(burner).outcome)
        assert agent.bye() == 0


def test_stopping_perf_early_keeps_what_was_recorded(agent, burn):
    burner = burn(options=[FRAME_POINTERS])
    agent.begin(burner, engine="perf", duration=60)
    burner.burn(WORK)
    head = agent.stop().of(burner).head()
    assert 0.2 < head["seconds"] < 60 and head["samples"]["taken"] > LEAST


def test_stopping_before_the_start(agent, burn):
    burner = burn()
    agent.prepare(burner)
    result = agent.stop()
    assert result.of(burner).outcome["status"] == "failed"
    assert (result.recording, result.events) == (0, {})


def test_an_idle_jvm_is_not_a_failure(agent, burn):
    done = agent.record(burn(load=0.0))
    assert good(done.outcome) and done.head()["samples"]["taken"] <= 0.2 * FREQUENCY


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_a_jvm_that_ends_in_the_middle_keeps_its_samples(agent, burn, engine):
    options = [FRAME_POINTERS]
    ending, other = burn(options=options), burn(role="beta", options=options)
    agent.begin(ending, other, engine=engine, duration=120)
    ending.burn(WORK)
    ending.outer.kill(signal.SIGTERM)
    other.burn(WORK)
    result = agent.stop()
    done, outcome, head = result.of(ending), result.of(ending).outcome, result.of(ending).head()
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    assert (outcome["ended"], outcome["seconds"]) == ("process", head["seconds"]) and 0.2 < head[
        "seconds"
    ] < 120
    assert head["samples"]["taken"] > LEAST
    assert "have no names" in outcome["reason"] if engine == "perf" else done.share("Burner.") > 0.5
    assert good(result.of(other).outcome) and "ended" not in result.of(other).outcome
    assert result.left == []


def test_a_jvm_that_is_killed_loses_only_its_own(agent, burn):
    killed, other = burn(), burn(role="beta")
    agent.begin(killed, other, duration=1)
    killed.outer.kill(signal.SIGKILL)
    result = agent.collect()
    outcome = result.of(killed).outcome
    assert (outcome["status"], outcome["stage"], outcome["ended"]) == ("failed", "fetch", "process")
    assert "killed" in outcome["reason"] and outcome["remedy"] and not result.of(killed).events
    assert good(result.of(other).outcome) and result.left == []


@pytest.mark.nightly
def test_a_killed_jvm_loses_only_its_last_seconds(agent, burn):
    """Parts of 5 s, begun and ended within a second: of 14 s at most 7 are lost."""
    burner = burn()
    agent.begin(burner, duration=120)
    before = burner.counters()
    time.sleep(14)  # recorded
    nanos = (burner.counters() - before).nanos
    burner.outer.kill(signal.SIGKILL)
    result = agent.collect()
    outcome, head = result.of(burner).outcome, result.of(burner).head()
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    assert head["samples"]["taken"] > 0.4 * nanos / 1e9 * FREQUENCY, (head, nanos)
    assert result.left == []


def test_a_jvm_that_ends_between_prepare_and_start(agent, burn):
    burner = burn()
    agent.prepare(burner)
    burner.outer.kill()
    waits_until_gone(burner.outer)
    agent.send("start")
    result = agent.collect()
    outcome = result.of(burner).outcome
    assert (outcome["stage"], outcome["ended"]) == ("start", "process") and "has ended" in outcome["reason"]
    assert (result.recording, result.left) == (0, [])


def test_an_event_that_cannot_be_had_says_why(agent, burn):
    burner = burn()
    agent.prepare(burner, events=["no_such_event"])
    agent.send("start")
    outcome = agent.collect().of(burner).outcome
    assert (outcome["status"], outcome["stage"]) == ("failed", "start")
    assert "for no_such_event: Unsupported event type" in outcome["reason"], outcome
    assert outcome["remedy"].startswith("no_such_event is neither an event of async-profiler")
    opened = [os.readlink(file) for file in Path(f"/proc/{burner.outer.pid}/fd").iterdir()]
    assert not [path for path in opened if "/.hprofiler-run-" in path], "its log is closed"
    assert not is_profiled(burner.outer.pid)


@pytest.mark.nightly
def test_a_jvm_on_musl_finds_the_same_file_the_next_time(agent, burn, tmp_path):
    """Under another inode musl would load it once more. All of musl here is a library of its name."""
    musl = tmp_path / "ld-musl-x86_64.so.1"
    musl.write_bytes(a_library().read_bytes())
    burner = burn(env={"LD_PRELOAD": str(musl)})
    staged = Path(f"/tmp/.hprofiler-ap-{agent.library()[:16]}-{os.geteuid()}")
    inodes = set()
    for _ in range(2):
        assert good(agent.record(burner).outcome)
        inodes.add((staged / "libasyncProfiler.so").stat().st_ino)
    assert len(inodes) == 1
    assert str(staged) in agent.clean()["removed"]
