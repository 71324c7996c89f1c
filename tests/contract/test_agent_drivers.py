"""Finding a Spark driver that is in no container: by the port at which it listens, and as Spark's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.test_agent_containers import ONE, find, pids

SOURCE = """package %s;
public class Listening {
    public static void main(String[] arguments) throws Exception {
        try (java.net.ServerSocket listening = new java.net.ServerSocket(0)) {
            System.out.println(listening.getLocalPort());
            System.in.read();
        }
    }
}
"""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program as one of Spark's and as another one."""
    folder = tmp_path_factory.mktemp("classes")
    for package in ("org.apache.spark.deploy", "com.acme"):
        source = folder / f"{package}.d" / "Listening.java"
        source.parent.mkdir()
        source.write_text(SOURCE % package)
        subprocess.run(["javac", "-d", str(folder), str(source)], check=True, capture_output=True)
    return folder


@contextmanager
def listening(classes: Path, package: str, **environment: str) -> Iterator[tuple[int, int]]:
    """Pid and port of the program while it runs."""
    command = ["java", "-Xmx32m", "-cp", str(classes), f"{package}.Listening"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, **environment}, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.stdin.close()


def test_by_its_port_and_no_other(agent, classes):
    driver = listening(classes, "org.apache.spark.deploy")
    neighbour = listening(classes, "org.apache.spark.deploy")
    with driver as (pid, port), neighbour:
        found = find(agent, [ONE, f"spark_driver_{port}"])
        assert pids(found) == [pid]
        assert found["processes"][0]["labels"] == {"container": f"spark_driver_{port}"}
        assert pids(find(agent, ["spark_driver_1", "spark_driver_70000", "spark_driver_x"])) == []


def test_another_program_at_the_port_is_none(agent, classes):
    """Who tells the port runs code of its own."""
    with listening(classes, "com.acme") as (_, port):
        assert pids(find(agent, [f"spark_driver_{port}"])) == []


def test_one_in_a_container_of_another_application_is_none(agent, classes):
    driver = listening(
        classes, "org.apache.spark.deploy", CONTAINER_ID="container_e17_1700000000000_0043_01_000001"
    )
    with driver as (_, port):
        assert pids(find(agent, [f"spark_driver_{port}"])) == []
