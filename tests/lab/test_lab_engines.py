"""Engines whose threads have the names of their work: samples by stage and by operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab import hosts
from tests.lab.coordinator import Coordinator
from tests.lab.engines import spark
from tests.lab.hosts import Lab
from tests.lab.yarn import stages
from tests.lab.yarn.software import Unavailable
from tests.needed import lacking

HOST = "host1"
LEAST = 200
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, workshop: Path) -> Iterator[Callable[..., Coordinator]]:
    """Starts a lab of the coordinator and one host, which sees the folders given."""
    labs: list[Lab] = []

    def start(*shown: Path) -> Coordinator:
        reason = hosts.why_not()
        if reason:
            lacking(reason)
        folder = workshop / f"engine-{len(list(workshop.iterdir()))}"
        labs.append(Lab(folder, hosts.default_plans(1), tied=True, show=shown, shared=folder / "shared").up())
        return Coordinator(labs[-1], folder / "runs")

    yield start
    for lab in labs:
        lab.down()


@pytest.mark.parametrize("version", spark.VERSIONS)
def test_stages_of_versions_of_spark(machine: Callable[..., Coordinator], version: str) -> None:
    """Two stages run at the same time in one executor. Before 3.1 threads are named by the task alone."""
    try:
        made = spark.software(version)
    except Unavailable as why:
        lacking(str(why))
    coordinator = machine(made.jars, made.jobs.parent)
    job = ["together", "600", "20", str(stages.TASK_MILLISECONDS)]
    with spark.running(coordinator.lab, HOST, made, *job) as driver:
        target = ["-j", "spark-executor", "-h", HOST, "--user", "root", "--spark", driver]
        result = coordinator.run("-f", "300", "-t", "15", *target, "--json")
    found = stages.divided(result)
    assert found.stages >= 2 and found.right > LEAST, found
    assert found.certain_share > 0.8 and found.wrong_share < 0.02, found
