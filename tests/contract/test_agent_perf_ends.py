"""Ends of perf: with its agent, by its time limit, or not at all; and JVMs that stand still meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import WORK
from tests.contract.conftest import OTHER_USER, as_user, executable, perf_at_work, perf_of, still
from tests.contract.test_agent_perf import FRAME_POINTERS
from tests.lab import procs
from tests.needed import lacking

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: perf of other processes"),
]


def family_of(agent):
    """The perf at work and what it started: what limits its time, and what ends with the agent."""
    perf = perf_at_work(agent)
    return [one for pid in procs.family(perf.pid) if (one := procs.Identity.of(pid))]


def wait_for_end(family):
    procs.wait_for("the end of all of them", lambda: not any(one.alive() for one in family))


@pytest.mark.parametrize("how", ["busy", "idle", "stopped"])
def test_perf_ends_with_its_agent(agent, burn, how):
    """Also if the JVM is idle, so that perf has nothing to write, and if perf itself is stopped."""
    burner = burn(load=0.0 if how == "idle" else 1.0)
    agent.begin(burner, engine="perf", duration=60)
    family = family_of(agent)
    if how == "stopped":
        family[0].suspend()
    agent.process.kill()
    wait_for_end(family)
    assert burner.outer.alive()


def test_a_perf_with_capabilities_ends_with_its_agent(new_agent, tmp_path):
    """The kernel does not end it with the agent. It has nothing to write, and sees no end of its output."""
    setcap = shutil.which("setcap") or lacking("setcap is not installed (libcap2-bin)")
    perf = Path(shutil.copy(Path(shutil.which("perf")).resolve(), tmp_path / "perf"))
    subprocess.run([setcap, "cap_perfmon,cap_sys_ptrace+ep", str(perf)], check=True)
    agent = new_agent(user=OTHER_USER, perf=perf)
    idle = subprocess.Popen([*as_user(OTHER_USER), "sleep", "600"])
    try:
        procs.wait_for("the program", lambda: procs.name(idle.pid) == "sleep")
        agent.begin(*agent.find(native=True, kind="pids", pids=[idle.pid])["processes"], engine="perf")
        family = family_of(agent)
        agent.kill()
        wait_for_end(family)
    finally:
        idle.kill()
        idle.wait()


def test_perf_limits_its_own_time(agent, burn):
    agent.begin(burn(), engine="perf", duration=7)
    words = Path(f"/proc/{perf_at_work(agent).pid}/cmdline").read_bytes().split(b"\0")
    assert [Path(word.decode()).name for word in words[-4:-1]] == ["timeout", "37", "cat"]
    agent.stop()
    assert perf_of(agent) is None


def test_a_killed_perf_is_reported_and_leaves_nothing(agent, burn):
    """What it had not written yet is lost, which may be all."""
    burner = burn(options=[FRAME_POINTERS])
    agent.begin(burner, engine="perf", duration=60)
    family = family_of(agent)
    os.kill(family[0].pid, signal.SIGKILL)
    result = agent.stop()
    wait_for_end(family)
    outcome = result.of(burner).outcome
    assert outcome["status"] in ("degraded", "failed") and "perf was killed by signal 9" in outcome["reason"]
    assert burner.outer.alive() and result.left == []


NO_PERF = """#!/bin/sh
case "$*" in *" -p "*) exec sleep 600;; *) exec {perf} "$@";; esac
"""


def test_a_perf_that_does_not_begin_is_given_up_and_ended(new_agent, burn, tmp_path):
    real = shutil.copy(Path(shutil.which("perf")).resolve(), tmp_path / "real")
    agent = new_agent(perf=executable(tmp_path / "perf", NO_PERF.format(perf=real)))
    ready, refused = agent.prepare(burn(options=[FRAME_POINTERS]), engine="perf")
    assert ready, refused
    agent.send("start")
    outcome = agent.expect("outcome")
    assert "perf did not start within" in outcome["reason"] and "processors" in outcome["remedy"], outcome
    procs.wait_for("perf's end", lambda: not procs.children(agent.process.pid))
    assert agent.expect("recording")["processes"] == 0


def test_a_perf_that_does_not_end_keeps_what_it_has_written(agent, burn):
    """It writes once a buffer is half full: the last seconds may be in the kernel yet."""

    def written(process):
        return int(re.search(r"wchar: (\d+)", Path(f"/proc/{process.pid}/io").read_text())[1])

    burner = burn(options=[FRAME_POINTERS])
    agent.begin(burner, engine="perf", duration=300)
    perf = perf_at_work(agent)
    before = written(perf)
    procs.wait_for("many samples", lambda: written(perf) - before > 200_000)
    perf.suspend()
    done = agent.stop().of(burner)
    assert "perf did not end and was killed" in done.outcome["reason"], done.outcome
    assert done.outcome["status"] == "degraded" and done.share("Burner", among=("[burner]",)) > 0.9
    assert done.head()["samples"]["taken"] > 0 and not procs.children(agent.process.pid)


@contextmanager
def stopped(burner):
    burner.outer.suspend()
    yield
    burner.outer.kill(signal.SIGCONT)


@pytest.mark.parametrize("how", ["is stopped (state T)", "did not open /tmp/.java_pid"])
def test_a_jvm_that_stands_still_at_the_end_has_samples_without_names(agent, burn, how):
    """In the second case it would open its socket, but its thread for signals is held."""
    burner = burn(options=[FRAME_POINTERS])
    agent.begin(burner, engine="perf", duration=60)
    burner.burn(WORK)
    with stopped(burner) if "stopped" in how else still(burner.outer.pid, "Signal Dispatch"):
        done = agent.stop().of(burner)
    samples = done.head()["samples"]
    assert done.outcome["status"] == "degraded"
    assert f"Java methods have no names: process {done.pid} {how}" in done.outcome["reason"], done.outcome
    assert samples["taken"] > 0.5 * samples["expected"], samples
    assert sum(count for _, count in done.stacks()) == samples["taken"]
