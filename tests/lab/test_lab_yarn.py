"""Applications of a real YARN: their JVMs and no others, on their hosts and no others; what goes wrong.

All containers run as yarn, as the default container executor has it; test_lab_yarn_shared.py has other users.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from tests.lab import cache, hosts
from tests.lab.coordinator import Coordinator, Result
from tests.lab.folded import Stacks
from tests.lab.hosts import Host
from tests.lab.procs import wait_for
from tests.lab.yarn.cluster import (
    RESOURCE_MANAGER,
    UP_SECONDS,
    Application,
    YarnCluster,
    make_lab,
)
from tests.lab.yarn.software import Unavailable, software
from tests.needed import lacking

ROOT = ["--user", "root"]
CLUSTER = ["-c", RESOURCE_MANAGER, *ROOT]
EXECUTOR = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def yarn(workshop: Path) -> Iterator[YarnCluster]:
    """A ResourceManager and three NodeManagers on hosts of their own."""
    reason = hosts.why_not()
    if reason:
        lacking(reason)
    try:
        made = software()
    except Unavailable as why:
        lacking(str(why))
    lab = make_lab(workshop / "yarn", made, tied=True)
    lab.up()
    try:
        yield YarnCluster(lab, made).up()
    finally:
        lab.down()


@pytest.fixture(scope="module")
def coordinator(yarn: YarnCluster, workshop: Path) -> Coordinator:
    folder = workshop / "yarn-runs"
    folder.mkdir()
    return Coordinator(yarn.lab, folder)


@pytest.fixture(scope="module")
def job(yarn: YarnCluster) -> Iterator[Application]:
    """A Spark job of a driver and three busy executors."""
    app = yarn.spark("cpu", "600", "3")
    app.wait_until_busy(3)
    yield app
    app.kill()


def processes(result: Result) -> list[dict[str, Any]]:
    """The processes of a run's recordings, or of `ps --json`."""
    if result.folder is None:
        return [process for host in json.loads(result.out) for process in host["processes"]]
    return [recording["process"] for host in result.run["hosts"] for recording in host["recordings"]]


def jvms(yarn: YarnCluster, app: Application) -> set[tuple[str, int]]:
    """Host and pid (as the host counts) of the application's JVMs, by what `ps` shows of them."""
    return {
        (node.name, seen.inner_pid)
        for node in yarn.nodes
        for seen in node.processes()
        if app.id in seen.command and re.match(r"\S+/java ", seen.command)
    }


def visits(node: Host) -> str:
    """What a node's sshd says of connections so far."""
    return node.path("/var/log/sshd.log").read_text()


# A Spark job


@pytest.fixture(scope="module")
def main_run(coordinator: Coordinator, job: Application) -> Result:
    return coordinator.run("-f", "300", "-t", "8", "-j", job.id, *CLUSTER)


def test_the_jobs_methods_as_it_spends_its_time(main_run: Result) -> None:
    assert main_run.code == 0, str(main_run)
    stacks = main_run.stacks("cluster/cpu")
    hot, cool = stacks.count("SparkBurn.hotCpu"), stacks.count("SparkBurn.coolCpu")
    chance = math.sqrt(0.75 * 0.25 / (hot + cool))
    assert hot + cool > 200 and abs(hot / (hot + cool) - 0.75) < 0.03 + 6 * chance
    path = ["org/apache/spark/executor/Executor$TaskRunner.run", "SparkBurn.burn", "SparkBurn.hotCpu"]
    assert stacks.path_share(path) > 95


def test_every_process_says_what_it_is(yarn: YarnCluster, job: Application, main_run: Result) -> None:
    found = processes(main_run)
    assert {(process["host"], process["pid"]) for process in found} == jvms(yarn, job)
    assert sorted(process["label"] for process in found) == [
        "driver",
        "executor 1",
        "executor 2",
        "executor 3",
    ]
    for process in found:
        labels = process["labels"]
        assert labels["application"] == job.id and labels["app_attempt"] == "1"
        assert labels["node"] == process["host"]
        assert labels["container"].startswith(f"container_{job.id.partition('_')[2]}_01_")
        assert process["label"] == (
            "driver" if labels["role"] == "driver" else f"executor {labels['executor']}"
        )
        assert labels.get("stage") == (None if labels["role"] == "driver" else "0")
    assert len({process["labels"]["container"] for process in found}) == 4
    assert main_run.run["target"] == {"kind": "yarn", "name": job.id}


def test_labels_are_in_the_profiles_too(main_run: Result) -> None:
    assert main_run.folder is not None
    for process in processes(main_run):
        path = main_run.folder / "hosts" / process["host"] / str(process["pid"]) / "cpu.pb.gz"
        labels = Profile.read(str(path)).labels
        assert process["labels"].items() <= labels.items()
        assert labels["process"] == process["label"]


def test_only_the_jobs_own_frames(coordinator: Coordinator, main_run: Result) -> None:
    """The roots are those of whatever runs on YARN."""
    assert main_run.folder is not None
    trimmed = coordinator.new_folder() / "run"
    shutil.copytree(main_run.folder, trimmed)
    result = coordinator.run("report", str(trimmed), "--trim")
    assert result.code == 0, str(result)
    stacks = Stacks(trimmed / "cluster" / "cpu.folded")
    # The driver, too, has a moment of its own now and then.
    assert {frames[0].rpartition("/")[0] for frames, _ in stacks.stacks} <= {
        "org/apache/spark/executor",
        "org/apache/spark/deploy/yarn",
        "org/apache/spark/scheduler",
        "org/apache/spark/util",
    }
    assert stacks.share("org/apache/spark/executor/Executor$TaskRunner.run") > 90
    assert stacks.count("SparkBurn.hotCpu") == main_run.stacks("cluster/cpu").count("SparkBurn.hotCpu") > 0


def test_nothing_is_left_on_the_nodes(yarn: YarnCluster, main_run: Result) -> None:
    assert main_run.code == 0
    for node in yarn.nodes:
        left = [
            path for path in node.temporary_files() if re.search(r"\.hprofiler-(run|ap)|\.attach_pid", path)
        ]
        assert left == [], node.name
        assert not [seen for seen in node.processes() if "/agent-" in seen.command], node.name


def test_executors_only(coordinator: Coordinator, job: Application) -> None:
    result = coordinator.run("ps", "-j", job.id, "--match", "spark-executor", *CLUSTER, "--json")
    found = processes(result)
    assert sorted(process["labels"]["executor"] for process in found) == ["1", "2", "3"]
    assert {process["main_class"] for process in found} == {EXECUTOR}


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["yarn:name=SPARKBURN,user=yarn", "yarn:queue=default", "spark-executor"])
def test_applications_that_run(coordinator: Coordinator, job: Application, target: str) -> None:
    result = coordinator.run("ps", "-j", target, *CLUSTER, "--json")
    assert result.code == 0, str(result)
    found = processes(result)
    assert {process["labels"]["application"] for process in found} == {job.id}
    assert len(found) == (3 if target == "spark-executor" else 4)


def test_readmes_recipes(coordinator: Coordinator, job: Application) -> None:
    """Those of its `bash` blocks, as they stand there but for the names of this cluster."""
    text = (cache.CHECKOUT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n([^`]*rm:8088[^`]*)^```", text, re.M)
    recipes = block.splitlines()
    folder = coordinator.new_folder()
    for recipe in recipes:
        line = re.sub(r"application_\d+_\d+", job.id, recipe).replace("http://rm:8088", RESOURCE_MANAGER)
        result = coordinator.run(*shlex.split(line)[1:], folder=folder)
        assert result.code == 0, f"{recipe}\n{result}"
    assert (folder / "nightly" / "report.html").stat().st_size > 100_000


def test_apps(coordinator: Coordinator, job: Application) -> None:
    result = coordinator.run("apps", "-c", RESOURCE_MANAGER)
    (line,) = [line for line in result.out.splitlines() if line.startswith(job.id)]
    assert line.split()[1:5] == ["SPARK", "yarn", "root.default", "4"] and line.endswith("  SparkBurn")


def ps(coordinator: Coordinator, app: Application) -> Result:
    result = coordinator.run("ps", "-j", app.id, *CLUSTER, "--json")
    found = json.loads(result.out)
    for host in found:
        for process in host["processes"]:
            process["host"] = host["host"]
    return Result(result.code, json.dumps(found), result.err, None)


def is_executor(process: dict[str, Any]) -> bool:
    return bool(process["labels"].get("role") == "executor")


@pytest.mark.nightly
def test_executors_that_go_and_come(yarn: YarnCluster, coordinator: Coordinator, job: Application) -> None:
    """One is killed during the recording; the driver asks for another one, which is not in it."""
    executors = [process for process in processes(ps(coordinator, job)) if is_executor(process)]
    victim, new = executors[0], str(1 + max(int(one["labels"]["executor"]) for one in executors))
    running = coordinator.start("-t", "45", "-j", job.id, *CLUSTER)
    running.wait_until_recording(3 if len({one["host"] for one in executors}) == 3 else 2)
    yarn.lab.hosts[victim["host"]].run(["kill", "-9", str(victim["pid"])])
    result = running.result()
    wait_for(f"executor {new}", lambda: has_executor(yarn, job, new), 60)
    line = result.line(victim["host"], victim["pid"])
    assert line["label"] == victim["label"] and "ended during the recording" in line["reason"], line
    reasons = [outcome["reason"] for host in result.run["hosts"] for outcome in host["outcomes"]]
    came = [reason for reason in reasons if "started during the recording and is not in it" in reason]
    # Its JVM may not be far enough yet for the driver to know it as an executor.
    assert len(came) == 1 and re.match(rf"(executor {new}|container_\w+) on host", came[0]), reasons
    assert result.run["coverage"]["processes"]["found"] == 4
    assert {p["label"] for p in processes(result)} >= {"driver", *(one["label"] for one in executors[1:])}


def has_executor(yarn: YarnCluster, app: Application, identity: str) -> bool:
    found = yarn.rest(f"/proxy/{app.id}/api/v1/applications/{app.id}/executors") or []
    return any(executor.get("id") == identity for executor in found)


@pytest.mark.nightly
def test_an_application_that_ends_during_the_recording(coordinator: Coordinator, job: Application) -> None:
    """Its executors' last profiles are whole; each process has a line that says what became of it."""
    running = coordinator.start("-t", "120", "-j", job.id, *CLUSTER)
    running.wait_until_recording(2)
    job.finish()
    job.wait_until_over()
    result = running.result()
    assert result.code in (0, 3), str(result)
    assert sum(is_executor(process) for process in processes(result)) >= 2
    lines = [line for host in result.run["hosts"] for line in host["outcomes"] if line["pid"] is not None]
    assert len(lines) == 4 and all("ended" in line["reason"] for line in lines), lines


# Other jobs


@contextmanager
def running(app: Application) -> Iterator[Application]:
    try:
        yield app
    finally:
        app.kill()


@pytest.mark.nightly
def test_one_executor_that_allocates_and_no_other_node_is_asked(
    yarn: YarnCluster, coordinator: Coordinator
) -> None:
    with running(yarn.spark("alloc", "300", "1", executors=1, queue="nightly")) as app:
        app.wait_until_busy(1)
        before = {node.name: visits(node) for node in yarn.nodes}
        result = coordinator.run("-t", "6", "-e", "cpu,alloc", "-j", "yarn:queue=nightly", *CLUSTER)
        after = {node.name: visits(node) for node in yarn.nodes}
    assert result.code == 0, str(result)
    used = {process["host"] for process in processes(result)}
    assert {name for name in after if after[name] != before[name]} == used
    assert 1 <= len(used) <= 2
    allocated = result.stacks("cluster/alloc")
    assert allocated.share("SparkBurn.hotAlloc") > 80


@pytest.mark.nightly
def test_map_tasks(yarn: YarnCluster, coordinator: Coordinator) -> None:
    with running(yarn.mapreduce("pi", "2", "2000000000")) as app:
        wait_for("two busy map tasks", lambda: busy_maps(yarn, app) == 2, UP_SECONDS)
        result = coordinator.run("-t", "5", "-j", app.id, *CLUSTER)
    assert result.code == 0, str(result)
    names = sorted(process["label"] for process in processes(result))
    assert names == ["MRAppMaster", "task m_000000_0", "task m_000001_0"]
    assert {process["labels"]["application"] for process in processes(result)} == {app.id}
    tasks = {process["labels"].get("task") for process in processes(result)}
    assert tasks == {None, "m_000000", "m_000001"}
    assert result.stacks("cluster/cpu").share("org/apache/hadoop/examples/QuasiMonteCarlo$QmcMapper.map") > 40


def busy_maps(yarn: YarnCluster, app: Application) -> int:
    """Map tasks that have told how far they are."""
    base = f"/proxy/{app.id}/ws/v1/mapreduce/jobs/{app.id.replace('application', 'job')}"
    tasks = (yarn.rest(f"{base}/tasks") or {}).get("tasks") or {}
    return sum(task["status"].startswith("Generated") for task in tasks.get("task", []))
