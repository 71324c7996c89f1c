"""Small logs, each made for one thing that goes wrong in real ones: what is read of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hprofiler.analysis.spark.findings import judge
from hprofiler.spark.application import FAILED, SUCCESS, Application, Executor, task_slots
from hprofiler.spark.figures import figures
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.losses import loss_code, losses
from hprofiler.spark.memory import application_memory
from hprofiler.spark.replay.schedule import Replay
from tests.unit.spark_application import START, Made

CASES = Path(__file__).with_name("spark") / "cases"


def totals(application: Application) -> list[tuple[str, int, int, int]]:
    workers = application.workers
    return [(one.id, one.active_tasks, one.failed_tasks, one.total_duration) for one in workers]


def slots(application: Application) -> tuple[int, bool]:
    blocked = judge(application, Replay(application)).blocked
    return blocked.replay.slots, abs(blocked.replay.error) < 0.05


def times(application: Application) -> tuple[int, int, list[int]]:
    found = figures(application)
    (stage,) = found.stages
    return (
        stage.task_time,
        found.work["succeeded"].sums["executorCpuTime"],
        list(stage.stage.tasks.column("run_time")),
    )


def lost_memory(application: Application) -> tuple[dict[str, str], list[str]]:
    codes = [one.code for one in application_memory(application).verdicts]
    return losses(application), codes


def described(application: Application) -> list[str]:
    return [one.description for one in application.jobs.values()]


def most_read(application: Application) -> list[int]:
    return [max(stage.tasks.column("input_bytes")) for stage in application.stages.values()]


@pytest.mark.parametrize(
    ("case", "read", "expected", "codes"),
    [
        # As the history server of Spark 4.3 counts.
        ("resubmitted", totals, [("1", 0, 1, 1000), ("2", 0, 0, 2900)], []),
        ("gpu-slots.gz", slots, (4, True), []),
        ("clock-back", times, (1900, 1_710_000_000, [1000, 0, 5000]), ["clock-back"]),
        ("kill-9", lost_memory, ({"1": "sigkill"}, ["killed-by-signal", "heap-too-large"]), []),
        ("non-utf8", described, ["caf\ufffd report"], ["repaired"]),
        ("above-2-53", most_read, [1 << 53], ["repaired"]),
        ("eventlog_v2_app-c", lambda application: list(application.jobs), [9], ["compacted"]),
    ],
)
def test_a_log(case: str, read: Callable[[Application], object], expected: object, codes: list[str]) -> None:
    application = read_application(local_files(CASES / case))
    assert read(application) == expected
    assert [note.code for note in application.notes] == codes


@pytest.mark.parametrize(
    ("cores", "gpus", "of_task", "expected"),
    [
        (16, "1", "0.5", 2),
        (16, "2", "0.4", 4),
        (16, "4", "2", 2),
        (4, "8", "1", 4),
        (8, "", "0.1", 8),
        (8, "1", "x", 8),
    ],
)
def test_gpus_bound_tasks(cores: int, gpus: str, of_task: str, expected: int) -> None:
    settings = {"spark.executor.resource.gpu.amount": gpus, "spark.task.resource.gpu.amount": of_task}
    assert task_slots(Application(properties=settings), Executor("1", cores=cores)) == expected


def test_gpus_of_a_resource_profile() -> None:
    application = Application(
        properties={"spark.executor.resource.gpu.amount": "1", "spark.task.resource.gpu.amount": "1"}
    )
    application.resource_profiles[3] = {"executor": {"cores": 16, "gpu": 2}, "task": {"cpus": 2, "gpu": 0.25}}
    assert task_slots(application, Executor("1", cores=16, resource_profile=3)) == 8
    assert task_slots(application, Executor("1", cores=16)) == 1


REASONS = {
    "Container killed by YARN for exceeding physical memory limits. 9.1 GB of 9 GB used.": "memory",
    "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).": "sigkill",
    "exited with exit code 137(SIGKILL, possible container OOM).\nThe API gave: OOMKilled": "memory",
    "Command exited with code 52": "heap",
    "Unable to create executor due to Java heap space": "heap",
    "java.lang.OutOfMemoryError: GC overhead limit exceeded": "heap",
    "java.lang.OutOfMemoryError: Direct buffer memory\nCommand exited with code 52": "jvm",
    "java.lang.OutOfMemoryError: unable to create new native thread": "jvm",
    "java.lang.OutOfMemoryError: Metaspace": "jvm",
    "java.lang.OutOfMemoryError: Requested array size exceeds VM limit": "unknown",
    "java -Xmx4g -XX:OnOutOfMemoryError=x -XX:MaxMetaspaceSize=1g --conf spark.executor.memory=4g "
    "-Dspark.decommission.enabled=true A --executor-memory 4g exited with code 143": "sigterm",
    "The node was low on resource: memory.": "memory",
    "Lost executor: closed idle connection": "disconnected",
    "Command exited with code 137": "sigkill",
    "Container from a bad node: container_1 on host: n1. Exit status: 143. Diagnostics: …": "sigterm",
    "Container container_1 on host: n1 was preempted.": "preemption",
    "Executor decommission.": "decommission",
    "Container container_1 exited from explicit termination request.": "idle",
    "Executor killed by driver.": "idle",
    "Executor heartbeat timed out after 123456 ms": "heartbeat",
    "Container released on a *lost* node": "host-lost",
    "worker lost: Not receiving heartbeat for 60 seconds": "heartbeat",
    "Command exited with code 1": "exit",
    "Command exited with code 139": "crash",
    "Executor exited with status 56": "heartbeat",
    "exit code -1; brief reason: Evicted; The node was low on resource: ephemeral-storage": "evicted",
    "Remote RPC client disassociated. Likely due to containers exceeding thresholds, or …": "disconnected",
    "": "unknown",
}


@pytest.mark.parametrize(("reason", "code"), REASONS.items())
def test_why_an_executor_ended(reason: str, code: str) -> None:
    assert loss_code(reason) == code


def test_executors_that_are_stopped_with_the_application_are_not_lost() -> None:
    def executor(id_: str, removed: int, reason: str) -> Executor:
        return Executor(id_, cores=1, added=1000, removed=removed, reason=reason)

    terminated, killed = (f"Command exited with code {code}" for code in (143, 137))
    ended = [
        executor("1", 90_000, terminated),
        executor("2", 20_000, terminated),
        executor("3", 90_000, killed),
    ]
    application = Application(start=1, end=90_500, executors={one.id: one for one in ended})
    assert losses(application) == {"1": "driver-end", "2": "sigterm", "3": "sigkill"}


def test_a_compacted_log_says_nothing_of_times_without_stages() -> None:
    application = read_application(local_files(CASES / "eventlog_v2_app-c"))
    found = judge(application, Replay(application)).findings
    assert (found[0].code, found[0].parameters) == ("compacted", {"removed": 9, "kept": 1})
    assert all(one.code != "no-stage" for one in found)


def test_databricks_names_its_own_version(tmp_path: Path) -> None:
    """A later file of a log has no LogStart."""
    properties = {"spark.databricks.clusterUsageTags.sparkVersion": "15.4.x-scala2.12"}
    log = tmp_path / "eventlog"
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties}
    lines = ({"Event": "DBCEventLoggingListenerMetadata"}, environment)
    log.write_text("\n".join(map(json.dumps, lines)))
    assert read_application(local_files(log)).version == "15.4.x-scala2.12"


@pytest.mark.parametrize(("status", "code"), [(SUCCESS, "idle"), (FAILED, "sigterm")])
def test_dynamic_allocation_ends_executors_that_are_idle(status: int, code: str) -> None:
    made = Made(a=2)
    made.executor("b", 2, removed=5000)
    made.application.executors["b"].reason = "Container exited with exit code 143"
    made.application.properties["spark.dynamicAllocation.enabled"] = "true"
    made.stage(0, 0, 60_000, [(0, 60_000), (0, 4000, {"executor": 1, "status": status})])
    made.application.end = START + 60_000
    assert losses(made.application) == {"b": code}
