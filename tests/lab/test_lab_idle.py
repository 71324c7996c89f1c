"""Real servers and a Spark driver: the wall clock's table has all that waits, but not for work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import running
from tests.lab.procs import children, wait_for
from tests.lab.yarn.cluster import OPENED
from tests.lab.yarn.software import compiled, fetched, jdks, pyspark, pyspark_environment

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

FOLDER = Path(__file__).parent / "idle"
SECONDS = 6


def shares(pid: int, folder: Path) -> dict[str, float]:
    """How many threads were in each method or below, by the table of a recording, besides idle ones."""
    command = [
        sys.executable,
        "-m",
        "hprofiler",
        "-e",
        "wall",
        "-t",
        str(SECONDS),
        "-j",
        f"pid:{pid}",
        "--json",
    ]
    done = subprocess.run([*command, "-o", str(folder)], capture_output=True, text=True, check=True)
    (event,) = json.loads(done.stdout)["events"]
    (recording,) = [one for host in json.loads(done.stdout)["hosts"] for one in host["recordings"]]
    return {one["method"]: one["self"] / 1e9 / recording["seconds"] for one in event["hottest"]}


def test_servers_without_work(tmp_path: Path) -> None:
    """Kafka, Flink, HBase, Hadoop, ZooKeeper."""
    jars = fetched("servers", FOLDER / "servers.xml")
    jar = compiled("servers-program", [FOLDER / "Servers.java"], jars)
    java = [str(jdks.home(17) / "bin" / "java"), "-Xmx700m", *OPENED, "-cp", f"{jar}:{jars}/*", "Servers"]
    with running(*java, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as servers:
        assert servers.stdout is not None and servers.stdout.readline() == b"ready\n"
        found = shares(servers.pid, tmp_path / "run")
    waits = ["nap", "locked", "blocked", "waiting", "future", "result", "reply", "join"]
    expected = [*(f"Servers$Job.{name}" for name in waits), "Servers$Silent.sleeping"]
    for name in expected:
        assert found.pop(name, 0) == pytest.approx(1, abs=0.1), (name, found)
    assert max(found.values(), default=0) < 0.1, found


DRIVER = """
import time
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.master("local[2]").getOrCreate()
def wait(seconds):
    return udf("long")(lambda x: time.sleep(seconds) or x)
def run(seconds):
    spark.range(0, 2, 1, 2).select(wait(seconds)("id")).groupBy().count().collect()
run(0)
print("ready", flush=True)
input()
spark.range(0, 2, 1, 2).select(wait(600)("id").alias("id")).groupBy().sum("id").collect()
"""


@contextmanager
def driver() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A PySpark driver that has run a job. At the next line of input it runs one whose tasks wait."""
    home = pyspark()
    environment = pyspark_environment(home, SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(sys.executable, "-c", DRIVER, env=environment, **pipes) as program:
        assert program.stdout.readline() == "ready\n"
        (java,) = [pid for pid in children(program.pid) if "java" in os.readlink(f"/proc/{pid}/exe")]
        yield program, java


def test_a_spark_driver(tmp_path: Path) -> None:
    with driver() as (program, java):
        found = shares(java, tmp_path / "without")
        assert max(found.values(), default=0) < 0.1, found
        program.stdin.write("\n")
        program.stdin.flush()
        reads = "org/apache/spark/sql/execution/python/BasicPythonArrowOutput"
        # Two tasks that wait for Python, and the driver's main thread, which waits for them.
        wait_for(lambda: sum(shares(java, tmp_path / "within").values()) > 2.5, 120)
        found = shares(java, tmp_path / "with")
    assert sum(found.values()) == pytest.approx(3, abs=0.3), (reads, found)
