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
from tests.contract.test_agent_perf import FRAME_POINTERS, NO_ATTACH
from tests.contract.test_agent_perf_refuses import WRAPPER
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

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
def test_of_a_plain_jvm(agent, plain, events, engine, status):
    checked = agree(agent, plain, events=events, engine=engine)
    assert checked["status"] == status, checked


@pytest.mark.parametrize(("engine", "used"), [("auto", "perf"), ("async-profiler", "")])
def test_where_attach_is_disabled(agent, burn, engine, used):
    checked = agree(agent, burn(options=[NO_ATTACH], load=0.2), engine=engine)
    assert checked["engine"] == used and NO_ATTACH in "".join(one["text"] for one in checked["findings"])
    if used == "perf":
        assert "stacks may be broken" in checked["reason"], checked
        assert "PreserveFramePointer" in checked["remedy"], checked
        assert "or use async-profiler" not in checked["remedy"], checked


def test_of_a_jvm_whose_perf_events_are_filtered(agent, burn):
    checked = agree(agent, burn(user=OTHER_USER, prefix=WITHOUT_PERF_EVENTS, load=0.2))
    assert (checked["status"], checked["sources"]) == ("degraded", {"cpu": "ctimer"})
    assert texts(checked, "seccomp")


def test_into_a_jvm_that_somebody_else_profiles_nothing_is_loaded(agent, burn, tmp_path):
    """perf looks at it from outside, and its own command names what it compiled."""
    theirs = shutil.copy(shipped("async-profiler"), tmp_path / "libquiet.so")
    burner = burn(options=[FRAME_POINTERS])
    pid = burner.outer.pid
    attach.execute(pid, "load", str(theirs), "true", f"start,event=ctimer,file={tmp_path}/out")
    checked = agree(agent, burner)
    assert checked["engine"] == "perf", checked
    assert "is active in process" in checked["reason"], checked
    assert "hprofiler loads no library" in checked["reason"], checked
    assert "stop it first (asprof stop)" in checked["remedy"], checked
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert str(theirs) in maps and "/.hprofiler-" not in maps
    assert "is running" in attach.profiling_status(pid, str(theirs))


def test_of_a_profiler_that_is_known_to_crash_it(agent, burn):
    versions = {"async-profiler": "3.0"}
    checked = agree(agent, burn(jdk=25), versions=versions, engine="async-profiler")
    assert "known to crash JDK 25" in checked["reason"] and checked["remedy"]


def test_where_perf_is_no_use(new_agent, plain, tmp_path):
    agent = new_agent(perf=executable(tmp_path / "perf", WRAPPER))
    assert "perf not found for kernel" in agree(agent, plain, engine="perf")["reason"]
    (of_perf,) = [one for one in check(agent, engine="perf")["findings"] if one["about"] == "perf"]
    assert of_perf["severity"] == "error" and of_perf["remedy"]


def test_of_the_host_and_the_jvm(agent, plain):
    checked = check(agent, plain)
    about = {finding["about"] for finding in checked["findings"]}
    assert {"user", "kernel", "perf", "load", "memory", "folder"} <= about
    jvm = texts(checked["processes"][0], "jvm")
    assert "JDK" in jvm and "threads" in jvm


@pytest.mark.parametrize(
    ("options", "about", "words"),
    [
        (["-XX:-UsePerfData"], "jvm", "vendor unknown"),
        (["-XX:StartFlightRecording=disk=false"], "profiler", "may record in it"),
    ],
    ids=["publishes nothing", "records itself"],
)
def test_of_what_a_jvm_was_started_with(agent, burn, tmp_path, options, about, words):
    if about == "profiler":
        options = [*options, f"-XX:FlightRecorderOptions=repository={tmp_path}"]
    (checked,) = check(agent, burn(jdk=17, options=options))["processes"]
    assert words in texts(checked, about), checked


@pytest.mark.parametrize(("options", "warns"), [([], True), ([NO_ATTACH], False)])
def test_that_a_jvm_warns_only_of_what_is_loaded(agent, burn, options, warns):
    (checked,) = check(agent, burn(jdk=25, options=options), engine="perf")["processes"]
    assert ("will warn on its standard error" in texts(checked, "flags")) == warns, checked


def test_by_capabilities_alone_nothing_has_a_name(new_agent, plain):
    """The kernel would have it sampled: that it would not is no reason."""
    agent = new_agent(user=OTHER_USER, rights=["--inh-caps=+perfmon", "--ambient-caps=+perfmon"])
    told = check(agent, plain, engine="perf")
    assert "the agent has the capabilities CAP_PERFMON" in texts(told, "user"), told
    (checked,) = told["processes"]
    assert checked["status"] == "failed" and "only root can" in checked["reason"], checked


@pytest.mark.parametrize(
    ("versions", "words"),
    [({"async-profiler": "4.4"}, "async-profiler 4.4 is not known"), ({}, "which release")],
    ids=["unknown", "unnamed"],
)
def test_of_the_release_that_would_be_loaded(agent, plain, versions, words):
    (checked,) = check(agent, plain, versions=versions)["processes"]
    assert words in texts(checked, "profiler"), checked


@pytest.mark.parametrize(
    ("limits", "words", "severity"),
    [
        ({}, "takes 1 processor on average", "ok"),
        ({"agent_cpu": 0.5}, "takes 0.5 processors on average and ", "ok"),
        ({"agent_cpu": 999}, "takes 999 processors", "warning"),
    ],
    ids=["usual", "given", "more than there are"],
)
def test_the_limits_of_the_agent(agent, limits, words, severity):
    (finding,) = [one for one in check(agent, **limits)["findings"] if one["about"] == "agent"]
    assert words in finding["text"] and finding["severity"] == severity, finding


def test_of_a_root_that_has_not_all_rights(new_agent):
    agent = new_agent(by=["setpriv", "--bounding-set", "-sys_ptrace,-kill"])
    assert "without CAP_KILL, CAP_SYS_PTRACE" in texts(check(agent), "user")
