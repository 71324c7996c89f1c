"""JVMs recorded by the host's perf: shares, names, frame pointers, and JVMs that take no agents."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import FREQUENCY, good, near
from tests.contract.conftest import LEAST, OTHER_USER
from tests.contract.perf_engine import (
    FRAME_POINTERS,
    burnt,
    perf_at_work,
    perf_of,
    prepare,
    processes,
    record,
    refused,
)
from tests.contract.test_agent_namespaces import contained
from tests.lab import procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users, kernel frames")

BURNING = ("[burner]",)
"""The thread that burns: JVMs have others, which compile for a while."""


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, 25])
def test_shares_and_names_of_a_jvm_with_frame_pointers(agent, burn, jdk):
    burner = burn(jdk=jdk, options=[FRAME_POINTERS])
    done = record(agent, burner, duration=2)
    head, outcome = done.head(), done.outcome
    assert good(outcome)
    assert re.search(r"perf \d+\.\d+", outcome["reason"])
    seen, taken = burnt(done), head["samples"]["taken"]
    assert near(seen["hot"], 0.70, taken) and near(seen["warm"], 0.20, taken), (seen, taken)
    assert (head["engine"], head["source"]) == ("perf", "perf_events")
    assert 0 < head["attach_seconds"] < 10
    assert head["interval"] == pytest.approx(1e9 / FREQUENCY, abs=1)
    assert head["samples"]["taken"] >= 0.5 * head["samples"]["expected"]
    assert sum(head["timeline"]) == head["samples"]["taken"]
    assert done.profile().values == [("samples", "count"), ("cpu", "nanoseconds")]
    assert sum(count for _, count in done.stacks(value=1)) == pytest.approx(
        1e9 * head["cpu_seconds"], rel=0.1
    )
    assert done.share("[unknown") < 0.02
    assert all(stack[0].startswith("[") and stack[0].endswith("]") for stack, _ in done.stacks())


def test_inlined_methods_are_unfolded(agent, burn):
    done = record(agent, burn(options=[FRAME_POINTERS]), duration=1.5)
    frames = {frame for stack, _ in done.stacks() for frame in stack}
    assert any("Burner" in frame and frame.endswith("_[j]") for frame in frames), frames
    assert any("Burner" in frame and frame.endswith("_[i]") for frame in frames), frames


def test_without_frame_pointers_the_remedy_is_told(agent, burn):
    done = record(agent, burn())
    assert done.outcome["status"] == "degraded"
    (note,) = [note for note in done.outcome["notes"] if note["code"] == "no-frame-pointers"]
    assert note["parameters"]["event"] == "cpu" and 0 < note["parameters"]["share"] <= 1
    assert FRAME_POINTERS in done.outcome["remedy"]
    assert done.head()["samples"]["taken"] > 0


@pytest.mark.nightly
def test_an_interpreter_alone_breaks_nothing(agent, burn):
    done = record(agent, burn(options=[FRAME_POINTERS, "-Xint"]))
    assert good(done.outcome)
    assert done.share("Interpreter") > 0.5


@pytest.mark.parametrize("jdk", [17, 21, 25])
def test_a_jvm_that_takes_no_agents_writes_its_map_itself(agent, burn, jdk):
    burner = burn(jdk=jdk, options=[FRAME_POINTERS, "-XX:-EnableDynamicAgentLoading"])
    done = record(agent, burner)
    assert "-XX:-EnableDynamicAgentLoading" in done.outcome["reason"]
    assert "inlined" in done.outcome["reason"]
    assert done.share("Burner", among=BURNING) > 0.9, done.stacks()[:5]
    assert not usual_map(burner).exists()


def test_a_map_that_was_there_is_read_and_not_written_over(agent, burn):
    burner = burn(jdk=17, options=[FRAME_POINTERS, "-XX:-EnableDynamicAgentLoading"])
    before = "0 7fffffffffff Everything.everywhere\n"
    usual_map(burner).write_text(before)
    try:
        done = record(agent, burner)
        assert usual_map(burner).read_text() == before
    finally:
        usual_map(burner).unlink()
    assert done.outcome["status"] == "degraded" and done.share("Everything.everywhere") > 0.5
    assert "would overwrite it" in done.outcome["reason"]


@pytest.mark.nightly
def test_somebody_elses_map_is_neither_written_nor_believed(agent, burn):
    burner = burn(jdk=17, options=[FRAME_POINTERS, "-XX:-EnableDynamicAgentLoading"])
    usual_map(burner).write_text("0 ffffffffffffff FALSE\n")
    os.chown(usual_map(burner), OTHER_USER, OTHER_USER)
    try:
        done = record(agent, burner)
        assert "have no names" in done.outcome["reason"]
        assert done.share("FALSE") == 0
        assert usual_map(burner).read_text() == "0 ffffffffffffff FALSE\n"
    finally:
        usual_map(burner).unlink()


def usual_map(burner):
    return Path(f"/proc/{burner.outer.pid}/root/tmp/perf-{burner.pid}.map")


@pytest.mark.nightly
@pytest.mark.parametrize("there", [False, True])
def test_without_attach_only_a_map_that_is_there_names_methods(agent, burn, there):
    burner = burn(options=[FRAME_POINTERS, "-XX:+DisableAttachMechanism"])
    if there:
        usual_map(burner).write_text("0 7fffffffffff Everything.everywhere\n")
    try:
        done = record(agent, burner)
    finally:
        usual_map(burner).unlink(missing_ok=True)
    assert done.outcome["status"] == "degraded"
    assert "-XX:+DisableAttachMechanism" in done.outcome["reason"]
    assert ("have no names" in done.outcome["reason"]) != there
    assert (done.share("Everything.everywhere") > 0.5) == there
    assert not any("Full thread dump" in line for line in burner.other_lines)


def test_a_jvm_of_another_user(agent, burn):
    done = record(agent, burn(user=OTHER_USER, options=[FRAME_POINTERS]), duration=1.5)
    assert good(done.outcome)
    assert done.share("Burner", among=BURNING) > 0.9
    assert near(burnt(done)["hot"], 0.70, done.head()["samples"]["taken"])


@pytest.mark.nightly
@pytest.mark.parametrize("more", [{}, {"user": OTHER_USER}, {"user": OTHER_USER, "mapped": True}], ids=str)
@pytest.mark.parametrize("option", ["-XX:+UseTLAB", "-XX:-EnableDynamicAgentLoading"])
def test_a_jvm_in_namespaces_of_its_own(agent, more, option):
    """By our agent or by the JVM's own command, whose file is named by the number that the JVM knows."""
    burner = Burner(wrap=contained(**more), options=[FRAME_POINTERS, option])
    try:
        done = record(agent, burner, duration=1.5)
        left = [path.name for path in Path(f"/proc/{burner.outer.pid}/root/tmp").iterdir()]
    finally:
        burner.kill()
    assert good(done.outcome)
    assert done.share("Burner", among=BURNING) > 0.9 and done.share("[unknown") < 0.02
    assert near(burnt(done)["hot"], 0.70, done.head()["samples"]["taken"])
    assert not [name for name in left if name.startswith((".hprofiler", "perf-"))]


def test_an_agent_that_is_the_jvms_user_sees_user_code(start_agent, burn):
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    done = record(agent, burn(user=OTHER_USER, options=[FRAME_POINTERS]), duration=1.5)
    assert done.head()["source"] in ("perf_events", "cpu-clock,alluser")
    if done.head()["source"] != "perf_events":
        assert "perf_event_paranoid" in done.outcome["reason"]
    assert done.share("Burner", among=BURNING) > 0.9


def test_another_users_jvm_is_refused_to_a_user(start_agent, burn):
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    outcome = refused(agent, burn(), ["cpu"])
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert "belongs to" in outcome["reason"] and "sudo" in outcome["remedy"]


def test_several_events_in_one_recording(agent, burn):
    burner = burn(role="alloc", options=[FRAME_POINTERS])
    done = record(agent, burner, ["cpu", "page-faults", "context-switches"])
    assert set(done.result.events[done.pid]) == {"cpu", "page-faults", "context-switches"}
    assert done.profile("page-faults").values == [("page-faults", "count")]
    assert done.profile("context-switches").total(0) > 0
    assert done.head("page-faults")["interval"] == 0


@pytest.mark.usefixtures("tracepoints")
def test_beside_a_tracepoint_other_events_have_the_frequency_asked_for(agent, burn):
    done = record(agent, burn(), ["sched:sched_switch", "task-clock", "cpu-clock"])
    assert set(done.result.events[done.pid]) == {"sched:sched_switch", "task-clock", "cpu-clock"}
    for event in ("task-clock", "cpu-clock"):
        head = done.head(event)
        assert 0 < head["samples"]["taken"] < 2 * FREQUENCY * head["cpu_seconds"], head


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_jvm_that_ends_in_the_middle_keeps_its_samples(agent, burn, how):
    ending, other = burn(options=[FRAME_POINTERS]), burn(role="beta", options=[FRAME_POINTERS])
    prepare(agent, processes(agent, ending, other), duration=6)
    agent.start()
    time.sleep(2)  # what is tested is that time is recorded
    ending.outer.kill(how)
    result = agent.collect()
    outcome = result.outcomes[ending.outer.pid]
    assert outcome["status"] == "degraded"
    assert "ended after" in outcome["reason"] and "have no names" in outcome["reason"]
    assert result.heads[ending.outer.pid]["samples"]["taken"] > LEAST
    assert good(result.outcomes[other.outer.pid])
    assert result.left == []


def test_stopping_early_keeps_what_was_recorded(agent, burn):
    burner = burn(options=[FRAME_POINTERS])
    prepare(agent, processes(agent, burner), duration=60)
    agent.start()
    time.sleep(1.5)  # what is tested is that time is recorded
    agent.send("stop")
    result = agent.collect()
    assert 1.5 <= result.heads[burner.outer.pid]["seconds"] < 50
    assert result.heads[burner.outer.pid]["samples"]["taken"] > LEAST


@pytest.mark.nightly
@pytest.mark.parametrize("load", [0.0, 1.0])
def test_a_killed_agent_leaves_no_perf(start_agent, burn, load):
    """Neither beside a JVM that runs nor beside one that is idle, so that perf has nothing to write."""
    agent = start_agent()
    agent.hello()
    burner = burn(load=load)
    prepare(agent, processes(agent, burner), duration=60)
    agent.start()
    family = family_of(agent)
    agent.process.kill()
    for one in family:
        ended(one)
    assert burner.outer.alive()


@pytest.mark.nightly
def test_a_killed_perf_is_told_and_leaves_nothing(agent, burn):
    """As the kernel kills it where memory runs out; what it had not written yet is lost, which may be all."""
    burner = burn(options=[FRAME_POINTERS])
    prepare(agent, processes(agent, burner), duration=60)
    agent.start()
    family = family_of(agent)
    os.kill(family[0].pid, signal.SIGKILL)
    agent.send("stop")
    result = agent.collect()
    for one in family:
        ended(one)
    outcome = result.outcomes[burner.outer.pid]
    assert outcome["status"] in ("degraded", "failed"), outcome["reason"]
    assert "perf was killed by signal 9" in outcome["reason"], outcome
    assert burner.outer.alive() and result.left == []


def family_of(agent):
    """The perf at work, what limits its time, and what ends with the agent."""
    perf = perf_at_work(agent)

    def all_of_them():
        family = [one for pid in procs.family(perf.pid) if (one := procs.Identity.of(pid))]
        return family if len(family) == 3 else None

    return procs.wait_for("perf, and what limits its time", all_of_them)


def ended(process):
    procs.wait_for(f"the end of {process}", lambda: not process.alive())


@pytest.mark.nightly
def test_perf_limits_its_own_time(agent, burn):
    prepare(agent, processes(agent, burn()), duration=7)
    agent.start()
    words = Path(f"/proc/{perf_at_work(agent).pid}/cmdline").read_bytes().split(b"\0")
    assert [Path(word.decode()).name for word in words[-4:-1]] == ["timeout", "37", "cat"]
    agent.send("stop")
    agent.collect()
    assert perf_of(agent) is None


def test_auto_takes_perf_where_no_profiler_can_be_loaded(agent, burn):
    burner = burn(options=[FRAME_POINTERS, "-XX:+DisableAttachMechanism"])
    done = record(agent, burner, engine="auto")
    assert done.head()["engine"] == "perf"
    assert "not by async-profiler" in done.outcome["reason"]
    assert done.outcome["reason"].count("-XX:+DisableAttachMechanism") == 1
    assert "restart the JVM without -XX:+DisableAttachMechanism" in done.outcome["remedy"]


def test_off_cpu_of_a_jvm_that_cannot_be_attached_is_perfs_best(agent, burn):
    burner = burn(load=0.5, options=[FRAME_POINTERS, "-XX:+DisableAttachMechanism"])
    done = record(agent, burner, ["offcpu"], engine="auto")
    assert (done.head("offcpu")["engine"], done.outcome["status"]) == ("perf", "degraded")
    assert "lost their Java frames" in done.outcome["reason"]
    assert sum(value for _, value in done.stacks("offcpu", 1)) > 0


def test_off_cpu_for_a_user_is_known_by_thread(start_agent, burn):
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    burner = burn(user=OTHER_USER, load=0.5, options=["-XX:+DisableAttachMechanism"])
    done = record(agent, burner, ["offcpu"], engine="auto")
    assert "offcpu without stacks" in done.outcome["reason"] or done.profile("offcpu").total(1) > 0
