"""What the agent will not do to a JVM, each time with a reason and a remedy, and nothing done before."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import good, running, shipped
from tests.contract.conftest import a_library, as_user, is_profiled
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")

NO_ATTACH = "-XX:+DisableAttachMechanism"


@pytest.mark.parametrize("where", ["command line", "environment", "file of arguments", "flags file"])
def test_attach_is_disabled(agent, burn, tmp_path, where):
    arguments, flags = tmp_path / "arguments", tmp_path / "flags"
    arguments.write_text(f"# options\n'{NO_ATTACH}'\n")
    flags.write_text("+DisableAttachMechanism\n")
    options = {
        "command line": [NO_ATTACH],
        "environment": [],
        "file of arguments": [f"@{arguments}"],
        "flags file": [f"-XX:Flags={flags}"],
    }
    env = {"JAVA_TOOL_OPTIONS": NO_ATTACH} if where == "environment" else {}
    burner, other = burn(env=env, options=options[where]), burn(load=0.2)
    ready, refused = agent.prepare(burner, other)
    outcome = refused[burner.outer.pid]
    assert ready == [other.outer.pid], "one that refuses does not hold up the others"
    assert NO_ATTACH in outcome["reason"] and "restart" in outcome["remedy"]
    burner.finish()
    assert "Full thread dump" not in "\n".join(burner.other_lines)


def test_dynamic_loading_is_disabled(agent, burn):
    burner = burn(jdk=25, options=["-XX:-EnableDynamicAgentLoading"])
    assert "EnableDynamicAgentLoading" in agent.refuse(burner)["reason"]


def test_a_stopped_jvm(agent, burn):
    burner = burn()
    burner.outer.suspend()
    outcome = agent.refuse(burner)
    assert "is stopped" in outcome["reason"] and "kill -CONT" in outcome["remedy"]
    burner.outer.kill(signal.SIGCONT)
    assert burner.counters().nanos > 0


def test_a_process_that_is_not_a_jvm_is_never_signalled(agent):
    with running("sleep", "600") as sleeper:
        answer = agent.find(kind="pids", pids=[sleeper.pid])
        ignored = {"pid": sleeper.pid, "reason": "not a JVM (sleep)", "doubtful": False}
        assert (answer["processes"], answer["ignored"]) == ([], [ignored])
        identity = procs.Identity.of(sleeper.pid)
        process = {"pid": sleeper.pid, "start_time": identity.start_time, "label": "", "labels": {}}
        assert "is not a JVM" in agent.refuse(process)["reason"]
        assert identity.alive()


def test_a_pid_that_means_another_process_now(agent, untouched):
    (process,) = agent.found(untouched)
    outcome = agent.refuse({**process, "start_time": process["start_time"] - 1})
    assert "now belongs to another" in outcome["reason"]


def test_somebody_elses_profiler_is_at_work(agent, burn, tmp_path):
    burner, theirs = burn(), tmp_path / "libasyncProfiler.so"
    shutil.copy(shipped("async-profiler"), theirs)
    attach.execute(burner.outer.pid, "load", str(theirs), "true", f"start,event=ctimer,file={tmp_path}/out")
    outcome = agent.refuse(burner)
    assert str(theirs) in outcome["reason"] and "stop it first" in outcome["remedy"]
    assert is_profiled(burner.outer.pid)
    attach.execute(burner.outer.pid, "load", str(theirs), "true", "stop")
    agent.stop()
    assert good(agent.record(burner).outcome)


@pytest.mark.parametrize(
    ("command", "refused"), [("start,event=ctimer", True), ("start,event=wall", True), ("version", False)]
)
def test_another_profiler_whose_file_is_deleted(agent, burn, command, refused):
    """Its interface for Java deletes the file. It cannot be asked: anybody could put another one there."""
    burner, theirs = burn(), Path(f"/tmp/libasyncProfiler-theirs-{os.getpid()}.so")
    shutil.copy(shipped("async-profiler"), theirs)
    try:
        attach.execute(burner.outer.pid, "load", str(theirs), "true", command)
    finally:
        theirs.unlink()
    if refused:
        reason = agent.refuse(burner)["reason"]
        assert "cannot be asked" in reason and str(theirs) in reason
    else:
        assert good(agent.record(burner).outcome)


def test_another_session_is_at_work(new_agent, burn):
    burner, first, second = burn(), new_agent(), new_agent()
    first.begin(burner, duration=60)
    # perf could not follow its stacks, so nothing else records it.
    outcome = second.refuse(burner, engine="auto")
    assert outcome["code"] == "other-session" and "another hprofiler session" in outcome["reason"], outcome
    parameters = outcome["parameters"]
    assert (parameters["agent"], parameters["frame_pointers"]) == (first.process.pid, 0)
    assert 0 < parameters["until"] - time.time() <= 60
    assert second.bye() == 0
    assert good(first.stop().of(burner).outcome)


def test_another_vendors_profiler(agent, burn, tmp_path):
    theirs = tmp_path / "libyjpagent.so"
    shutil.copy(a_library(), theirs)
    burner = burn(env={"LD_PRELOAD": str(theirs)})
    outcome = agent.refuse(burner)
    assert "YourKit" in outcome["reason"] and "restart" in outcome["remedy"]
    assert not attach.profiler_libraries(burner.outer.pid)


READER = 23456
"""A user who wants root to read for him."""


@pytest.fixture
def pretend_jvm(tmp_path):
    """Starts what maps a libjvm.so and has a file of arguments on its command line; all are ended."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    (tmp_path / "lib").mkdir(mode=0o755)
    shutil.copy(a_library(), tmp_path / "lib" / "libjvm.so")
    started = []

    def start(file):
        command = [*as_user(READER), "env", f"LD_PRELOAD={tmp_path}/lib/libjvm.so", "cat", "-", f"@{file}"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path))
        maps = Path(f"/proc/{started[-1].pid}/maps")
        procs.wait_for("the library", lambda: "libjvm.so" in maps.read_text())
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answers_about(agent, pid):
    """All that the agent says of a process, by the labels of a selector that wants everything."""
    labels = {name: {"from": name, "regex": "(?s)(.*)"} for name in ("arguments", "options", "main_class")}
    found = agent.find(kind="rule", any=[{}], labels=labels, process_label="{options}")["processes"]
    return [process for process in (*found, *agent.list()) if process["pid"] == pid]


@pytest.mark.parametrize("way", ["absolute", "relative", "link", "proc"])
def test_root_reads_no_file_that_the_user_may_not_read(agent, pretend_jvm, tmp_path, way):
    secret = tmp_path / "root-only"
    secret.write_text('-Dx=first hunter2 third\nJAVA_VERSION="hunter2"\n')
    secret.chmod(0o600)
    for link in ("link", "release"):
        (tmp_path / link).symlink_to(secret)
    names = {
        "absolute": secret,
        "relative": secret.name,
        "link": tmp_path / "link",
        "proc": "/proc/self/environ",
    }
    processes = answers_about(agent, pretend_jvm(names[way]))
    assert len(processes) == 2
    assert "hunter2" not in json.dumps(processes) and "PATH" not in json.dumps(processes)
    assert {process["main_class"] for process in processes} == {""}


def test_root_reads_a_file_that_the_user_may_read(agent, pretend_jvm, tmp_path):
    own = tmp_path / "arguments"
    own.write_text("-Dx=first org.example.Main third")
    own.chmod(0o600)
    os.chown(own, READER, READER)
    (tmp_path / "link").symlink_to("arguments")
    answers = answers_about(agent, pretend_jvm("link"))
    assert {process["main_class"] for process in answers} == {"org.example.Main"}


def test_a_file_that_hangs_does_not_hold_up_the_search(agent, pretend_jvm, tmp_path, burn):
    os.mkfifo(tmp_path / "pipe")
    burner = burn(jdk=17)
    assert {process["main_class"] for process in answers_about(agent, pretend_jvm(tmp_path / "pipe"))} == {""}
    assert agent.found(burner)[0]["jvm"]["version"].startswith("17.")
