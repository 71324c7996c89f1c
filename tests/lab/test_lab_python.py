"""A PySpark job whose Python workers spend known shares of their CPU time, recorded by `hprofiler`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hprofiler import Profile
from tests.contract.agent_driver import near
from tests.lab import jdks
from tests.lab.cache import Unavailable
from tests.lab.spark import logs
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parents[1] / "burners" / "pyspark_shares.py"
HOT, WARM = "hot (pyspark_shares.py)", "warm (pyspark_shares.py)"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The job in local mode, whose workers have worked."""
    try:
        spark = logs.spark_4()
    except Unavailable as why:
        lacking(str(why))
    (zipped,) = (spark.home / "python" / "lib").glob("py4j-*.zip")
    environment = {
        **os.environ,
        "JAVA_HOME": str(jdks.home(logs.JDK)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{spark.home.parent}:{zipped}",
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command, log = [sys.executable, str(PROGRAM)], tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("counters"), log.read_text()[-3000:]
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_workers_of_a_job_are_found_and_show_its_functions(job, tmp_path):
    run = tmp_path / "run"
    words = ["-j", "pyspark-worker", "-t", "15", "--trim", "--json", "-o", str(run)]
    done = subprocess.run(
        [sys.executable, "-m", "hprofiler", *words], capture_output=True, text=True, check=True
    )
    (host,) = json.loads(done.stdout)["hosts"]
    assert {one["status"] for one in host["outcomes"]} == {"ok"}, host["outcomes"]
    profile = Profile.read(run / "cluster" / "cpu.pb.gz")
    paths = list(profile.paths())
    assert all("process (pyspark/worker.py)" in path.frames[0] for path in paths)
    counts = {name: sum(path.values[0] for path in paths if name in path.frames) for name in (HOT, WARM)}
    total = sum(counts.values())
    assert total > 100 and near(counts[HOT] / total, 0.6, total), (counts, done.stdout[-2000:])
    assert total > 0.9 * profile.total("samples")
