"""Finding by container: real processes that a container's environment, or only their arguments, give away."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.contract.agent_driver import Agent, ready
from tests.contract.conftest import OTHER_USER

ONE = "container_e17_1700000000000_0042_01_000003"
OTHER = "container_e17_1700000000000_0042_01_000004"


def find(
    agent: Agent, containers: Sequence[str], selector: Any = None, native: bool = False
) -> dict[str, Any]:
    agent.send("find", selector=selector, native=native, containers=list(containers))
    return agent.expect("found")


def pids(found: dict[str, Any]) -> list[int]:
    return [process["pid"] for process in found["processes"]]


def running(
    argv: Sequence[str], environment: dict[str, str] | None = None
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return ready(argv, {**os.environ, **(environment or {})})


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "print('ready', flush=True); input()", *arguments]


def test_by_the_environment(agent, burn):
    mine = burn(env={"CONTAINER_ID": ONE})
    neighbour = burn(env={"CONTAINER_ID": OTHER})
    found = find(agent, [ONE])
    (process,) = found["processes"]
    assert process["pid"] == mine.outer.pid and found["ignored"] == []
    assert process["labels"] == {"container": ONE} and process["label"] == "Burner"
    assert pids(find(agent, [ONE, OTHER])) == sorted([mine.outer.pid, neighbour.outer.pid])


def test_of_another_user_as_root(agent, burn):
    mine = burn(user=OTHER_USER, env={"CONTAINER_ID": ONE})
    assert pids(find(agent, [ONE])) == [mine.outer.pid]


def test_another_users_word_counts_for_less(agent, burn):
    """The application's user, or whoever runs the node's manager, is there: nobody else gets among them."""
    stranger = burn(user=OTHER_USER, env={"CONTAINER_ID": ONE})
    mine = burn(env={"CONTAINER_ID": ONE})
    with socket.create_server(("", 0)) as manager:
        for vouched in ({"owners": {ONE: "root"}}, {"manager_port": manager.getsockname()[1]}):
            agent.send("find", selector=None, containers=[ONE], **vouched)
            found = agent.expect("found")
            assert pids(found) == [mine.outer.pid]
            (ignored,) = found["ignored"]
            assert ignored["pid"] == stranger.outer.pid and "claims to be in" in ignored["reason"]
    assert pids(find(agent, [ONE])) == sorted(
        [mine.outer.pid, stranger.outer.pid]
    )  # nothing tells them apart


def test_without_rights_the_arguments_tell(start_agent, burn):
    """Another user's environment cannot be read; YARN names the container on the command line too."""
    silent = burn(env={"CONTAINER_ID": ONE})
    telling = burn(env={"CONTAINER_ID": ONE}, options=[f"-Dlogs=/var/log/{ONE}/stderr"])
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    found = pids(find(agent, [ONE]))
    assert telling.outer.pid in found and silent.outer.pid not in found


def test_by_arguments_as_a_whole_word(agent, burn):
    mine = burn(extra=[f"--log=/logs/{ONE}/x"])
    burn(extra=[f"--log=/logs/{ONE}0/x"])
    burn(env={"CONTAINER_ID": OTHER}, extra=[f"--log=/logs/{ONE}/x"])
    assert pids(find(agent, [ONE])) == [mine.outer.pid]


@pytest.mark.nightly
def test_map_tasks_are_told_apart(agent, tmp_path):
    """All are of one main class, and whoever names their application names no selector."""
    source = tmp_path / "YarnChild.java"
    body = "public static void main(String[] a) throws Exception { System.out.println(); System.in.read(); }"
    source.write_text(f"package org.apache.hadoop.mapred; public class YarnChild {{ {body} }}")
    subprocess.run(["javac", "-d", str(tmp_path), str(source)], check=True)
    command = [
        "java",
        "-Xmx32m",
        "-cp",
        str(tmp_path),
        "org.apache.hadoop.mapred.YarnChild",
        "10.0.1.4",
        "45261",
    ]
    command += ["attempt_1700000000000_0042_m_000001_0", "3"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, "CONTAINER_ID": ONE}, **pipes) as task:
        task.stdout.readline()
        (process,) = find(agent, [ONE])["processes"]
        task.stdin.close()
    assert process["label"] == "task m_000001_0"
    assert process["labels"] == {
        "attempt": "m_000001_0", "task": "m_000001", "job": "1700000000000_0042", "container": ONE
    }  # fmt: skip


def test_a_selector_narrows_and_its_labels_stay(agent, burn):
    one = burn(env={"CONTAINER_ID": ONE}, extra=["--id", "7"])
    burn(env={"CONTAINER_ID": ONE}, extra=["--id", "8"])
    burn(extra=["--id", "7"])
    rule = {
        "kind": "rule",
        "any": [{"arguments": "--id 7"}],
        "labels": {
            "id": {"from": "arguments", "regex": r"--id (\d+)"},
            "container": {"from": "arguments", "regex": r"(--id)"},
        },
        "process_label": "burner {id}",
    }
    (process,) = find(agent, [ONE], rule)["processes"]
    assert process["pid"] == one.outer.pid and process["label"] == "burner 7"
    assert process["labels"] == {"id": "7", "container": ONE}
    pid = {"kind": "pids", "pids": [one.outer.pid]}
    assert find(agent, [OTHER], pid)["ignored"] == find(agent, [OTHER], pid)["processes"] == []
    assert pids(find(agent, [ONE], pid)) == [one.outer.pid]


def test_helpers_are_ignored_with_a_reason_and_shells_in_silence(agent, burn):
    mine = burn(env={"CONTAINER_ID": ONE})
    environment = {"CONTAINER_ID": ONE}
    shell = ["bash", "-c", "echo ready; read -r x", ONE]
    with running(python(), environment) as worker, running(shell, environment) as wrapper:
        found = find(agent, [ONE])
        assert pids(found) == [mine.outer.pid]
        (ignored,) = found["ignored"]
        assert ignored["pid"] == worker.pid
        assert ignored["reason"].startswith(f"Python worker of container {ONE}: not a JVM (python")
        native = pids(find(agent, [ONE], native=True))
        assert native == sorted([mine.outer.pid, worker.pid])
        named = {"kind": "pids", "pids": [wrapper.pid]}
        assert pids(find(agent, [ONE], named, native=True)) == [wrapper.pid]


def test_helpers_are_bounded(agent):
    script = "exec 3<&0; for i in $(seq 1 130); do cat <&3 & done; echo ready; wait"
    shell = ["bash", "-c", script]
    with running(shell, {"CONTAINER_ID": ONE}):
        found = find(agent, [ONE])
    assert found["processes"] == [] and len(found["ignored"]) == 100
    assert all(f"helper of container {ONE}" in ignored["reason"] for ignored in found["ignored"])


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"selector": None}, "neither a selector nor containers"),
        ({"selector": None, "containers": ["../x"]}, "is not a container id"),
        ({"selector": None, "containers": [""]}, "is not a container id"),
        ({"selector": None, "containers": [f"c{n}" for n in range(10_001)]}, "more than 10000 containers"),
        ({"selector": None, "containers": "all"}, "cannot be understood"),
    ],
)
def test_what_is_refused(agent, members, reason):
    agent.send("find", **members)
    assert reason in agent.expect("error")["reason"]
    assert agent.wait() == 1
