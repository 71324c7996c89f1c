"""`hprofiler.record` in real notebooks: a session in local mode, and one that is a client of YARN."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest

import hprofiler
from tests.lab.coordinator import Coordinator
from tests.lab.notebook import execute, texts
from tests.lab.yarn.cluster import SOON, YarnCluster, running_cluster
from tests.lab.yarn.software import pyspark_environment

pytestmark = pytest.mark.timeout(600)

WORK = 'spark.range(0, 10_000_000, 1, 4).selectExpr("sum(crc32(cast(id as string)))").collect()'


def session(master: str, **settings: str) -> str:
    options = "".join(f".config({name!r}, {value!r})" for name, value in settings.items())
    return f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.master({master!r}){options}.getOrCreate()
{WORK}"""


def block(seconds: int, options: str = "") -> str:
    return f"""
import time, hprofiler
with hprofiler.record(spark, frequency=300, output="run", options={options!r}) as run:
    end = time.monotonic() + {seconds}
    while time.monotonic() < end:
        {WORK}
"""


# Workers' CPU time by their own clocks. Without a daemon when the recording begins they are not recorded.
UDF = """
import os, time
from pyspark.sql.functions import udf
def burn(n):
    start = time.process_time()
    while time.process_time() < start + 1.5:
        sum(range(1000))
    return time.process_time() - start
burner = udf(burn, "double", useArrow=False)
def burnt():
    return sum(row[0] for row in spark.range(0, 4, 1, 4).select(burner("id")).collect())
def codes(run):
    return {one.code: one.text for one in run.findings}
with hprofiler.record(spark, output="late") as late:
    seconds = burnt()
with hprofiler.record(spark, output="whole") as whole:
    burnt()
(codes(late), codes(whole), seconds)
"""


def check_stages(run: hprofiler.Run) -> None:
    """Spark counts the same CPU time, task by task."""
    stages = run.stages[run.stages["spark_cpu_seconds"].notna()]
    assert stages["samples"].sum() > 100, run.stages
    assert set(stages["name"].str.split().str[0]) == {"collect"}
    assert 0.85 < stages["cpu_seconds"].sum() / stages["spark_cpu_seconds"].sum() < 1.15, stages


def test_a_session_in_local_mode(spark_home: Path, tmp_path: Path) -> None:
    cells = [
        session(
            "local[2]",
            **{"spark.ui.showConsoleProgress": "false", "spark.driver.extraJavaOptions": SOON},
        ),
        block(3),
        "run.tasks.head()",
        'hprofiler.record(spark, seconds=1, events=["wall"])',
        UDF,
    ]
    known = pyspark_environment(spark_home, SPARK_LOCAL_IP="127.0.0.1")
    _, recorded, tasks, again, python = execute(tmp_path / "local.ipynb", cells, known)
    for outputs in (recorded, again):
        (page,) = texts(outputs, "text/html")
        assert page.startswith("<iframe srcdoc=") and "hprofiler-page" in page
        assert "hprofiler: recorded 2 of 2 processes on 1 of 1 host" in texts(outputs, "text/plain")[0]
    assert "<table" in texts(tasks, "text/html")[0]
    run = hprofiler.Run.open(tmp_path / "run")
    processes = run.processes.set_index("process")
    assert set(processes.index) == {"driver pyspark-shell", "python ipykernel_launcher of pyspark-shell"}
    assert set(processes["role"]) == {"driver"} and set(processes["event"]) == {"cpu"} and not run.interrupted
    assert processes["seconds"].between(2, 60).all() and set(run.tasks["executor"]) == {"driver"}
    check_stages(run)
    (printed,) = texts(python, "text/plain")[-1:]
    alone, all_of_it, counted = literal_eval(printed)
    assert "python-not-recorded" in alone and "python-not-recorded" not in all_of_it
    told = re.search(r"Python workers? used ([\d.]+) s of CPU and", alone["python-not-recorded"])
    assert told and float(told[1]) == pytest.approx(counted, rel=0.4), (alone, counted)


@pytest.fixture(scope="module")
def yarn(workshop: Path, spark_home: Path) -> Iterator[YarnCluster]:
    with running_cluster(workshop / "notebook-yarn", [spark_home], here=True) as cluster:
        yield cluster


@pytest.mark.nightly
def test_a_session_that_is_a_client_of_yarn(yarn: YarnCluster, spark_home: Path, workshop: Path) -> None:
    """Its driver is beside the notebook, where there is no SSH, and its executors are on other hosts."""
    coordinator = Coordinator(yarn.lab, workshop / "notebook-runs")
    settings, known = yarn.client(spark_home)
    settings |= {
        "spark.executor.instances": "2",
        "spark.executor.memoryOverhead": "256m",
        "spark.ui.port": "0",
    }
    folder = coordinator.new_folder()
    cells = [session("yarn", **settings), block(10, "--user root"), "run.methods.head()"]
    _, recorded, _ = execute(folder / "yarn.ipynb", cells, known, yarn.lab.coordinator)
    assert "recorded 5 of 5 processes on" in texts(recorded, "text/plain")[0]
    run = hprofiler.Run.open(folder / "run")
    processes = run.processes.set_index("process")
    here = ["driver", "python ipykernel_launcher of driver"]
    assert set(processes.index) == {*here, "ExecutorLauncher", "executor 1", "executor 2"}
    assert set(processes.loc[here, "host"]) == {"coord"}
    assert set(run.tasks["executor"]) == {"1", "2"} and not run.interrupted
    check_stages(run)
