"""Requests and events: greeting, finding, storing, and what is refused."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent
from tests.contract.cleaning import clean
from tests.contract.conftest import OTHER_USER, as_user, built_agent, found

LIMIT = 4 << 20
SAMPLING = {
    "engine": "auto",
    "events": ["cpu"],
    "frequency": 99,
    "duration": 1,
    "alloc_interval": None,
    "lock_threshold": None,
    "wall_interval": None,
    "keep_raw": False,
}


def error_of(agent: Agent) -> str:
    reason = agent.expect("error")["reason"]
    assert agent.wait() == 1
    return str(reason)


def test_hello_tells_of_host_and_binary(start_agent, private):
    hello = start_agent().hello()
    assert hello["protocol"] == 2
    assert hello["sha256"] == hashlib.sha256(private.read_bytes()).hexdigest()
    host = hello["host"]
    assert host["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host["pid_namespace"] == str(Path("/proc/self/ns/pid").readlink())
    assert (host["arch"], host["kernel"]) == (platform.machine(), platform.release())
    assert (host["uid"], host["name"]) == (os.geteuid(), platform.node())
    assert host["cpus"] >= 1 and host["memory_bytes"] > 1 << 28


def test_the_processors_are_the_hosts_as_the_load_is(start_agent):
    """Not those alone on which the agent may run."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usable)})
    try:
        host = start_agent().hello()["host"]
    finally:
        os.sched_setaffinity(0, usable)
    assert host["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN")


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_binaries_are_static_and_small(arch):
    binary = built_agent(arch)
    assert binary.stat().st_size < LIMIT
    described = subprocess.run(["readelf", "-ld", binary], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in described and "NEEDED" not in described


@pytest.mark.skipif(not shutil.which("qemu-aarch64-static"), reason="needs qemu-aarch64-static")
def test_the_arm64_binary_greets(tmp_path):
    binary = tmp_path / "agent"
    shutil.copy(built_agent("aarch64"), binary)
    agent = Agent(["qemu-aarch64-static", str(binary)])
    try:
        assert agent.hello()["host"]["arch"] == "aarch64"
        assert agent.bye() == 0
    finally:
        agent.end()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"type":"list"}\n', "starts with one hello"),
        (b'{"type":"hello","protocol":9,"lease_seconds":5}\n', "speaks protocol 2, not 9"),
        (b'{"type":"hello","protocol":2,"lease_seconds":-5}\n', "lease"),
        (b"\xff\xfe\n", "understood"),
        (b'{"type":"put","name":"x","sha256":"00","size":99999999999}\n', "64 MiB"),
        (b" " * ((16 << 20) + 2), "longer than 16 MiB"),
    ],
)
def test_bad_beginnings(start_agent, raw, reason):
    agent = start_agent()
    agent.send_raw(raw)
    assert reason in error_of(agent)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"kind": "hello", "protocol": 2, "lease_seconds": 5}, "one hello"),
        ({"kind": "start"}, "before prepare"),
        ({"kind": "find", "selector": {"kind": "regex", "regex": "("}}, "cannot be used"),
        ({"kind": "find", "selector": {"kind": "rule", "any": [{"colour": "red"}]}}, "colour"),
        ({"kind": "put", "name": "x", "sha256": "0" * 64, "size": 0}, "damaged"),
        ({"kind": "dance"}, "understood"),
    ],
)
def test_bad_requests(agent, request_, reason):
    agent.send(**request_)
    assert reason in error_of(agent)


def test_a_library_that_was_never_sent(agent):
    agent.send("prepare", sampling=SAMPLING, blobs={"async-profiler": "0" * 64}, processes=[])
    assert "0" * 64 in error_of(agent)


def test_what_is_stored_is_there_the_next_time(start_agent, private):
    agent = start_agent()
    assert agent.hello()["blobs"] == []
    digest = agent.put(b"some bytes")
    assert agent.bye() == 0
    stored = private.parent / digest
    assert stored.read_bytes() == b"some bytes"
    assert stored.stat().st_mode & 0o077 == 0
    assert start_agent().hello()["blobs"] == [digest]


def test_a_stored_file_that_was_changed_is_not_used(agent, private):
    digest = agent.put(b"some bytes")
    (private.parent / digest).chmod(0o600)
    (private.parent / digest).write_bytes(b"other bytes")
    agent.send("prepare", sampling=SAMPLING, blobs={"perfmap": digest}, processes=[])
    assert "changed" in error_of(agent)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of another user")
def test_what_root_stores_stays_its_users(start_agent, private):
    os.chown(private.parent, OTHER_USER, OTHER_USER)
    agent = start_agent()
    agent.hello()
    assert (private.parent / agent.put(b"some bytes")).stat().st_uid == OTHER_USER


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: folders of another user")
def test_an_unsafe_private_folder_is_passed_over(agent_binary, tmp_path):
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    binary, home = tmp_path / "agent", tmp_path / "paths"
    shutil.copy(agent_binary, binary)
    home.mkdir()
    os.chown(home, OTHER_USER, OTHER_USER)
    traps = [Path(base) / f".hprofiler-{OTHER_USER}" for base in ("/tmp", "/var/tmp")]
    traps[0].symlink_to(home)
    traps[1].mkdir(mode=0o777)
    agent = Agent([*as_user(OTHER_USER), str(binary)], {"HOME": str(home)})
    try:
        agent.hello()
        (home / ".cache").mkdir()
        os.chown(home / ".cache", OTHER_USER, OTHER_USER)
        stored = agent.put(b"some bytes")
        assert (Path("/dev/shm") / f".hprofiler-{OTHER_USER}" / stored).exists()
        clean(agent, kept=False)
        assert not (Path("/dev/shm") / f".hprofiler-{OTHER_USER}").exists()
    finally:
        agent.end()
        traps[0].unlink()
        traps[1].rmdir()


def test_list_masks_secrets_and_leaves_the_session_out(agent):
    command = ["sh", "-c", "cat; exit", "-Dapi.token=hunter2", "x"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            agent.send("list")
            listed = {p["pid"]: p for p in agent.expect("processes")["processes"]}
            assert listed[process.pid]["command"] == "sh -c cat; exit -Dapi.token=*** x"
            assert listed[process.pid]["jvm"] is None
            assert os.getpid() not in listed and agent.process.pid not in listed
        finally:
            assert process.stdin
            process.stdin.close()


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"kind": "text", "text": "token=h"}, False),
        ({"kind": "regex", "regex": "\\{.*:.?h"}, False),
        ({"kind": "rule", "any": [{"options": "token=h"}]}, False),
        ({"kind": "rule", "any": [{"options": "db.password=h"}]}, False),
        ({"kind": "regex", "regex": "token=[*].*secret.:[*]"}, True),
        ({"kind": "rule", "any": [{"options": "db.password=[*]"}]}, True),
    ],
)
def test_no_selector_can_be_used_to_guess_a_secret(agent, burn, tmp_path, selector, matches):
    """What it looks at has the same masks as what is told, that of a file of arguments as well."""
    file = tmp_path / "arguments"
    file.write_text("-Ddb.password=hunter4")
    burner = burn(options=["-Dapi.token=hunter2", '-Djson={"secret":"hunter3"}', f"@{file}"])
    found = [process["pid"] for process in agent.find(**selector)["processes"]]
    assert (burner.outer.pid in found) == matches


def test_the_coordinators_own_processes_never_match(start_agent, burn):
    burner = burn()
    pids, host = [burner.outer.pid], start_agent().hello()["host"]
    here = {"boot_id": host["boot_id"], "pid_namespace": host["pid_namespace"]}
    for exclude, expected in [
        ({**here, "pids": pids}, 0),
        ({**here, "boot_id": "another machine", "pids": pids}, 1),
        ({**here, "pid_namespace": "pid:[1]", "pids": pids}, 1),
    ]:
        agent = start_agent()
        agent.hello(**exclude)
        answer = agent.find(kind="pids", pids=pids)
        assert len(answer["processes"]) == expected
        assert len(answer["ignored"]) == 1 - expected


def test_selectors(agent, burn):
    env = {"CONTAINER": "c_01", "DB_PASSWORD": "hunter2"}
    burner = burn(jdk=17, env=env, options=["-Dapp=orders"], extra=["--id", "task 7"])
    pid = burner.outer.pid
    rule = {
        "kind": "rule",
        "any": [{"main_class": ["Burn*"], "options": "-Dapp=orders", "environment": {"CONTAINER": "^c_"}}],
        "labels": {
            "task": {"from": "arguments", "regex": r"--id task (\d+)"},
            "container": {"from": "environment", "name": "CONTAINER", "regex": "(.*)"},
        },
        "process_label": "task {task}",
    }
    for selector, matches in [
        ({"kind": "text", "text": "-Dapp=orders"}, True),
        ({"kind": "text", "text": "-Dapp=Orders"}, False),
        ({"kind": "regex", "regex": r"-Dapp=\w+ .*Burner"}, True),
        (rule, True),
        ({**rule, "any": [{"main_class": ["Burn"]}]}, False),
        ({**rule, "any": [{"user": ["nobody-here"]}]}, False),
        ({**rule, "any": [{"environment": {"DB_PASSWORD": "^h"}}]}, False),
        ({**rule, "any": [{"environment": {"DB_PASSWORD": "."}}]}, True),
    ]:
        processes = {p["pid"]: p for p in agent.find(**selector)["processes"]}
        assert (pid in processes) is matches, selector
    (process,) = [p for p in agent.find(**rule)["processes"] if p["pid"] == pid]
    assert (process["label"], process["labels"]) == ("task 7", {"task": "7", "container": "c_01"})
    assert process["main_class"] == "Burner"
    assert process["jvm"]["version"].startswith("17.")


def test_a_shell_with_the_jvms_arguments_is_no_jvm(agent, burn):
    word = "application_1700000000000_0042"
    burner = burn(extra=[word])
    shell = subprocess.Popen(["sh", "-c", "read x; true", "java", "Burner", word], stdin=subprocess.PIPE)
    try:
        answer = agent.find(kind="text", text=word)
        assert [process["pid"] for process in answer["processes"]] == [burner.outer.pid]
        assert answer["searched"] > 1
    finally:
        shell.communicate()


def test_processes_that_are_no_jvms(agent, burn):
    burner = burn(extra=["kind-of-sleep"])
    sleeper = subprocess.Popen(["sleep", "600.25"])
    try:
        by_pid = {"kind": "pids", "pids": [sleeper.pid, burner.outer.pid]}
        by_text = {"kind": "text", "text": "600.25"}
        by_program = {"kind": "rule", "any": [{"program": ["sl*p"], "user": [user_of(agent, sleeper.pid)]}]}
        by_user = {"kind": "rule", "any": [{"user": [user_of(agent, sleeper.pid)]}]}
        for selector, native, matches in [
            (by_pid, False, False),
            (by_pid, True, True),
            (by_text, False, False),
            (by_text, True, True),
            (by_program, False, True),
            (by_program, True, True),
            (by_user, False, False),
            (by_user, True, True),
        ]:
            processes = {p["pid"]: p for p in agent.find(native, **selector)["processes"]}
            assert (sleeper.pid in processes) is matches, (selector, native)
        process = processes[sleeper.pid]
        assert (process["jvm"], process["main_class"], process["label"]) == (None, "", "sleep")
        assert process["command"] == "sleep 600.25"
        jvms = [p for p in processes.values() if p["jvm"]]
        assert burner.outer.pid in {p["pid"] for p in jvms}
        assert 2 not in processes or not is_kernel_thread(2)
    finally:
        sleeper.kill()
        sleeper.wait()


def user_of(agent, pid):
    agent.send("list")
    (process,) = [p for p in agent.expect("processes")["processes"] if p["pid"] == pid]
    return process["user"]


def is_kernel_thread(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes() == b""


def test_pids_that_are_none(agent, burn):
    (process,) = found(agent, burn())
    answer = agent.find(kind="pids", pids=[process["pid"], 4194303, agent.process.pid])
    assert [p["pid"] for p in answer["processes"]] == [process["pid"]]
    reasons = {ignored["pid"]: ignored["reason"] for ignored in answer["ignored"]}
    assert reasons[4194303] == "there is no such process"
    assert "part of this hprofiler session" in reasons[agent.process.pid]
