"""Real servers and a Spark driver: the wall clock's table has all that waits, but not for work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler import Run
from tests.contract.agent_driver import running
from tests.lab import jdks
from tests.lab.procs import children, name, wait_for
from tests.lab.yarn.cluster import OPENED
from tests.lab.yarn.software import compiled, fetched, pyspark, pyspark_environment

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

FOLDER = Path(__file__).parent / "idle"
SECONDS = 6


def shares(pid: int, folder: Path) -> dict[str, float]:
    """How many threads were in each method or below, by the table of a recording, besides idle ones."""
    words = f"-m hprofiler -e wall -t {SECONDS} -j pid:{pid} --json -o {folder}".split()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    (recording,) = [one for host in json.loads(done.stdout)["hosts"] for one in host["recordings"]]
    methods = Run.open(folder).methods
    return dict(zip(methods["method"], methods["self"] / 1e9 / recording["seconds"], strict=True))


def test_servers_without_work(tmp_path: Path) -> None:
    """Kafka, Flink, HBase, Hadoop, ZooKeeper."""
    jars = fetched("servers", FOLDER / "servers.xml")
    jar = compiled("servers-program", [FOLDER / "Servers.java"], jars)
    java = [str(jdks.home(17) / "bin" / "java"), "-Xmx700m", *OPENED, "-cp", f"{jar}:{jars}/*", "Servers"]
    with running(*java, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as servers:
        assert servers.stdout is not None and servers.stdout.readline() == b"ready\n"
        found = shares(servers.pid, tmp_path / "run")
    waits = ["nap", "locked", "blocked", "waiting", "result", "reply", "join"]
    expected = [*(f"Servers$Job.{wait}" for wait in waits), "Servers$Silent.sleeping"]
    expected.append("java/util/concurrent/CompletableFuture.waitingGet")
    for method in expected:
        assert found.pop(method, 0) == pytest.approx(1, abs=0.1), (method, found)
    assert max(found.values(), default=0) < 0.1, found


DRIVER = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.master("local[2]").getOrCreate()
def tasks(function):
    spark.range(0, 2, 1, 2).select(udf("long")(function)("id").alias("id")).groupBy().sum("id").collect()
def waits(number):
    Path(folder, str(number)).touch()
    time.sleep(600)
folder = sys.argv[1]
tasks(lambda number: number)
print("ready", flush=True)
input()
tasks(waits)
"""


def test_a_spark_driver(tmp_path: Path) -> None:
    """Between its jobs, and while its tasks wait for Python."""
    environment = pyspark_environment(pyspark(), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    begun = tmp_path / "begun"
    begun.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with running(sys.executable, "-c", DRIVER, str(begun), env=environment, **pipes) as driver:
        assert driver.stdin is not None and driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        (java,) = [pid for pid in children(driver.pid) if name(pid) == "java"]
        between = shares(java, tmp_path / "between")
        assert max(between.values(), default=0) < 0.2, between
        driver.stdin.write(b"\n")
        driver.stdin.flush()
        wait_for("both tasks", lambda: len(list(begun.iterdir())) == 2)
        within = shares(java, tmp_path / "within")
    # Two tasks, and the thread that has started their job.
    waiting = {method: threads for method, threads in within.items() if threads > 0.2}
    assert sum(waiting.values()) == pytest.approx(3, abs=0.3), within
    assert any("python" in method for method in waiting), within
