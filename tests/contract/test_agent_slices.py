"""Samples of tasks go to the stage in the name of their thread, whichever stages run at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hprofiler import Profile
from tests.burners import build
from tests.burners.burner import Program
from tests.contract.agent_driver import Agent, Event, Recorded
from tests.lab import jdks
from tests.lab.procs import thread_names, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

RULE = {
    "main_class": ["Stages"],
    "prefix": "Executor task launch worker",
    "regex": r" in stage (\d+\.\d+) \(TID \d+\)$",
    "name": "stage {}",
}
STAGE_OF = {"Stages.burnFirst": "stage 1.0", "Stages.burnSecond": "stage 2.0"}
APART = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Stages.burn*"]
"""The burning methods stay methods of their own."""
SILENT = "-XX:+EnableDynamicAgentLoading"
FOLLOWER = "hprofiler threa"
"""The thread of the library, as the kernel cuts its name."""
CERTAIN = 0.8
TRIES = 3
"""On a busy machine the library's thread, too, has to wait for a processor."""
LEAST = 300
TASKS, FEW = 40, 10
TASK_MILLISECONDS = 200


@pytest.fixture
def stages(keep_program) -> Callable[..., Program]:
    """Starts JVMs with two threads that run tasks of two stages, and twenty that wait."""

    def start(jdk: int, *options: str) -> Program:
        java = jdks.home(jdk) / "bin" / "java"
        words = ["-cp", str(build.classes()), "-Xmx64m", *APART, *options]
        words += ["Stages", "2", "20", str(TASK_MILLISECONDS)]
        return keep_program(Program([str(java), *words]))

    return start


def by_slice(profile: Profile) -> dict[tuple[str, bool] | None, dict[str, int]]:
    """Samples of the burning methods by slice, None for none, and by the stage that burns with the method."""
    assert profile.times
    slices = [None, *profile.times.slices]
    found: dict[tuple[str, bool] | None, dict[str, int]] = {}
    for number, slice_ in enumerate(slices):
        counts = found.setdefault(slice_, dict.fromkeys(STAGE_OF.values(), 0))
        for stack in profile.in_slice(number).paths():
            for method, stage in STAGE_OF.items():
                counts[stage] += stack.values[0] if any(method in frame for frame in stack.frames) else 0
    return found


def record(agent: Agent, jvm: Program, number: int = TASKS, **members: object) -> Recorded:
    """A recording of some tasks, of which nothing is left."""
    agent.begin(jvm, duration=120, slices=[RULE], **members)
    first = tasks(jvm)
    wait_for("tasks", lambda: tasks(jvm) >= first + number)
    done = agent.stop().of(jvm)
    assert done.result.left == [], done.result.left
    return done


def tasks(jvm: Program) -> int:
    return int(jvm.ask("tasks=").partition("=")[2].split()[0])


def followers(pid: int) -> int:
    return thread_names(pid).count(FOLLOWER)


def codes(outcome: Event) -> set[str]:
    return {note["code"] for note in outcome.get("notes", [])} | {outcome["code"]}


@pytest.mark.parametrize(
    ("jdk", "options"),
    [
        pytest.param(8, [], marks=pytest.mark.nightly),
        (17, []),
        pytest.param(25, [SILENT], marks=pytest.mark.nightly),
    ],
)
def test_samples_belong_to_the_stage_in_the_threads_name(agent, stages, jdk, options):
    jvm = stages(jdk, *options)
    shares = []
    while not shares or (max(shares) < CERTAIN and len(shares) < TRIES):
        done = record(agent, jvm)
        assert "thread-names-unread" not in codes(done.outcome), done.outcome
        found = by_slice(done.profile())
        certain = {stage: found.get((stage, True), {}) for stage in STAGE_OF.values()}
        right = sum(counts.get(stage, 0) for stage, counts in certain.items())
        all_certain = sum(sum(counts.values()) for counts in certain.values())
        total = sum(sum(counts.values()) for counts in found.values())
        assert total > LEAST
        assert right >= 0.98 * all_certain, found
        assert sum(found.get(None, {}).values()) < 0.05 * total, found
        shares.append(all_certain / total)
    assert max(shares) >= CERTAIN, shares
    wait_for("the library's thread to end", lambda: followers(jvm.outer.pid) == 0)


def test_a_jvm_that_warns_is_followed_only_if_asked_for(agent, stages):
    jvm = stages(25)
    refused = record(agent, jvm, FEW)
    assert codes(refused.outcome) == {"thread-names-unread"}
    assert refused.outcome["status"] == "ok" and "--thread-names" in refused.outcome["remedy"]
    assert refused.profile().times.slices == []
    assert ("stage 1.0", True) in record(agent, jvm, FEW, thread_names=True).profile().times.slices


def test_rules_of_other_programs_load_nothing(agent, stages):
    jvm = stages(17)
    other = {**RULE, "main_class": ["org.apache.spark.*"]}
    done = agent.record(jvm, slices=[other])
    assert done.outcome["status"] == "ok" and done.profile().times.slices == []
    assert "libhprofilerThreadnames" not in Path(f"/proc/{jvm.outer.pid}/maps").read_text()


def test_names_end_with_a_killed_agent(new_agent, stages):
    jvm = stages(17)
    agent = new_agent()
    agent.begin(jvm, duration=1, slices=[RULE])
    wait_for("the library's thread", lambda: followers(jvm.outer.pid) == 1)
    agent.kill()
    new_agent().clean()
    wait_for("the library's thread to end", lambda: followers(jvm.outer.pid) == 0)
