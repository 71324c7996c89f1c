"""What the agent will not do to a JVM, each time with a reason and a remedy, and nothing done before."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import good
from tests.contract.asking import chosen, sampling
from tests.contract.conftest import OTHER_USER, as_user, found, is_profiled
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users")


def refusal(agent, library, *processes):
    """The only outcome of preparing one process that is refused."""
    ready, outcomes = agent.prepare(library, processes)
    assert ready == []
    (outcome,) = outcomes.values()
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    return outcome


@pytest.mark.parametrize("where", ["command line", "environment", "file of arguments", "flags file"])
def test_attach_is_disabled(agent, library, burn, tmp_path, where):
    option = "-XX:+DisableAttachMechanism"
    (tmp_path / "arguments").write_text(f"# options\n'{option}'\n")
    (tmp_path / "flags").write_text("+DisableAttachMechanism\n")
    burner = burn(
        env={"JAVA_TOOL_OPTIONS": option} if where == "environment" else {},
        options={
            "command line": [option],
            "environment": [],
            "file of arguments": [f"@{tmp_path / 'arguments'}"],
            "flags file": [f"-XX:Flags={tmp_path / 'flags'}"],
        }[where],
    )
    outcome = refusal(agent, library, *found(agent, burner))
    assert option in outcome["reason"] and "restart" in outcome["remedy"]
    burner.finish()
    assert "Full thread dump" not in "\n".join(burner.other_lines)


def test_dynamic_loading_is_disabled(agent, library, burn):
    burner = burn(jdk=25, options=["-XX:-EnableDynamicAgentLoading"])
    assert "EnableDynamicAgentLoading" in refusal(agent, library, *found(agent, burner))["reason"]


def test_a_stopped_jvm(agent, library, burn):
    burner = burn()
    burner.outer.suspend()
    outcome = refusal(agent, library, *found(agent, burner))
    assert "is stopped" in outcome["reason"] and "kill -CONT" in outcome["remedy"]
    burner.outer.kill(signal.SIGCONT)
    assert burner.counters().nanos > 0


def test_what_is_no_jvm_is_never_signalled(agent, library):
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        answer = agent.find(kind="pids", pids=[sleeper.pid])
        assert answer["processes"] == []
        ignored = {"pid": sleeper.pid, "reason": "not a JVM (sleep)", "doubtful": False}
        assert answer["ignored"] == [ignored]
        identity = procs.Identity.of(sleeper.pid)
        process = {"pid": sleeper.pid, "start_time": identity.start_time, "label": "", "labels": {}}
        assert "is not a JVM" in refusal(agent, library, process)["reason"]
        assert identity.alive()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_pid_that_means_another_process_now(agent, library, burn):
    (process,) = found(agent, burn())
    outcome = refusal(agent, library, {**process, "start_time": process["start_time"] - 1})
    assert "now belongs to another" in outcome["reason"]


def test_somebody_elses_profiler_is_at_work(agent, library, library_file, burn, tmp_path):
    theirs = tmp_path / "libasyncProfiler.so"
    shutil.copy(library_file, theirs)
    burner = burn()
    attach.execute(burner.outer.pid, "load", str(theirs), "true", f"start,event=ctimer,file={tmp_path}/out")
    outcome = refusal(agent, library, *found(agent, burner))
    assert str(theirs) in outcome["reason"] and "stop it first" in outcome["remedy"]
    assert is_profiled(burner.outer.pid)
    attach.execute(burner.outer.pid, "load", str(theirs), "true", "stop")
    ready, refused = agent_again(agent, library, burner)
    assert ready == [burner.outer.pid], refused


@pytest.mark.parametrize("event", ["ctimer", "itimer", "wall"])
def test_somebody_elses_whose_file_is_gone_and_that_samples(agent, library, library_file, burn, event):
    """It cannot be asked: anybody could put another one in `/tmp`. That it was stopped is not to be seen."""
    burner = burn()
    theirs = loaded_and_gone(burner, library_file, f"start,event={event}")
    foreseen = told_by_check(agent, library, burner)
    reason = refusal(agent, library, *found(agent, burner))["reason"]
    assert "cannot be asked" in reason and str(theirs) in reason
    assert foreseen == reason


def test_somebody_elses_whose_file_is_gone_and_that_never_sampled(agent, library, library_file, burn):
    burner = burn()
    loaded_and_gone(burner, library_file, "version")
    assert told_by_check(agent, library, burner) == ""
    ready, refused = agent.prepare(library, found(agent, burner))
    assert ready == [burner.outer.pid], refused
    agent.start()
    assert good(agent.collect().outcomes[burner.outer.pid])


def loaded_and_gone(burner, library_file, command):
    """As the profiler's own interface for Java has it: its file is deleted once it is loaded."""
    theirs = Path(f"/tmp/libasyncProfiler-theirs-{os.getpid()}.so")
    shutil.copy(library_file, theirs)
    try:
        attach.execute(burner.outer.pid, "load", str(theirs), "true", command)
    finally:
        theirs.unlink()
    return theirs


def told_by_check(agent, library, burner):
    agent.send(
        "check",
        sampling=sampling(engine="async-profiler"),
        blobs={"async-profiler": library},
        processes=chosen(found(agent, burner)),
    )
    (told,) = agent.expect("checked")["processes"]
    return told["reason"]


def agent_again(agent, library, burner):
    """Prepare after a refusal: the first preparing is over when it is started and done."""
    agent.send("start")
    assert agent.collect().recording == 0
    return agent.prepare(library, found(agent, burner))


def test_another_session_is_at_work(start_agent, agent, library, library_file, burn):
    burner = burn()
    agent.prepare(library, found(agent, burner), duration=60)
    agent.start()
    second = start_agent()
    second.hello()
    outcome = refusal(second, second.put(library_file.read_bytes()), *found(second, burner))
    assert "another hprofiler session" in outcome["reason"]
    assert second.bye() == 0
    agent.send("stop")
    assert good(agent.collect().outcomes[burner.outer.pid])


def test_another_vendors_profiler(agent, library, burn, tmp_path):
    mapped = Path("/proc/self/maps").read_text().split()
    some = next(path for path in mapped if path.endswith(".so.6") and "/libm" in path)
    fake = tmp_path / "libyjpagent.so"
    shutil.copy(some, fake)
    burner = burn(env={"LD_PRELOAD": str(fake)})
    outcome = refusal(agent, library, *found(agent, burner))
    assert "YourKit" in outcome["reason"] and "restart" in outcome["remedy"]
    assert not attach.profiler_libraries(burner.outer.pid)


def test_a_jvm_of_another_user_without_being_root(start_agent, library_file, burn):
    burner = burn(user=OTHER_USER)
    agent = start_agent(user=OTHER_USER + 1)
    agent.hello()
    outcome = refusal(agent, agent.put(library_file.read_bytes()), *found(agent, burner))
    assert f"user {OTHER_USER}" in outcome["reason"] and "--become sudo" in outcome["remedy"]


def test_one_that_refuses_does_not_hold_up_the_others(agent, library, burn):
    good, bad = burn(), burn(options=["-XX:+DisableAttachMechanism"])
    ready, refused = agent.prepare(library, found(agent, good, bad), duration=0.5)
    assert (ready, list(refused)) == ([good.outer.pid], [bad.outer.pid])
    agent.start()
    assert list(agent.collect().outcomes) == [good.outer.pid]


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("events", ["cpu,file=/etc/passwd"]),
        ("events", [""]),
        ("events", []),
        ("events", ["cpu", "alloc", "cpu"]),
        ("events", ["itimer"]),
        ("alloc_interval", 0),
        ("alloc_interval", 4095),
        ("alloc_interval", (1 << 40) + 1),
        ("wall_interval", 0),
        ("wall_interval", 999_999),
        ("wall_interval", (1 << 64) - 1),
        ("lock_threshold", (1 << 40) + 1),
        ("frequency", 0),
        ("duration", -1),
        ("engine", "magic"),
    ],
)
def test_a_sampling_that_makes_no_sense(agent, library, untouched, member, value):
    ready, refused = agent.prepare(library, found(agent, untouched), **{member: value})
    assert ready == []
    outcome = refused[untouched.outer.pid]
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    if member.endswith(("interval", "threshold")):
        assert outcome["reason"].startswith(str(value)) and outcome["remedy"], outcome
    assert not attach.profiler_libraries(untouched.outer.pid)


@pytest.fixture(scope="module")
def untouched():
    """A JVM in which nothing is ever loaded."""
    made = Burner(load=0.1)
    yield made
    made.kill()


@pytest.fixture
def pretend_jvm(tmp_path):
    """Starts what maps a libjvm.so and has a file of arguments on its command line; all are ended."""
    open_folder(tmp_path)
    mapped = Path("/proc/self/maps").read_text().split()
    library = next(path for path in mapped if path.endswith(".so.6") and "/libm" in path)
    (tmp_path / "lib").mkdir(mode=0o755)
    shutil.copy(library, tmp_path / "lib" / "libjvm.so")
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


READER = 23456
"""A user who wants root to read for him."""


def open_folder(folder):
    """Let every user through to a folder of the test."""
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(0o755)


def told(agent, pid):
    """All that the agent says of a process, by the labels of a selector that wants everything."""
    labels = {name: {"from": name, "regex": "(?s)(.*)"} for name in ("arguments", "options", "main_class")}
    found_ = agent.find(kind="rule", any=[{}], labels=labels, process_label="{options}")["processes"]
    agent.send("list")
    listed = agent.expect("processes")["processes"]
    return [process for process in (*found_, *listed) if process["pid"] == pid]


@pytest.mark.parametrize("way", ["absolute", "relative", "link", "proc"])
def test_root_reads_no_file_for_a_user_who_may_not(agent, pretend_jvm, tmp_path, way):
    secret = tmp_path / "root-only"
    secret.write_text("-Dx=first hunter2 third")
    secret.chmod(0o600)
    (tmp_path / "link").symlink_to(secret)
    names = {
        "absolute": secret,
        "relative": "root-only",
        "link": tmp_path / "link",
        "proc": "/proc/self/environ",
    }
    (tmp_path / "release").symlink_to(secret)
    secret.write_text(secret.read_text() + '\nJAVA_VERSION="hunter2"\n')
    pid = pretend_jvm(names[way])
    processes = told(agent, pid)
    assert len(processes) == 2
    assert "hunter2" not in json.dumps(processes) and "PATH" not in json.dumps(processes)
    assert {process["main_class"] for process in processes} == {""}


def test_root_reads_a_file_for_a_user_who_may(agent, pretend_jvm, tmp_path):
    own = tmp_path / "arguments"
    own.write_text("-Dx=first org.example.Main third")
    own.chmod(0o600)
    os.chown(own, READER, READER)
    (tmp_path / "link").symlink_to("arguments")
    assert {process["main_class"] for process in told(agent, pretend_jvm("link"))} == {"org.example.Main"}


def test_a_file_that_hangs_does_not_hold_up_the_search(agent, pretend_jvm, tmp_path, burn):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    burner = burn(jdk=17)
    assert {process["main_class"] for process in told(agent, pretend_jvm(pipe))} == {""}
    assert found(agent, burner)[0]["jvm"]["version"].startswith("17.")
