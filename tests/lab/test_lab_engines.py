"""Engines whose threads have the names of their work: samples by stage and by operator."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.lab import hosts
from tests.lab.coordinator import COMMAND, Coordinator
from tests.lab.engines import flink, spark
from tests.lab.hosts import Lab
from tests.lab.yarn import stages

ROOT = Path(__file__).parents[2]
HOST = "host1"
LEAST = 200
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, workshop: Path) -> Iterator[Callable[..., Coordinator]]:
    """Starts a lab of the coordinator and one host, which sees the folders given."""
    labs: list[Lab] = []

    def start(*shown: Path) -> Coordinator:
        hosts.require()
        folder = workshop / f"engine-{len(list(workshop.iterdir()))}"
        labs.append(Lab(folder, hosts.default_plans(1), tied=True, show=shown, shared=folder / "shared").up())
        return Coordinator(labs[-1], folder / "runs")

    yield start
    for lab in labs:
        lab.down()


@pytest.mark.parametrize("version", spark.VERSIONS)
def test_stages_of_versions_of_spark(machine: Callable[..., Coordinator], version: str) -> None:
    """Two stages run at the same time in one executor. Before 3.1 threads are named by the task alone."""
    made = spark.software(version)
    coordinator = machine(made.jars, made.jobs.parent)
    job = ["together", "600", "20", str(stages.TASK_MILLISECONDS)]
    with spark.running(coordinator.lab, HOST, made, *job) as driver:
        target = ["-j", "spark-executor", "-h", HOST, "--user", "root", "--spark", driver]
        result = coordinator.run("-f", "300", "-t", "15", *target, "--json")
    found = stages.divided(result)
    assert found.stages >= 2 and found.right > LEAST, found
    assert found.certain_share > 0.8 and found.wrong_share < 0.02, found


def test_operators_of_flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped rules for task managers, on a cluster within a job's JVM."""
    command = flink.software()
    shipped = (ROOT / "selectors/flink-taskmanager.yaml").read_text()
    own = shipped.replace("org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "FlinkOperators")
    selectors = tmp_path / "selectors"
    selectors.mkdir()
    (selectors / "own.yaml").write_text(own.replace("name: flink-taskmanager", "name: own"))
    with flink.running(command, tmp_path):
        options = [
            "-f",
            "300",
            "-t",
            "8",
            "--selectors",
            str(selectors),
            "-j",
            "own",
            "-o",
            str(tmp_path / "run"),
        ]
        done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (stored,) = (tmp_path / "run").glob("hosts/*/*/cpu.time")
    profile = Profile.open(stored, "compact")
    assert profile.times is not None
    for number, (slice_, certain) in enumerate(profile.times.slices, 1):
        if certain and slice_ in flink.OWN_METHODS:
            found = Counter[str]()
            for stack in profile.in_slice(number).paths(annotate=False):
                methods = [one for one in flink.OWN_METHODS.values() if one in stack.frames]
                found.update(dict.fromkeys(methods, stack.values[0]))
            right = found[flink.OWN_METHODS[slice_]]
            assert right > LEAST and right == found.total(), (slice_, found)
    named = {slice_ for slice_, certain in profile.times.slices if certain}
    assert named >= {*flink.OWN_METHODS, "operator Source: numbers"}
