"""PySpark jobs whose Python workers spend known shares of the CPU time, recorded by `hprofiler`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from tests.contract.agent_driver import near
from tests.lab import jdks
from tests.lab.coordinator import Coordinator
from tests.lab.procs import wait_for
from tests.lab.spark import logs
from tests.lab.yarn.cluster import RESOURCE_MANAGER, UP_SECONDS, Application, YarnCluster, running_cluster
from tests.lab.yarn.software import compiled, pyspark
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

BURNERS = Path(__file__).parents[1] / "burners"
HOT, WARM = "hot (pyspark_shares.py)", "warm (pyspark_shares.py)"
FIRST, SECOND = "first (pyspark_stages.py)", "second (pyspark_stages.py)"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts a job in local mode, and waits until its workers have worked."""
    spark = logs.spark_4()
    (zipped,) = (spark.home / "python" / "lib").glob("py4j-*.zip")
    environment = {
        **os.environ,
        "JAVA_HOME": str(jdks.home(logs.JDK)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{spark.home.parent}:{zipped}",
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    log = tmp_path / "log"
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: str) -> None:
        command = [sys.executable, str(BURNERS / program), *arguments]
        with log.open("w") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("counters"), log.read_text()[-3000:]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def record(folder: Path, *words: str) -> Any:
    """Its answer."""
    command = [sys.executable, "-m", "hprofiler", *words, "--json", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def samples_of(profile: Profile, *functions: str) -> dict[str, int]:
    paths = list(profile.paths())
    return {name: sum(path.values[0] for path in paths if name in path.frames) for name in functions}


def test_the_workers_of_a_job_are_found_and_show_its_functions(job, tmp_path):
    job("pyspark_shares.py")
    run = tmp_path / "run"
    answer = record(run, "-j", "pyspark-worker", "-t", "15", "--trim")
    (host,) = answer["hosts"]
    assert {one["status"] for one in host["outcomes"]} == {"ok"}, host["outcomes"]
    profile = Profile.read(run / "cluster" / "cpu.pb.gz")
    assert all("process (pyspark/worker.py)" in path.frames[0] for path in profile.paths())
    counts = samples_of(profile, HOT, WARM)
    total = sum(counts.values())
    assert total > 100 and near(counts[HOT] / total, 0.6, total), (counts, answer)
    assert total > 0.9 * profile.total("samples")


def test_a_worker_counts_for_the_stage_of_its_task(job, tmp_path):
    """Two stages run in the executor all the time."""
    port = str(logs.free_port())
    job("pyspark_stages.py", port)
    run = tmp_path / "run"
    answer = record(run, "-j", "spark-driver", "-t", "20", "--spark", f"http://127.0.0.1:{port}")
    (event,) = answer["events"]
    counts = samples_of(Profile.read(run / "cluster" / "cpu.pb.gz"), FIRST, SECOND)
    spent = {one["name"]: one["python_cpu_seconds"] for one in event["slices"]["stages"]}
    share = counts[FIRST] / sum(counts.values())
    assert share > 0.6 and sum(counts.values()) > 150, counts  # 1000 on an idle machine
    assert spent["stage 0.0"] / sum(spent.values()) == pytest.approx(share, abs=0.02), (spent, counts)
    seconds = sum(counts.values()) / event["totals"]["samples"] * event["totals"]["cpu"] / 1e9
    assert sum(spent.values()) > 0.95 * seconds, "the others are of several stages"


SOURCES = Path(logs.__file__).parent
POINTS = 0.05


@pytest.fixture(scope="module")
def yarn(workshop: Path) -> Iterator[YarnCluster]:
    """A cluster whose hosts have PySpark and this interpreter."""
    if sys.base_prefix == "/usr":
        lacking("the lab's hosts have no Python of the system")
    home = pyspark()
    jar = compiled("java-burn", [SOURCES / "JavaBurn.java"], home / "jars")
    with running_cluster(workshop / "python-yarn", [home, jar.parent, Path(sys.base_prefix)]) as cluster:
        yield cluster


@pytest.fixture
def application(yarn: YarnCluster) -> Iterator[Application]:
    """A job in which 60 % of the CPU time is a Python function's, and 40 % a Java function's."""
    home = pyspark()
    jar = compiled("java-burn", [SOURCES / "JavaBurn.java"], home / "jars")
    assert yarn.lab.shared is not None
    program = yarn.lab.shared / "python_udf.py"
    program.write_bytes((SOURCES / "python_udf.py").read_bytes())
    python = Path(sys.base_prefix) / "bin" / "python3"
    app = yarn.pyspark(home, python, jar, Path("/shared/python_udf.py"), "3000")
    app.wait_until_busy(2)

    def workers() -> bool:
        """Beside each daemon."""
        found = [seen for node in yarn.nodes for seen in node.processes() if "pyspark.daemon" in seen.command]
        return len(found) >= 4

    wait_for("two Python workers", workers, UP_SECONDS)
    yield app
    app.kill()


def test_a_job_of_jvms_and_python_is_one_picture(
    yarn: YarnCluster, application: Application, workshop: Path
) -> None:
    coordinator = Coordinator(yarn.lab, workshop / "python-runs")
    words = ["-t", "40", "-j", application.id, "-c", RESOURCE_MANAGER, "--user", "root", "--json"]
    result = coordinator.run(*words)
    assert result.code == 0, result
    answer = json.loads(result.out)
    (event,) = answer["events"]
    engines = {
        one["process"]["label"]: one["engine"] for host in result.run["hosts"] for one in host["recordings"]
    }
    assert engines == {
        **dict.fromkeys(("driver", "executor 1", "executor 2"), "async-profiler"),
        "python python_udf.py of driver": "pyspy",
        **dict.fromkeys(("python of executor 1", "python of executor 2"), "pyspy"),
    }, result
    spent = {one["method"]: one["total"] for one in event["hottest"]}
    python, java = spent["python_burn (python_udf.py)"], spent["JavaBurn.burn"]
    assert python / (python + java) == pytest.approx(0.6, abs=POINTS), spent
    assert python + java > 0.7 * event["totals"]["samples"], (
        "the rest is Spark's, Python's and the compilers'"
    )
    assert "python_burn" in event["findings"][0]["text"], event["findings"]
    (stage,) = event["slices"]["stages"]
    assert stage["python_cpu_seconds"] / stage["cpu_seconds"] == pytest.approx(0.6, abs=POINTS), stage
    assert stage["certain"] + stage["likely"] > 0.8 * event["totals"]["samples"], event["slices"]


def test_what_the_threads_of_a_job_do(
    yarn: YarnCluster, application: Application, workshop: Path, tmp_path: Path
) -> None:
    """JVMs say it themselves, and so do Python workers and the Python program beside them."""
    coordinator = Coordinator(yarn.lab, workshop / "python-dumps")
    target = ["-j", application.id, "-c", RESOURCE_MANAGER, "--user", "root"]
    result = coordinator.run("dump", *target, "-o", str(tmp_path / "dump"))
    assert result.code == 0, result
    hosts = json.loads((tmp_path / "dump" / "dump.json").read_text())["hosts"]
    dumps = [(host["name"], one) for host in hosts for one in host["dumps"]]
    assert {one["process"]["label"]: one["kind"] for _, one in dumps} == {
        **dict.fromkeys(("driver", "executor 1", "executor 2"), "jvm"),
        **dict.fromkeys(("python of executor 1", "python of executor 2"), "python"),
        "python python_udf.py of driver": "python",
    }
    texts = [(one["kind"], tmp_path / "dump" / "hosts" / host / one["file"]) for host, one in dumps]
    for kind, text in texts:
        assert ("JNI global ref" if kind == "jvm" else '"MainThread"') in text.read_text(), text
