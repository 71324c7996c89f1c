"""Requests and events: greeting, finding, storing, and what is refused."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent, ready, running
from tests.contract.conftest import OTHER_USER, as_user, built_agent

LIMIT = 23 << 18  # 5.75 MiB


def test_the_greeting_describes_the_host(new_agent):
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})
    try:
        hello = new_agent().greeting
    finally:
        os.sched_setaffinity(0, usable)
    assert hello["protocol"] == 3
    host = hello["host"]
    assert host["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host["pid_namespace"] == str(Path("/proc/self/ns/pid").readlink())
    assert (host["arch"], host["kernel"]) == (platform.machine(), platform.release())
    assert (host["uid"], host["name"]) == (os.geteuid(), platform.node())
    assert host["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN"), "the host's, not those that the agent may use"
    assert host["memory_bytes"] > 1 << 28


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_binaries_are_static_and_small(arch):
    binary = built_agent(arch)
    assert binary.stat().st_size < LIMIT
    described = subprocess.run(["readelf", "-ld", binary], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in described and "NEEDED" not in described


@pytest.mark.parametrize(
    ("raw", "reason", "code"),
    [
        (b'{"type":"list"}\n', "starts with one hello", "bad-request"),
        (b'{"type":"hello","protocol":9,"lease_seconds":5}\n', "protocol 3, not 9", "version-mismatch"),
        (b'{"type":"hello","protocol":3,"lease_seconds":-5}\n', "lease", "bad-request"),
    ],
)
def test_bad_beginnings(private, raw, reason, code):
    agent = Agent([private])
    try:
        agent.send_raw(raw)
        error = agent.expect("error")
        assert reason in error["reason"] and error["code"] == code
    finally:
        agent.end()


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"kind": "hello", "protocol": 3, "lease_seconds": 5}, "one hello"),
        ({"kind": "start"}, "before prepare"),
        ({"kind": "find", "selector": {"kind": "regex", "regex": "("}}, "cannot be used"),
        ({"kind": "find", "selector": {"kind": "rule", "any": [{"colour": "red"}]}}, "colour"),
        ({"kind": "find", "selector": None}, "neither a selector nor containers"),
        ({"kind": "find", "selector": None, "containers": ["../x"]}, "is not a container id"),
        ({"kind": "put", "name": "x", "sha256": "0" * 64, "size": 0}, "damaged"),
        ({"kind": "dance"}, "understood"),
    ],
)
def test_bad_requests(agent, request_, reason):
    agent.send(**request_)
    assert reason in agent.error()


def test_a_library_that_was_never_sent(agent):
    agent.send("prepare", **agent.request([], {}), blobs={"async-profiler": "0" * 64})
    assert "0" * 64 in agent.error()


def test_stored_files_are_there_for_the_next_session(new_agent, private):
    agent = new_agent()
    assert agent.greeting["blobs"] == []
    digest = agent.put(b"some bytes")
    assert agent.bye() == 0
    stored = private.parent / digest
    assert stored.read_bytes() == b"some bytes"
    assert stored.stat().st_mode & 0o077 == 0
    assert new_agent().greeting["blobs"] == [digest]


def test_a_stored_file_that_was_changed_is_not_used(agent, private):
    stored = private.parent / agent.put(b"some bytes")
    stored.chmod(0o600)
    stored.write_bytes(b"other bytes")
    agent.send("prepare", **agent.request([], {}), blobs={"perfmap": stored.name})
    assert "changed" in agent.error()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of another user")
def test_files_that_root_stores_belong_to_the_user(agent, private):
    os.chown(private.parent, OTHER_USER, OTHER_USER)
    assert (private.parent / agent.put(b"some bytes")).stat().st_uid == OTHER_USER


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: folders of another user")
def test_an_unsafe_private_folder_is_passed_over(agent_binary, tmp_path):
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    binary, home = shutil.copy(agent_binary, tmp_path / "agent"), tmp_path / "paths"
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    traps = [Path(base) / f".hprofiler-{OTHER_USER}" for base in ("/tmp", "/var/tmp")]
    traps[0].symlink_to(home)
    traps[1].mkdir(mode=0o777)
    kept = Path(f"/dev/shm/.hprofiler-{OTHER_USER}")
    agent = Agent([*as_user(OTHER_USER), binary], {"HOME": str(home)})
    try:
        agent.hello()
        (home / ".cache").mkdir()
        os.chown(home / ".cache", OTHER_USER, OTHER_USER)
        assert (kept / agent.put(b"some bytes")).exists()
        agent.clean(keeping=False)
        assert not kept.exists()
    finally:
        agent.end()
        traps[0].unlink()
        traps[1].rmdir()


def test_list_masks_secrets_and_leaves_the_session_out(agent):
    with ready(["sh", "-c", "echo ready; cat; exit", "-Dapi.token=hunter2", "x"]) as process:
        listed = {one["pid"]: one for one in agent.list()}
        assert listed[process.pid]["command"] == "sh -c echo ready; cat; exit -Dapi.token=*** x"
        assert listed[process.pid]["jvm"] is None
        assert os.getpid() not in listed and agent.process.pid not in listed


def test_the_coordinators_own_processes_match_only_if_they_are_jvms(new_agent, untouched):
    host = new_agent().greeting["host"]
    here = {"boot_id": host["boot_id"], "pid_namespace": host["pid_namespace"]}
    jvm = untouched.outer.pid
    with running("sleep", "600.25") as sleeper:
        pids = [sleeper.pid, jvm]
        for exclude, expected in [
            ({**here, "pids": pids}, {jvm}),
            ({**here, "boot_id": "another machine", "pids": pids}, set(pids)),
            ({**here, "pid_namespace": "pid:[1]", "pids": pids}, set(pids)),
        ]:
            answer = new_agent(**exclude).find(True, kind="pids", pids=pids)
            assert {one["pid"] for one in answer["processes"]} == expected
            assert {one["pid"] for one in answer["ignored"]} == set(pids) - expected


def test_processes_that_are_no_jvms(agent, untouched):
    """They match where they are named by their program, or where `native` asks for them."""
    jvm = untouched.outer.pid
    with running("sleep", "600.25") as sleeper:
        user = next(one["user"] for one in agent.list() if one["pid"] == sleeper.pid)
        for selector, matches in [
            ({"kind": "pids", "pids": [sleeper.pid, jvm]}, False),
            ({"kind": "text", "text": "600.25"}, False),
            ({"kind": "rule", "any": [{"program": ["sl*p"], "user": [user]}]}, True),
            ({"kind": "rule", "any": [{"user": [user]}]}, False),
        ]:
            for native in (False, True):
                processes = {p["pid"]: p for p in agent.find(native, **selector)["processes"]}
                assert (sleeper.pid in processes) is (matches or native), (selector, native)
        process = processes[sleeper.pid]
        assert (process["jvm"], process["main_class"], process["label"]) == (None, "", "sleep")
        assert process["command"] == "sleep 600.25"
        assert processes[jvm]["jvm"]
        assert 2 not in processes or Path("/proc/2/cmdline").read_bytes(), "it is a kernel thread"


def test_pids_without_a_process(agent, untouched):
    (process,) = agent.found(untouched)
    thread = max(int(task.name) for task in Path(f"/proc/{process['pid']}/task").iterdir())
    pids = [process["pid"], 4194303, agent.process.pid, os.getpid(), thread]
    answer = agent.find(kind="pids", pids=pids)
    assert [p["pid"] for p in answer["processes"]] == [process["pid"]]
    reasons = {ignored["pid"]: ignored["reason"] for ignored in answer["ignored"]}
    assert reasons[4194303] == "there is no such process"
    assert reasons[thread] == f"it is a thread of process {process['pid']}"
    assert "is a part of hprofiler, or started it" in reasons[agent.process.pid]
    assert "is a part of hprofiler, or started it" in reasons[os.getpid()]


def test_processes_that_differ_in_case_are_named(agent, untouched):
    (process,) = agent.found(untouched)
    text = process["main_class"].swapcase()
    for selector in ({"kind": "text", "text": text}, {"kind": "regex", "regex": f"{text}( |$)"}):
        answer = agent.find(**selector)
        assert not answer["processes"]
        reasons = {one["pid"]: one["reason"] for one in answer["ignored"]}
        assert reasons[process["pid"]] == f"{process['label']} differs in case"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: processes of other users")
def test_a_jvm_that_does_not_match_is_mentioned_only_where_it_may_be_meant(new_agent, burn, tmp_path):
    """What a file of arguments that is gone hides may be meant, by who could have read it."""
    file = tmp_path / "arguments"
    file.write_text("-Dnothing=here")
    unread, known = burn(options=[f"@{file}"]).outer.pid, burn().outer.pid
    file.unlink()
    for user, expected in ((None, {unread}), (OTHER_USER, set())):
        ignored = new_agent(user=user).find(kind="text", text="no command line has this")["ignored"]
        doubtful = {one["pid"]: one["reason"] for one in ignored if one["pid"] in (unread, known)}
        assert doubtful.keys() == expected
        assert all("it may match" in reason for reason in doubtful.values()), doubtful
