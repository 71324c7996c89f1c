"""JVMs recorded by the host's perf: shares, names, frame pointers, and JVMs that take no agents."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import FREQUENCY, good
from tests.contract.conftest import LATER_JDK, OTHER_USER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users, kernel frames")

FRAME_POINTERS = "-XX:+PreserveFramePointer"
NO_ATTACH = "-XX:+DisableAttachMechanism"
NO_LOADING = "-XX:-EnableDynamicAgentLoading"
BURNING = ("[burner]",)
"""The thread that burns: JVMs have others, which compile for a while."""


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, LATER_JDK])
def test_shares_and_names_of_a_jvm_with_frame_pointers(agent, burn, jdk):
    burner, began = burn(jdk=jdk, options=[FRAME_POINTERS]), time.monotonic()
    done = agent.record(burner, engine="perf", duration=2)
    head, took = done.head(), time.monotonic() - began
    assert done.is_good() and re.search(r"perf \d+\.\d+", done.outcome["reason"])
    assert (head["engine"], head["source"]) == ("perf", "perf_events")
    assert 0 < head["attach_seconds"] < took - 2
    assert head["interval"] == pytest.approx(1e9 / FREQUENCY, abs=1)
    assert head["samples"]["taken"] >= 0.5 * head["samples"]["expected"]
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


@pytest.mark.parametrize("jdk", [17, 21, LATER_JDK])
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
    done = new_agent(user=user).record(burner, engine="perf", duration=1)
    if done.head()["source"] != "perf_events":
        assert user and done.head()["source"] == "cpu-clock,alluser"
        assert "perf_event_paranoid" in done.outcome["reason"]
    assert done.share("Burner", among=BURNING) > 0.9


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


def test_off_cpu_of_a_jvm_that_cannot_be_attached_lacks_java_frames(agent, burn):
    burner = burn(load=0.5, options=[FRAME_POINTERS, NO_ATTACH])
    done = agent.record(burner, engine="auto", events=["offcpu"])
    assert (done.head("offcpu")["engine"], done.outcome["status"]) == ("perf", "degraded")
    assert "lost their Java frames" in done.outcome["reason"] and done.profile("offcpu").total(1) > 0
