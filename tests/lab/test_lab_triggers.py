"""`--when` with a real Spark driver, which has a straggler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hprofiler import Profile
from tests.lab import jdks
from tests.lab.spark import logs
from tests.lab.yarn.cluster import OPENED
from tests.lab.yarn.software import compiled

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

SOURCE = Path(__file__).parent / "triggers" / "Straggler.java"


@pytest.fixture(params=[logs.spark_3, logs.spark_4], ids=["spark-3", "spark-4"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Its pid, and its address."""
    spark = request.param()
    jar = compiled(f"straggler-{spark.name}", [SOURCE], spark.home / "jars", logs.JDK)
    java, port = jdks.home(logs.JDK) / "bin" / "java", logs.free_port()
    classes = f"{spark.classes}:{jar}"
    command = [java, "-Xmx600m", *OPENED, "-cp", classes, "Straggler", str(port)]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n", (tmp_path / "log").read_text()[-3000:]
        yield process.pid, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("condition", ["task > 3 x median", "stage 0"])
def test_a_straggler_is_recorded_while_it_runs(
    driver: tuple[int, str], tmp_path: Path, condition: str
) -> None:
    pid, address = driver
    words = ["-j", f"pid:{pid}", "--spark", address, "--when", condition, "-t", "5", "--json"]
    command = [sys.executable, "-m", "hprofiler", *words, "-o", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    fired = json.loads(done.stdout)["trigger"]
    assert (fired["condition"], fired["stage"], fired["attempt"]) == (condition, 0, 0)
    if condition == "stage 0":
        return
    task = fired["task"]
    assert (task["index"], task["executor"]) == (7, "driver") and fired["value"] > 3
    assert 2 <= task["median"] < 10 and task["seconds"] == pytest.approx(
        fired["value"] * task["median"], rel=0.01
    )
    profile = Profile.read(tmp_path / "run" / "cluster" / "cpu.pb.gz")
    assert "Straggler.straggle" in {one.name for one in profile.top(3)}
