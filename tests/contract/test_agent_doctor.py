"""What `check` reports of a process is what a run of the same moment comes to, and it touches nothing.

Its decisions are those of `prepare`: what the agent refuses is tested in test_agent_refuses.py.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import good, shipped
from tests.contract.conftest import OTHER_USER, executable
from tests.contract.test_agent_choice import WRAPPER
from tests.contract.test_agent_perf import FRAME_POINTERS, NO_ATTACH
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

NO_DUMP = "a dump has only"
WITHOUT_PERF_EVENTS = [sys.executable, str(Path(__file__).with_name("without_perf_events.py"))]


def traces(process, session):
    """What an attach, a signal or a file of this session (its agent's pid) would change beside a process."""
    pid, number = process["pid"], process["namespace_pid"]
    own = (f".hprofiler-run-{session}-", f".attach_pid{number}", f".java_pid{number}")
    tmp = Path(f"/proc/{pid}/root/tmp")
    beside = sorted(path.name for path in tmp.iterdir() if path.name.startswith(own))
    return attach.profiler_libraries(pid), beside, procs.Identity.of(pid)


def check(agent, *targets, **wanted):
    """All that `check` says: what is wrong has a remedy."""
    checked = agent.check(*targets, **{"engine": "auto", **wanted})
    of_processes = [finding for one in checked["processes"] for finding in one["findings"]]
    for finding in [*checked["findings"], *of_processes]:
        assert finding["remedy"] or finding["severity"] in ("ok", "info"), finding
    return checked


def agree(agent, target, **wanted):
    """What `check` says of a process, which is what a run comes to."""
    wanted = {"engine": "auto", "duration": 0.3, **wanted}
    (found,) = agent.found(target)
    before = traces(found, agent.process.pid)
    (checked,) = check(agent, found, **wanted)["processes"]
    assert traces(found, agent.process.pid) == before
    _, refused = agent.prepare(found, **wanted)
    agent.send("start")
    result = agent.collect()
    (outcome,) = [*refused.values(), *result.outcomes.values()]
    if outcome["status"] == "failed":
        keys = ("status", "stage", "reason", "remedy")
        assert {key: checked[key] for key in keys} == {key: outcome[key] for key in keys}
        return checked
    started = result.started[found["pid"]]
    assert (checked["engine"], checked["sources"]) == (started["engine"], started["sources"]), outcome
    if checked["status"] == "ok":
        assert good(outcome)
    else:
        assert (checked["status"], outcome["status"]) == ("degraded", "degraded"), outcome
        for remedy in filter(None, checked["remedy"].split("; ")):
            assert remedy in outcome["remedy"], (checked, outcome)
    return checked


def texts(checked, about):
    """What is said of a process, or of the host, under one word."""
    return "\n".join(one["text"] for one in checked["findings"] if one["about"] == about)


@pytest.fixture(scope="module")
def plain():
    """A JVM that nothing speaks against."""
    made = Burner(load=0.2)
    yield made
    made.kill()


@pytest.mark.parametrize(
    ("events", "engine", "status"),
    [
        (["cpu"], "auto", "ok"),
        (["cpu", "alloc", "lock", "wall"], "async-profiler", "ok"),
        (["page-faults", "cpu"], "auto", "degraded"),
        (["no:such"], "perf", "failed"),
        (["cpu", "alloc"], "perf", "degraded"),
        (["sched:*"], "auto", "failed"),
    ],
)
def test_a_plain_jvm(agent, plain, events, engine, status):
    checked = agree(agent, plain, events=events, engine=engine)
    assert checked["status"] == status, checked


@pytest.mark.parametrize(
    ("jvm", "wanted", "used", "words"),
    [
        (
            {"options": [NO_ATTACH]},
            {},
            "perf",
            [NO_ATTACH, "stacks may be broken", "PreserveFramePointer", NO_DUMP],
        ),
        ({"options": [NO_ATTACH]}, {"engine": "async-profiler"}, "", [NO_ATTACH, NO_DUMP]),
        (
            {"user": OTHER_USER, "prefix": WITHOUT_PERF_EVENTS},
            {},
            "async-profiler",
            ["perf events", "seccomp"],
        ),
    ],
    ids=["attach disabled", "attach disabled, async-profiler", "perf events filtered"],
)
def test_a_jvm_with_limits(agent, burn, jvm, wanted, used, words):
    checked = agree(agent, burn(load=0.2, **jvm), **wanted)
    assert checked["engine"] == used and checked["status"] != "ok", checked
    said = str(checked)
    assert all(word in said for word in words), checked


def test_into_a_jvm_that_somebody_else_profiles_nothing_is_loaded(agent, burn, tmp_path):
    """perf looks at it from outside, and its own command names what it compiled."""
    theirs = shutil.copy(shipped("async-profiler"), tmp_path / "libquiet.so")
    burner = burn(options=[FRAME_POINTERS])
    pid = burner.outer.pid
    attach.execute(pid, "load", str(theirs), "true", f"start,event=ctimer,file={tmp_path}/out")
    checked = agree(agent, burner)
    assert checked["engine"] == "perf" and "is active in process" in checked["reason"], checked
    assert "stop it first (asprof stop)" in checked["remedy"], checked
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert str(theirs) in maps and "/.hprofiler-" not in maps
    assert "is running" in attach.profiling_status(pid, str(theirs))


def test_a_perf_that_does_not_work(new_agent, plain, tmp_path):
    agent = new_agent(perf=executable(tmp_path / "perf", WRAPPER))
    assert "perf not found for kernel" in agree(agent, plain, engine="perf")["reason"]
    (of_perf,) = [one for one in check(agent, engine="perf")["findings"] if one["about"] == "perf"]
    assert of_perf["severity"] == "error" and of_perf["remedy"]


@pytest.mark.parametrize(
    ("jvm", "wanted", "about", "words"),
    [
        ({"options": ["-XX:-UsePerfData"]}, {}, "jvm", "vendor unknown"),
        ({"options": ["-XX:StartFlightRecording=disk=false"]}, {}, "profiler", "may record in it"),
        ({"jdk": 25}, {"engine": "perf"}, "flags", "will warn on its standard error"),
    ],
    ids=["publishes nothing", "records itself", "warns of agents"],
)
def test_findings_about_a_jvm(agent, burn, tmp_path, jvm, wanted, about, words):
    if about == "profiler":
        jvm = {"options": [*jvm["options"], f"-XX:FlightRecorderOptions=repository={tmp_path}"]}
    (checked,) = check(agent, burn(**{"jdk": 17, **jvm}), **wanted)["processes"]
    assert words in texts(checked, about), checked


def test_capabilities_alone_give_no_names(new_agent, plain):
    agent = new_agent(user=OTHER_USER, rights=["--inh-caps=+perfmon", "--ambient-caps=+perfmon"])
    answer = check(agent, plain, engine="perf")
    assert "the agent has the capabilities CAP_PERFMON" in texts(answer, "user"), answer
    (checked,) = answer["processes"]
    assert checked["status"] == "failed" and "only root can" in checked["reason"], checked


@pytest.mark.parametrize(
    ("limits", "words", "severity"),
    [
        ({"agent_cpu": 0.5}, "takes 0.5 processors on average and ", "ok"),
        ({"agent_cpu": 999}, "takes 999 processors", "warning"),
    ],
)
def test_the_limits_of_the_agent(agent, limits, words, severity):
    (finding,) = [one for one in check(agent, **limits)["findings"] if one["about"] == "agent"]
    assert words in finding["text"] and finding["severity"] == severity, finding
