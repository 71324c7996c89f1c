"""Finding by container: what a process's environment or arguments say, and a Spark driver's port.

Who is believed where several users speak is decided in Rust, and tested there (discovery/rivals).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import pytest

from tests.contract.agent_driver import ready
from tests.contract.conftest import OTHER_USER
from tests.lab import cache

ONE = "container_e17_1700000000000_0042_01_000003"
OTHER = "container_e17_1700000000000_0042_01_000004"


@pytest.fixture
def burn(burn):
    """They are only found."""
    return partial(burn, load=0.1)


def find(agent, *containers, selector=None, native=False, **more):
    agent.send("find", selector=selector, native=native, containers=list(containers), **more)
    return agent.expect("found")


def pids(found):
    return [process["pid"] for process in found["processes"]]


def test_by_the_environment(agent, burn):
    mine = burn(env={"CONTAINER_ID": ONE})
    neighbour = burn(env={"CONTAINER_ID": OTHER})
    found = find(agent, ONE)
    (process,) = found["processes"]
    assert process["pid"] == mine.outer.pid and found["ignored"] == []
    assert process["labels"] == {"container": ONE} and process["label"] == "Burner"
    assert pids(find(agent, ONE, OTHER)) == sorted([mine.outer.pid, neighbour.outer.pid])


def test_claims_of_another_user_count_less(agent, burn):
    """The application's user, or whoever runs the node's manager, is there: nobody else gets among them."""
    stranger = burn(user=OTHER_USER, env={"CONTAINER_ID": ONE})
    assert pids(find(agent, ONE)) == [stranger.outer.pid]
    mine = burn(env={"CONTAINER_ID": ONE})
    with socket.create_server(("", 0)) as manager:
        for vouched in ({"owners": {ONE: "root"}}, {"manager_port": manager.getsockname()[1]}):
            found = find(agent, ONE, **vouched)
            assert pids(found) == [mine.outer.pid]
            (ignored,) = found["ignored"]
            assert (ignored["pid"], ignored["container"]) == (stranger.outer.pid, ONE)
    assert pids(find(agent, ONE)) == sorted([mine.outer.pid, stranger.outer.pid])


def test_without_rights_the_arguments_decide(new_agent, burn):
    """Another user's environment cannot be read; YARN names the container on the command line too."""
    silent = burn(env={"CONTAINER_ID": ONE})
    telling = burn(env={"CONTAINER_ID": ONE}, options=[f"-Dlogs=/var/log/{ONE}/stderr"])
    found = pids(find(new_agent(user=OTHER_USER), ONE))
    assert telling.outer.pid in found and silent.outer.pid not in found


def test_by_arguments_as_a_whole_word(agent, burn):
    mine = burn(extra=[f"--log=/logs/{ONE}/x"])
    burn(extra=[f"--log=/logs/{ONE}0/x"])
    burn(env={"CONTAINER_ID": OTHER}, extra=[f"--log=/logs/{ONE}/x"])
    assert pids(find(agent, ONE)) == [mine.outer.pid]


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
    (process,) = find(agent, ONE, selector=rule)["processes"]
    assert process["pid"] == one.outer.pid and process["label"] == "burner 7"
    assert process["labels"] == {"id": "7", "container": ONE}
    pid = {"kind": "pids", "pids": [one.outer.pid]}
    assert find(agent, OTHER, selector=pid)["ignored"] == find(agent, OTHER, selector=pid)["processes"] == []
    assert pids(find(agent, ONE, selector=pid)) == [one.outer.pid]


def test_helpers_are_ignored_with_a_reason_and_shells_in_silence(agent, burn):
    mine, environment = burn(env={"CONTAINER_ID": ONE}), {**os.environ, "CONTAINER_ID": ONE}
    python = [sys.executable, "-c", "print('ready', flush=True); input()"]
    shell = ["bash", "-c", "echo ready; read -r x", ONE]
    with ready(python, environment) as worker, ready(shell, environment) as wrapper:
        found = find(agent, ONE)
        assert pids(found) == [mine.outer.pid]
        (ignored,) = found["ignored"]
        assert (ignored["pid"], ignored["container"]) == (worker.pid, ONE)
        assert ignored["reason"].startswith("Python worker: not a JVM (python")
        assert pids(find(agent, ONE, native=True)) == sorted([mine.outer.pid, worker.pid])
        of_python = {"kind": "rule", "any": [{"program": ["python*"]}]}
        assert pids(find(agent, ONE, selector=of_python)) == [worker.pid]
        named = {"kind": "pids", "pids": [wrapper.pid]}
        assert pids(find(agent, ONE, selector=named, native=True)) == [wrapper.pid]


def test_helpers_are_bounded(agent):
    script = "exec 3<&0; for i in $(seq 1 130); do cat <&3 & done; echo ready; wait"
    with ready(["bash", "-c", script], {**os.environ, "CONTAINER_ID": ONE}):
        found = find(agent, ONE)
    assert found["processes"] == [] and len(found["ignored"]) == 100
    assert {ignored["container"] for ignored in found["ignored"]} == {ONE}


LISTENING = """package %s;
public class Listening {
    public static void main(String[] arguments) throws Exception {
        try (java.net.ServerSocket listening = new java.net.ServerSocket(0)) {
            System.out.println(listening.getLocalPort());
            System.in.read();
        }
    }
}
"""
SPARK, ANOTHER = "org.apache.spark.deploy", "com.acme"


@pytest.fixture(scope="module")
def listening():
    """Runs the same program as one of Spark's or as another one; its pid and port."""

    def make(folder):
        for package in (SPARK, ANOTHER):
            source = folder / f"{package}.d" / "Listening.java"
            source.parent.mkdir()
            source.write_text(LISTENING % package)
            subprocess.run(["javac", "-d", str(folder), str(source)], check=True, capture_output=True)

    classes = cache.made(cache.folder("burners"), "listening", LISTENING.encode(), make)

    @contextmanager
    def start(package=SPARK, **environment):
        command = ["java", "-Xmx32m", "-cp", str(classes), f"{package}.Listening"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, env={**os.environ, **environment}, **pipes) as process:
            try:
                yield process.pid, int(process.stdout.readline())
            finally:
                process.stdin.close()

    return start


def test_a_spark_driver_is_found_by_its_port(agent, listening):
    with listening() as (pid, port), listening():
        found = find(agent, ONE, f"spark_driver_{port}")
        assert pids(found) == [pid]
        assert found["processes"][0]["labels"] == {"container": f"spark_driver_{port}"}
        assert pids(find(agent, "spark_driver_1", "spark_driver_70000", "spark_driver_x")) == []


def test_another_program_at_the_port_is_not_a_driver(agent, listening):
    """Who tells the port runs code of its own; and one in another application's container is none either."""
    neighbour = "container_e17_1700000000000_0043_01_000001"
    with listening(ANOTHER) as (_, port), listening(CONTAINER_ID=neighbour) as (_, other):
        assert pids(find(agent, f"spark_driver_{port}", f"spark_driver_{other}")) == []
