"""JVMs recorded by the host's perf: shares, names, frame pointers, and JVMs that take no agents."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import FREQUENCY, LEAST, good
from tests.contract.conftest import OTHER_USER, perf_at_work, perf_of
from tests.lab import procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users, kernel frames")

FRAME_POINTERS = "-XX:+PreserveFramePointer"
NO_ATTACH = "-XX:+DisableAttachMechanism"
NO_LOADING = "-XX:-EnableDynamicAgentLoading"
BURNING = ("[burner]",)
"""The thread that burns: JVMs have others, which compile for a while."""


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, 25])
def test_shares_and_names_of_a_jvm_with_frame_pointers(agent, burn, jdk):
    done = agent.record(burn(jdk=jdk, options=[FRAME_POINTERS]), engine="perf", duration=2)
    head = done.head()
    assert done.is_good() and re.search(r"perf \d+\.\d+", done.outcome["reason"])
    assert (head["engine"], head["source"]) == ("perf", "perf_events")
    assert 0 < head["attach_seconds"] < 10
    assert head["interval"] == pytest.approx(1e9 / FREQUENCY, abs=1)
    assert sum(head["timeline"]) == head["samples"]["taken"] >= 0.5 * head["samples"]["expected"]
    assert done.profile().values == [("samples", "count"), ("cpu", "nanoseconds")]
    assert done.profile().total(1) == pytest.approx(1e9 * head["cpu_seconds"], rel=0.1)
    assert done.share("[unknown") < 0.02
    frames = {frame for stack, _ in done.stacks() for frame in stack}
    for kind in ("_[j]", "_[i]"):
        assert any("Burner" in frame and frame.endswith(kind) for frame in frames), frames
    assert all(stack[0].startswith("[") and stack[0].endswith("]") for stack, _ in done.stacks())


def test_without_frame_pointers_the_remedy_names_the_flag(agent, burn):
    done = agent.record(burn(), engine="perf")
    (note,) = [note for note in done.outcome["notes"] if note["code"] == "no-frame-pointers"]
    assert done.outcome["status"] == "degraded" and FRAME_POINTERS in done.outcome["remedy"]
    assert note["parameters"]["event"] == "cpu" and 0 < note["parameters"]["share"] <= 1
    assert done.head()["samples"]["taken"] > 0


def usual_map(burner):
    return Path(f"/proc/{burner.outer.pid}/root/tmp/perf-{burner.pid}.map")


@pytest.mark.parametrize("jdk", [17, 21, 25])
def test_a_jvm_that_takes_no_agents_writes_its_map_itself(agent, burn, jdk):
    burner = burn(jdk=jdk, options=[FRAME_POINTERS, NO_LOADING])
    done = agent.record(burner, engine="perf")
    assert NO_LOADING in done.outcome["reason"] and "inlined" in done.outcome["reason"]
    assert done.share("Burner", among=BURNING) > 0.9, done.stacks()[:5]
    assert not usual_map(burner).exists()


@pytest.mark.parametrize(("owner", "why"), [(0, "would overwrite it"), (OTHER_USER, "have no names")])
def test_a_map_that_was_there_is_not_written_over_and_only_its_users_is_read(agent, burn, owner, why):
    burner = burn(jdk=17, options=[FRAME_POINTERS, NO_LOADING])
    before = "0 7fffffffffff Everything.everywhere\n"
    usual_map(burner).write_text(before)
    os.chown(usual_map(burner), owner, owner)
    try:
        done = agent.record(burner, engine="perf")
        assert usual_map(burner).read_text() == before
    finally:
        usual_map(burner).unlink()
    assert why in done.outcome["reason"], done.outcome
    assert (done.share("Everything.everywhere") > 0.5) == (owner == 0)


@pytest.mark.parametrize("user", [None, OTHER_USER], ids=["root's agent", "its user's agent"])
def test_a_jvm_of_another_user(new_agent, burn, user):
    """Without root's rights the kernel may allow samples of user code alone, and then the reason says so."""
    burner = burn(user=OTHER_USER, options=[FRAME_POINTERS])
    done = new_agent(user=user).record(burner, engine="perf", duration=2)
    if done.head()["source"] != "perf_events":
        assert user and done.head()["source"] == "cpu-clock,alluser"
        assert "perf_event_paranoid" in done.outcome["reason"]
    assert done.share("Burner", among=BURNING) > 0.9


def test_another_users_jvm_is_refused_to_a_user(new_agent, untouched):
    outcome = new_agent(user=OTHER_USER).refuse(untouched, engine="perf")
    assert "belongs to" in outcome["reason"] and "sudo" in outcome["remedy"]


@pytest.mark.nightly
@pytest.mark.parametrize("where", [{}, {"user": OTHER_USER}, {"user": OTHER_USER, "mapped": True}], ids=str)
@pytest.mark.parametrize("option", ["-XX:+UseTLAB", NO_LOADING])
def test_a_jvm_in_namespaces_of_its_own(agent, burn_contained, where, option):
    """By our agent or by the JVM's own command, whose file is named by the number that the JVM knows."""
    burner = burn_contained(**where, options=[FRAME_POINTERS, option])
    done = agent.record(burner, engine="perf", duration=1.5)
    left = [path.name for path in Path(f"/proc/{burner.outer.pid}/root/tmp").iterdir()]
    assert good(done.outcome)
    assert done.share("Burner", among=BURNING) > 0.9 and done.share("[unknown") < 0.02
    assert not [name for name in left if name.startswith((".hprofiler", "perf-"))]


@pytest.mark.usefixtures("tracepoints")
def test_beside_a_tracepoint_other_events_have_the_frequency_asked_for(agent, burn):
    events = ["sched:sched_switch", "task-clock", "cpu-clock"]
    done = agent.record(burn(), engine="perf", events=events)
    assert set(done.events) == set(events)
    for event in ("task-clock", "cpu-clock"):
        head = done.head(event)
        assert 0 < head["samples"]["taken"] < 2 * FREQUENCY * head["cpu_seconds"], head


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_jvm_that_ends_in_the_middle_keeps_its_samples(agent, burn, how):
    ending, other = burn(options=[FRAME_POINTERS]), burn(role="beta", options=[FRAME_POINTERS])
    agent.begin(ending, other, engine="perf", duration=4)
    time.sleep(1.5)  # recorded
    ending.outer.kill(how)
    result = agent.collect()
    done = result.of(ending)
    assert done.outcome["status"] == "degraded"
    assert "ended after" in done.outcome["reason"] and "have no names" in done.outcome["reason"]
    assert done.head()["samples"]["taken"] > LEAST
    assert good(result.of(other).outcome) and result.left == []


def family_of(agent):
    """The perf at work, what limits its time, and what ends with the agent."""
    perf = perf_at_work(agent)

    def all_of_them():
        family = [one for pid in procs.family(perf.pid) if (one := procs.Identity.of(pid))]
        return family if len(family) == 3 else None

    return procs.wait_for("perf, and what limits its time", all_of_them)


@pytest.mark.nightly
@pytest.mark.parametrize("load", [0.0, 1.0])
def test_a_killed_agent_leaves_no_perf(agent, burn, load):
    """Neither beside a JVM that runs nor beside one that is idle, so that perf has nothing to write."""
    burner = burn(load=load)
    agent.begin(burner, engine="perf", duration=60)
    family = family_of(agent)
    agent.process.kill()
    procs.wait_for("the end of all of them", lambda: not any(one.alive() for one in family))
    assert burner.outer.alive()


@pytest.mark.nightly
def test_a_killed_perf_is_reported_and_leaves_nothing(agent, burn):
    """As the kernel kills it where memory runs out; what it had not written yet is lost, which may be all."""
    burner = burn(options=[FRAME_POINTERS])
    agent.begin(burner, engine="perf", duration=60)
    family = family_of(agent)
    os.kill(family[0].pid, signal.SIGKILL)
    result = agent.stop()
    procs.wait_for("the end of all of them", lambda: not any(one.alive() for one in family))
    outcome = result.of(burner).outcome
    assert outcome["status"] in ("degraded", "failed") and "perf was killed by signal 9" in outcome["reason"]
    assert burner.outer.alive() and result.left == []


@pytest.mark.nightly
def test_perf_limits_its_own_time(agent, burn):
    agent.begin(burn(), engine="perf", duration=7)
    words = Path(f"/proc/{perf_at_work(agent).pid}/cmdline").read_bytes().split(b"\0")
    assert [Path(word.decode()).name for word in words[-4:-1]] == ["timeout", "37", "cat"]
    agent.stop()
    assert perf_of(agent) is None


def test_off_cpu_of_a_jvm_that_cannot_be_attached_lacks_java_frames(agent, burn):
    burner = burn(load=0.5, options=[FRAME_POINTERS, NO_ATTACH])
    done = agent.record(burner, engine="auto", events=["offcpu"])
    assert (done.head("offcpu")["engine"], done.outcome["status"]) == ("perf", "degraded")
    assert "lost their Java frames" in done.outcome["reason"] and done.profile("offcpu").total(1) > 0
