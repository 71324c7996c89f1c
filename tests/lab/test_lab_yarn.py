"""Applications of a real YARN: exactly their JVMs on exactly their hosts; failures."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hprofiler import Profile
from hprofiler.runfolder import RunFolder
from hprofiler.spark.facts import read_facts
from hprofiler.spark.windows import stage_times
from tests.lab import cache
from tests.lab.coordinator import Coordinator, Result
from tests.lab.hosts import Host
from tests.lab.procs import wait_for
from tests.lab.yarn import stages
from tests.lab.yarn.cluster import RESOURCE_MANAGER, UP_SECONDS, Application, YarnCluster, running_cluster
from tests.viewer.block import blocks, carried, described

ROOT = ["--user", "root"]
CLUSTER = ["-c", RESOURCE_MANAGER, *ROOT]
RUN_TASK = ("org/apache/hadoop/mapred/MapTask.run", "org/apache/hadoop/mapred/ReduceTask.run")
TASK = "org/apache/spark/executor/Executor$TaskRunner.run"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def yarn(workshop: Path) -> Iterator[YarnCluster]:
    """A ResourceManager and three NodeManagers, each on its own host."""
    with running_cluster(workshop / "yarn") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def coordinator(yarn: YarnCluster, workshop: Path) -> Coordinator:
    return Coordinator(yarn.lab, workshop / "yarn-runs")


@contextmanager
def running(app: Application) -> Iterator[Application]:
    try:
        yield app
    finally:
        app.kill()


@pytest.fixture(scope="module")
def job(yarn: YarnCluster) -> Iterator[Application]:
    """A Spark job of a driver and three busy executors."""
    with running(yarn.spark("cpu", "600", "3")) as app:
        app.wait_until_busy(3)
        yield app


@pytest.fixture(scope="module")
def main_run(coordinator: Coordinator, job: Application) -> Result:
    return coordinator.run("-f", "300", "-t", "5", "-j", job.id, *CLUSTER)


def processes(result: Result) -> list[dict[str, Any]]:
    """The processes of a run's recordings, or of `ps --json`, with their hosts."""
    assert result.code in (0, 3), str(result)
    if result.folder is None:
        return [{**one, "host": host["host"]} for host in json.loads(result.out) for one in host["processes"]]
    return [recording["process"] for host in result.run["hosts"] for recording in host["recordings"]]


def samples_below(profile: Profile, *methods: str) -> int:
    """How many samples have one of these methods."""
    return sum(
        path.values[0] for path in profile.paths(annotate=False) if set(methods).intersection(path.frames)
    )


def labels(result: Result) -> list[str]:
    return sorted(process["label"] for process in processes(result))


# A Spark job


def test_the_methods_of_a_job_and_their_shares(main_run: Result) -> None:
    assert main_run.code == 0, str(main_run)
    stacks = main_run.stacks("cluster/cpu")
    hot, cool = stacks.count("SparkBurn.hotCpu"), stacks.count("SparkBurn.coolCpu")
    chance = math.sqrt(0.75 * 0.25 / (hot + cool))
    assert hot + cool > 200 and abs(hot / (hot + cool) - 0.75) < 0.03 + 6 * chance
    path = [TASK, "SparkBurn.burn", "SparkBurn.hotCpu"]
    assert stacks.path_share(path) > 95


def test_the_processes_of_a_job_and_their_labels(
    yarn: YarnCluster, job: Application, main_run: Result
) -> None:
    """Exactly those in the nodes' process tables."""
    assert main_run.folder is not None
    found = processes(main_run)
    assert {(process["host"], process["pid"]) for process in found} == {
        (node.name, seen.inner_pid)
        for node in yarn.nodes
        for seen in node.processes()
        if job.id in seen.command and re.match(r"\S+/java ", seen.command)
    }
    assert labels(main_run) == ["driver", "executor 1", "executor 2", "executor 3"]
    for process in found:
        given, is_driver = process["labels"], process["label"] == "driver"
        assert given["application"] == job.id and given["app_attempt"] == "1"
        assert given["node"] == process["host"]
        assert given["container"].startswith(f"container_{job.id.partition('_')[2]}_01_")
        assert is_driver or process["label"] == f"executor {given['executor']}"
        assert (given["role"], given.get("stage")) == (("driver", None) if is_driver else ("executor", "0"))
        path = main_run.folder / "hosts" / process["host"] / str(process["pid"]) / "cpu.pb.gz"
        assert {**given, "process": process["label"]}.items() <= Profile.read(str(path)).labels.items()
    assert len({process["labels"]["container"] for process in found}) == 4
    assert main_run.run["target"] == {"kind": "yarn", "name": job.id}


def test_the_stage_of_a_job(main_run: Result) -> None:
    """Its tasks run before and after the recording; all that they do is of the one stage."""
    assert main_run.folder is not None
    record, block = (read(main_run.folder / "report.html") for read in (described, carried))
    names = [(one["name"], one["certain"]) for one in record["slices"]]
    assert names == [("stage 0.0", True)] and record["slices"][0]["label"].startswith("reduce at SparkBurn")
    burnt: Counter[bool] = Counter()
    for column, stacks in zip(record["columns"], block.columns, strict=True):
        count = sum(count for stack, count in stacks.items() if "SparkBurn.burn" in stack)
        burnt[column["slice"] == 0] += count
    assert burnt[True] > 200 and burnt[False] < 0.02 * burnt[True], burnt


def test_nothing_is_left_on_the_nodes(yarn: YarnCluster, main_run: Result) -> None:
    ours = re.compile(r"\.hprofiler-(run|ap)|\.attach_pid")
    for node in yarn.nodes:
        assert not [path for path in node.temporary_files() if ours.search(path)], node.name
        assert not [seen for seen in node.processes() if "/agent-" in seen.command], node.name


def test_readmes_recipes(coordinator: Coordinator, job: Application) -> None:
    """Those of its `bash` blocks, with this cluster's names. They record for two seconds."""
    text = (cache.CHECKOUT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n([^`]*rm:8088[^`]*)^```", text, re.M)
    folder = coordinator.new_folder()
    for recipe in block.splitlines():
        line = re.sub(r"application_\d+_\d+", job.id, recipe).replace("http://rm:8088", RESOURCE_MANAGER)
        line = re.sub(r" -t \d+ ", " -t 2 ", line)
        result = coordinator.run(*shlex.split(line)[1:], folder=folder)
        assert result.code == 0, f"{recipe}\n{result}"
    assert (folder / "nightly" / "report.html").stat().st_size > 100_000
    result = coordinator.run("apps", "-c", RESOURCE_MANAGER)
    (line,) = [line for line in result.out.splitlines() if line.startswith(job.id)]
    assert line.split()[1:5] == ["SPARK", "yarn", "root.default", "4"] and line.endswith("  SparkBurn")


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["yarn:name=SPARKBURN,user=yarn", "spark-executor"])
def test_running_applications(coordinator: Coordinator, job: Application, target: str) -> None:
    result = coordinator.run("ps", "-j", target, *CLUSTER, "--json")
    assert {process["labels"]["application"] for process in processes(result)} == {job.id}
    assert len(processes(result)) == (3 if target == "spark-executor" else 4)


@pytest.mark.nightly
def test_an_executor_that_is_killed_and_its_successor(
    yarn: YarnCluster, coordinator: Coordinator, job: Application
) -> None:
    """The driver requests another executor, which joins the recording."""
    found = processes(coordinator.run("ps", "-j", job.id, "--match", "spark-executor", *CLUSTER, "--json"))
    victim, new = found[0], str(1 + max(int(one["labels"]["executor"]) for one in found))
    recording = coordinator.start("-t", "80", "-j", job.id, *CLUSTER)
    recording.wait_until_recording(3 if len({one["host"] for one in found}) == 3 else 2)
    yarn.lab.hosts[victim["host"]].run(["kill", "-9", str(victim["pid"])])
    result = recording.result()

    def has_successor() -> bool:
        listed = yarn.rest(f"/proxy/{job.id}/api/v1/applications/{job.id}/executors") or []
        return any(executor.get("id") == new for executor in listed)

    wait_for(f"executor {new}", has_successor, 60)
    line = result.line(victim["host"], victim["pid"])
    assert line["label"] == victim["label"] and "ended during the recording" in line["reason"], line
    joined = [one for host in result.run["hosts"] for one in host["recordings"] if one["joined"]]
    assert {one["process"]["labels"]["executor"] for one in joined} == {new}, joined
    assert result.run["coverage"]["processes"]["found"] == 5


@pytest.mark.nightly
def test_an_application_that_ends_during_the_recording(coordinator: Coordinator, job: Application) -> None:
    """The run ends with it. Its executors' last profiles are complete; each process says how it ended. Its
    stages are those that the driver knew last, as there is no history server."""
    recording = coordinator.start("-t", "job:10m", "-j", job.id, *CLUSTER)
    recording.wait_until_recording(2)
    job.finish()
    job.wait_until_over()
    result = recording.result()
    assert sum(process["labels"].get("role") == "executor" for process in processes(result)) >= 2
    lines = [line for host in result.run["hosts"] for line in host["outcomes"] if line["pid"] is not None]
    assert len(lines) == 4 and all("ended" in line["reason"] for line in lines), lines
    assert result.folder is not None and "the driver has ended" in result.said, str(result)
    facts = read_facts(result.folder)
    assert facts is not None and facts.tasks.keys() == {"1", "2", "3"}


@pytest.mark.nightly
@pytest.mark.parametrize("how", stages.HOW)
def test_each_stage_has_its_own_method(yarn: YarnCluster, coordinator: Coordinator, how: str) -> None:
    """Stages of tasks of 200 ms, of a method each. Where they overlap, names of threads tell which it is."""
    with running(yarn.stages(how)) as app:
        app.wait_until_busy(3)
        result = coordinator.run("-f", "300", "-t", "20", "-j", app.id, *CLUSTER, "--json")
    found = stages.divided(result)
    assert found.stages >= 4 and found.right > stages.LEAST, found
    assert found.certain_share > 0.8 and found.wrong_share < 0.02, found
    assert 0.9 < found.cpu_ratio < 1.1, found
    assert result.folder is not None
    page = described(result.folder / "report.html")
    assert {lane["name"] for lane in page["lanes"]} >= {"Spark jobs", "Spark stages"}
    tables = blocks(page["job"], "table")
    known = {row["key"] for one in tables if one["id"] == "stages" for row in one["rows"]}
    assert len(known) >= 4 and known >= {one["name"] for one in page["slices"] if one["name"][:6] == "stage "}
    assert max(page["curves"]["curves"][0]["values"]) > 1  # tasks at once
    assert json.loads(result.out)["spark"]["application"] == app.id


@pytest.mark.nightly
def test_executors_of_dynamic_allocation_join(yarn: YarnCluster, coordinator: Coordinator) -> None:
    """They come, are removed, and one is killed, which gets a successor. Their CPU time is that which Spark
    counts, from the first task of each on."""
    with running(yarn.waves()) as app:
        app.wait_until_busy(1)
        recording = coordinator.start("-f", "300", "-t", "110", "-j", app.id, *CLUSTER, "--json")
        app.wait_until_busy(3)
        kill_executor(yarn, app, "2")
        result = recording.result(timeout=300)
    found = stages.divided(result)
    assert found.right > stages.LEAST and found.wrong_share < 0.02, found
    told = json.loads(result.out)
    assert told["seen"]["cpu"]["counted_by"] == "spark" and 0.7 < told["seen"]["cpu"]["share"] <= 1, told[
        "seen"
    ]
    processes = {one["label"]: one for one in told["processes"]}
    assert {"driver", "executor 1", "executor 2", "executor 3"} < processes.keys(), processes.keys()
    assert processes["executor 1"]["joined"] == 0 < processes["executor 3"]["joined"]
    ended = {label for label, one in processes.items() if one["ended_by"] == "process"}
    assert "executor 2" in ended and len(ended) > 1, "it was killed, and others were removed"
    of_executors = cpu_of_executors(result)
    for executor, (sampled, counted) in sorted(of_executors.items()):
        print(f"executor {executor}: sampled {sampled:.2f} s, Spark counts {counted:.2f} s")
    assert len(of_executors) >= 4
    for sampled, counted in of_executors.values():
        assert sampled == pytest.approx(counted, rel=0.05, abs=0.1)


def kill_executor(yarn: YarnCluster, app: Application, number: str) -> None:
    """By SIGKILL."""
    own = re.compile(rf"^\S+/java .*{app.id}.* --executor-id {number} ")
    ((node, pid),) = (
        (node, seen.inner_pid)
        for node in yarn.nodes
        for seen in node.processes()
        if own.search(f"{seen.command} ")
    )
    node.run(["kill", "-9", str(pid)])


def cpu_of_executors(result: Result) -> dict[str, tuple[float, float]]:
    """The CPU seconds of each executor's tasks that were sampled, and those that Spark counts: of one that
    joined, from its first task on."""
    assert result.folder is not None
    facts, found = read_facts(result.folder), {}
    assert facts is not None
    for host in result.run["hosts"]:
        for one in host["recordings"]:
            executor = one["process"]["labels"].get("executor", "driver")
            if executor == "driver":
                continue
            path = RunFolder(result.folder).times_path(host["name"], one["process"]["pid"], "cpu")
            profile = Profile.open(path, "compact")
            assert profile.times is not None
            since = 0 if one["joined"] else profile.times.start
            counted = stage_times(facts, [(executor, since, profile.times.end)])
            sampled = samples_below(profile, TASK) * one["interval"] / 1e9
            found[executor] = (sampled, sum(stage.cpu for stage in counted.values()))
    return found


@pytest.mark.nightly
def test_a_recording_begins_with_a_stage(yarn: YarnCluster, coordinator: Coordinator) -> None:
    """The driver is asked through the ResourceManager. An executor that came during the wait is recorded from
    the beginning."""
    with running(yarn.growing()) as app:
        app.wait_until_busy(1)
        words = ("-f", "300", "-t", "5", "--when", "stage 1", "-j", app.id, *CLUSTER, "--json")
        told = json.loads(coordinator.run(*words, timeout=300).out)
    assert (told["trigger"]["condition"], told["trigger"]["stage"]) == ("stage 1", 1)
    joined = {one["label"]: one["joined"] for one in told["processes"]}
    assert {"driver", "executor 1", "executor 2"} <= joined.keys() and joined["executor 2"] == 0, joined
    (event,) = told["events"]
    assert "stage 1.0" in {one["name"] for one in event["slices"]["stages"]}, event


# Other jobs


@pytest.mark.nightly
def test_a_driver_outside_of_containers_and_another_user(yarn: YarnCluster, coordinator: Coordinator) -> None:
    """In client mode the driver is on the client's machine, which is visited only if the user names it."""
    with running(yarn.spark("idle", "300", "1", mode="client", executors=1, user="prof")) as app:
        app.wait_until_busy(1)
        everything, wall = ["ExecutorLauncher", "driver", "executor 1"], ["-e", "wall"]
        mapped = coordinator.run("-t", "3", *wall, "-j", app.id, *CLUSTER, "--host-map", "coord=coord")
        assert mapped.code == 0 and labels(mapped) == everything, str(mapped)
        (driver,) = [process for process in processes(mapped) if process["label"] == "driver"]
        assert driver["host"] == "coord" and driver["main_class"] == "org.apache.spark.deploy.SparkSubmit"
        assert {process["user"] for process in processes(mapped)} == {"prof"}
        unmapped = coordinator.run("ps", "-j", app.id, *CLUSTER, "--json")
        assert labels(unmapped) == ["ExecutorLauncher", "executor 1"]
        assert "note: the Spark driver runs on coord, in no container, and is not profiled" in unmapped.err
        own = coordinator.run("-t", "3", *wall, "-j", app.id, "-c", RESOURCE_MANAGER, "--user", "prof")
        assert own.code == 0 and labels(own) == ["ExecutorLauncher", "executor 1"], str(own)


@pytest.mark.nightly
def test_only_the_nodes_of_an_application_are_visited(yarn: YarnCluster, coordinator: Coordinator) -> None:
    def visits(node: Host) -> str:
        return node.path("/var/log/sshd.log").read_text()

    with running(yarn.spark("alloc", "300", "1", executors=1, queue="nightly")) as app:
        app.wait_until_busy(1)
        before = {node.name: visits(node) for node in yarn.nodes}
        result = coordinator.run("-t", "6", "-e", "cpu,alloc", "-j", "yarn:queue=nightly", *CLUSTER)
        visited = {node.name for node in yarn.nodes if visits(node) != before[node.name]}
    assert result.code == 0, str(result)
    assert visited == {process["host"] for process in processes(result)} and len(visited) <= 2
    assert result.stacks("cluster/alloc").share("SparkBurn.hotAlloc") > 80


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_map_task_of_a_job(yarn: YarnCluster, coordinator: Coordinator) -> None:
    """20 of about 8 s of CPU time in three slots, most of which start during the recording. The part of the
    CPU time that the report says is that of the job's own counters."""
    yarn.keep_history()
    with running(yarn.mapreduce("pi", "-Dmapreduce.job.running.map.limit=3", "20", "600000000")) as app:
        words = ["-t", "job:12m", "--wait", "2m", "-j", app.id, *CLUSTER, "--json"]
        result = coordinator.run(*words, timeout=840)
        counted = re.search(r"CPU time spent \(ms\)=(\d+)", app.last_words())
    found = processes(result)
    assert {one["labels"]["task"] for one in found if "task" in one["labels"]} >= {
        f"m_{number:06}" for number in range(20)
    }
    assert not [one for one in labels(result) if "Localizer" in one]
    assert counted and result.folder is not None
    # MapReduce counts from a task's begin on: not what its JVM used before.
    cluster = Profile.open(result.folder / "cluster" / "cpu.pb.gz")
    sampled = samples_below(cluster, *RUN_TASK) / 99
    print(f"sampled {sampled:.1f} s of the {int(counted[1]) / 1e3:.1f} s that MapReduce counts")
    assert 0.8 <= sampled * 1e3 / int(counted[1]) < 1.1
    recordings = [one for host in result.run["hosts"] for one in host["recordings"]]
    assert sum(one["joined"] > 0 for one in recordings) >= 15 and result.run["sampling"]["duration"] < 720
    seen = json.loads(result.out)["seen"]
    cpu = seen["cpu"]
    assert cpu["counted_by"] == "mapreduce" and cpu["all_seconds"] * 1e3 == int(counted[1]), seen
    assert 0.8 <= cpu["share"] <= 1 and not seen["missed"], seen
    assert max(recorded for _, recorded, _ in seen["moments"]) >= 4  # three tasks and their master


@pytest.mark.nightly
def test_map_tasks(yarn: YarnCluster, coordinator: Coordinator) -> None:
    with running(yarn.mapreduce("pi", "2", "2000000000")) as app:
        base = f"/proxy/{app.id}/ws/v1/mapreduce/jobs/{app.id.replace('application', 'job')}"

        def two_are_busy() -> bool:
            tasks = (yarn.rest(f"{base}/tasks") or {}).get("tasks") or {}
            return sum(task["status"].startswith("Generated") for task in tasks.get("task", [])) == 2

        wait_for("two busy map tasks", two_are_busy, UP_SECONDS)
        result = coordinator.run("-t", "5", "-j", app.id, *CLUSTER)
    assert labels(result) == ["MRAppMaster", "task m_000000_0", "task m_000001_0"]
    assert {process["labels"].get("task") for process in processes(result)} == {None, "m_000000", "m_000001"}
    assert result.stacks("cluster/cpu").share("org/apache/hadoop/examples/QuasiMonteCarlo$QmcMapper.map") > 40
