"""Spark of several versions on a host of the lab: a driver with a master, a worker and an executor."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab import jdks
from tests.lab.hosts import Lab
from tests.lab.procs import wait_for
from tests.lab.yarn.cluster import OPENED, UP_SECONDS
from tests.lab.yarn.software import JOBS, compiled, fetched

VERSIONS = {"2.4.8": ("2.12", 8), "3.0.3": ("2.12", 8), "4.1.1": ("2.13", 17)}
"""Scala's version and Java's."""
CORES = 2
_HOME = "/data/spark"


@dataclass(frozen=True)
class Spark:
    """The jars of a version, the jar of the lab's own jobs, and the Java to run them."""

    jars: Path
    jobs: Path
    scala: str
    java_home: Path
    options: tuple[str, ...]


def software(version: str) -> Spark:
    """Fetched and compiled once. Raises Unavailable."""
    scala, java = VERSIONS[version]
    jars = fetched(f"spark-{version}", Path(__file__).with_name("spark.xml"), scala=scala, spark=version)
    opened = OPENED if java > 8 else ()
    jobs = compiled("stages", [JOBS / "SparkStages.java"], jars, java)
    return Spark(jars, jobs, scala, jdks.home(java), opened)


@contextmanager
def running(lab: Lab, host: str, made: Spark, *arguments: str) -> Iterator[str]:
    """A job on a host of a lab with a shared folder; the address of its driver. One executor is busy."""
    command = [
        f"{made.java_home}/bin/java", "-Xmx512m", *made.options,
        "-cp", f"{made.jars}/*", "org.apache.spark.deploy.SparkSubmit",
        "--master", f"local-cluster[1,{CORES},1024]", "--executor-memory", "512m",
        "--class", "SparkStages", str(made.jobs), *arguments,
    ]  # fmt: skip
    settings = {
        "JAVA_HOME": made.java_home, "SPARK_HOME": _HOME, "SPARK_SCALA_VERSION": made.scala,
        "SPARK_LOCAL_HOSTNAME": host,
    }  # fmt: skip
    exported = " ".join(f"{name}={value}" for name, value in settings.items())
    place = f"mkdir -p {_HOME} && ln -sfn {made.jars} {_HOME}/jars && cd {_HOME}"
    log = lab.folder / "spark.log"
    with log.open("wb") as output:
        script = f"{place} && exec env {exported} {shlex.join(command)}"
        client = lab.hosts[host].start(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    driver = f"http://{host}:4040"
    applications = f"{driver}/api/v1/applications"

    def busy() -> list[dict[str, Any]]:
        assert client.poll() is None, log.read_text(errors="replace")[-3000:]
        listed = _json(lab, applications)
        executors = _json(lab, f"{applications}/{listed[0]['id']}/executors") if listed else []
        return listed if any(one.get("activeTasks") for one in executors) else []

    try:
        (application,) = wait_for("a busy executor", busy, UP_SECONDS)
        yield driver
        assert lab.shared is not None
        (lab.shared / f"{application['id']}.end").touch()
        client.wait(UP_SECONDS)
    finally:
        client.kill()
        client.wait()


def _json(lab: Lab, url: str) -> list[dict[str, Any]]:
    """The driver's answer; empty if there is none yet."""
    try:
        answer = json.loads(lab.curl(url))
    except ValueError:
        return []
    return answer if isinstance(answer, list) else []
