"""A cluster of several users: PySpark and Spark, each as its own user, and two ResourceManagers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from tests.lab import hosts
from tests.lab.coordinator import Coordinator, Result
from tests.lab.yarn.cluster import CONFIGURATION, RESOURCE_MANAGER, Application, make_lab
from tests.lab.yarn.shared_cluster import JVMS, STANDBY, SharedCluster
from tests.lab.yarn.software import Unavailable, python_spark, software
from tests.needed import lacking

ROOT = ["--user", "root"]
TASK = "org/apache/spark/executor/Executor$TaskRunner.run"
BOTH = ["--yarn", f"{RESOURCE_MANAGER},{STANDBY}", *ROOT]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(600),  # the cluster and its jobs come up within the first test
]


@pytest.fixture(scope="module")
def yarn(workshop: Path) -> Iterator[SharedCluster]:
    reason = hosts.why_not()
    if reason:
        lacking(reason)
    try:
        made, python = software(), python_spark()
    except Unavailable as why:
        lacking(str(why))
    show = [python.spark.parent, python.python]
    lab = make_lab(workshop / "yarn-shared", made, tied=True, nodes=2, show=show)
    lab.up()
    try:
        yield SharedCluster(lab, made, python).up()
    finally:
        lab.down()


@pytest.fixture(scope="module")
def coordinator(yarn: SharedCluster, workshop: Path) -> Coordinator:
    folder = workshop / "yarn-shared-runs"
    folder.mkdir()
    return Coordinator(yarn.lab, folder)


@pytest.fixture(scope="module")
def jobs(yarn: SharedCluster) -> Iterator[dict[str, Application]]:
    """By user: a PySpark job in cluster mode, a Spark job whose driver is on the coordinator's machine."""
    made = {
        "prof": yarn.pyspark("900", "1", user="prof"),
        "yarn": yarn.spark("idle", "900", "1", mode="client", executors=1, settings=JVMS),
    }
    yarn.start_standby()
    for app in made.values():
        app.wait_until_busy(1)
    yield made
    for app in made.values():
        app.kill()


@pytest.fixture(scope="module")
def main_run(coordinator: Coordinator, jobs: dict[str, Application]) -> Result:
    """All that runs, asked of the standby; the client's machine is one that may be visited."""
    return coordinator.run(
        "-f", "300", "-t", "8", "-j", "yarn:", "-c", STANDBY, *ROOT, "--host-map", "coord=coord"
    )


def processes(result: Result, app: Application) -> dict[str, dict[str, Any]]:
    """An application's processes in a run, by what they are called."""
    found = [one["process"] for host in result.run["hosts"] for one in host["recordings"]]
    return {one["label"]: one for one in found if one["labels"]["application"] == app.id}


def hosts_of(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, str(result)
    found: list[dict[str, Any]] = json.loads(result.out)
    return found


def labels(result: Result) -> list[str]:
    return sorted(one["label"] for host in hosts_of(result) for one in host["processes"])


def test_executors_of_different_users(main_run: Result, jobs: dict[str, Application]) -> None:
    assert main_run.code == 0, str(main_run)
    for user, app in jobs.items():
        found = processes(main_run, app)
        assert set(found) - {"ExecutorLauncher"} == {"driver", "executor 1"}
        assert {one["user"] for one in found.values()} == {user}


def test_the_driver_of_a_client(main_run: Result, jobs: dict[str, Application]) -> None:
    driver = processes(main_run, jobs["yarn"])["driver"]
    assert driver["host"] == "coord" and driver["main_class"] == "org.apache.spark.deploy.SparkSubmit"
    assert driver["labels"]["role"] == "driver" and "node" not in driver["labels"]


def test_a_client_on_a_machine_that_nobody_named(
    coordinator: Coordinator, jobs: dict[str, Application]
) -> None:
    result = coordinator.run("ps", "-j", jobs["yarn"].id, "-c", RESOURCE_MANAGER, *ROOT, "--json")
    assert labels(result) == ["ExecutorLauncher", "executor 1"]
    assert "note: the Spark driver runs on coord, in no container, and is not profiled" in result.err


def test_pysparks_executor(main_run: Result, jobs: dict[str, Application]) -> None:
    """What it does for its Python worker is below the task, as the selector's roots say."""
    executor = processes(main_run, jobs["prof"])["executor 1"]
    assert main_run.folder is not None
    path = main_run.folder / "hosts" / executor["host"] / str(executor["pid"]) / "cpu.pb.gz"
    tasks = [";".join(stack.frames) for stack in Profile.read(str(path)).paths() if TASK in str(stack.frames)]
    assert len(tasks) > 3
    assert sum("org/apache/spark/api/python/" in task for task in tasks) > len(tasks) / 2


def test_python_workers_are_listed(coordinator: Coordinator, jobs: dict[str, Application]) -> None:
    result = coordinator.run("ps", "-j", jobs["prof"].id, *BOTH, "--json")
    assert labels(result) == ["driver", "executor 1"]
    reasons = [ignored["reason"] for host in hosts_of(result) for ignored in host["ignored"]]
    workers = [reason for reason in reasons if reason.startswith("Python worker of container ")]
    assert workers, reasons


def test_as_the_applications_user(coordinator: Coordinator, jobs: dict[str, Application]) -> None:
    """Nobody needs root for an application of their own; another user's is refused in words."""
    own = coordinator.run("-t", "3", "-j", jobs["prof"].id, "-c", STANDBY, "--user", "prof")
    assert own.code == 0, str(own)
    assert set(processes(own, jobs["prof"])) == {"driver", "executor 1"}


def test_the_configuration_names_both(
    yarn: SharedCluster, coordinator: Coordinator, jobs: dict[str, Application]
) -> None:
    assert yarn.lab.shared is not None
    folder = {"HADOOP_CONF_DIR": str(yarn.lab.shared / Path(CONFIGURATION).name)}
    result = coordinator.run("ps", "-j", jobs["prof"].id, *ROOT, "--json", environment=folder)
    assert labels(result) == ["driver", "executor 1"]


# The last one


def test_a_resource_manager_that_crashes(
    yarn: SharedCluster, coordinator: Coordinator, jobs: dict[str, Application]
) -> None:
    """The other one takes over, and knows what runs."""
    yarn.fail_over()
    jobs["prof"].wait_until_busy(1)
    assert labels(coordinator.run("ps", "-j", jobs["prof"].id, *BOTH, "--json")) == ["driver", "executor 1"]
    gone = coordinator.run("ps", "-j", jobs["prof"].id, "-c", RESOURCE_MANAGER, *ROOT)
    assert gone.code == 4 and re.search(r"coord:8088\S* cannot be reached: Connection refused", gone.err)
