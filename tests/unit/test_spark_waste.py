"""What was wasted: failed, killed and repeated tasks, lost executors, spills, idle slots."""

from __future__ import annotations

import pytest

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.findings import judge
from hprofiler.analysis.spark.words import sentence
from hprofiler.report.spark.account import remedy_of
from hprofiler.spark.application import FAILED, KILLED
from hprofiler.spark.replay.schedule import Replay
from tests.unit.spark_application import START, Made

MB = 1 << 20


def findings(made: Made, end: int) -> dict[str, SparkFinding]:
    made.application.end = START + end
    return {one.code: one for one in judge(made.application, Replay(made.application)).findings}


def test_work_that_was_lost() -> None:
    """Half of the time is of two tasks that failed with their executor, and one that ran again."""
    made = Made(a=2)
    made.executor("b", 2, removed=4000)
    made.application.executors["b"].reason = "Container killed by YARN for exceeding memory limits"
    made.job(0, 0, 8000, (0,))
    lost = {"status": FAILED, "executor": 1}
    made.stage(
        0, 0, 8000, [(0, 8000), (0, 4000), (0, 4000, lost), (4000, 4000, {"index": 1, "partition": 1})]
    )
    made.application.end = START + 8000
    judged = judge(made.application, Replay(made.application))
    found = {one.code: one for one in judged.findings}
    failed, again = found["failed-tasks"], found["repeated-tasks"]
    assert (failed.parameters["tasks"], failed.parameters["lost"]) == (1, {"memory": 1})
    assert (failed.seconds, again.seconds, again.parameters["tasks"]) == (1.6, 1.6, 1)
    assert "spark.executor.memoryOverhead" in remedy_of(failed)
    assert "1 executor lost for memory outside of the heap" in sentence(judged.findings)


def test_tasks_that_fail_long_after_an_executor_was_lost_have_another_cause() -> None:
    made = Made(a=2)
    made.executor("b", 2, removed=1000)
    made.application.executors["b"].reason = "Container preempted by scheduler"
    made.job(0, 0, 40_000, (0,))
    made.stage(0, 0, 40_000, [(0, 40_000), (0, 30_000, {"status": FAILED}), (30_000, 10_000, {"index": 1})])
    found = findings(made, 40_000)
    assert "lost" not in found["failed-tasks"].parameters and "preempted" not in remedy_of(
        found["failed-tasks"]
    )
    assert found["executors-lost"].parameters == {"lost": {"preemption": 1}}


@pytest.mark.parametrize(
    ("original", "copy", "code"),
    [
        ({"status": KILLED}, {}, ""),  # its copy was faster
        ({}, {"status": KILLED}, "speculative-tasks"),
    ],
)
def test_copies_of_slow_tasks(original: dict[str, int], copy: dict[str, int], code: str) -> None:
    made = Made(a=4)
    made.job(0, 0, 10_000, (0,))
    of_slow = {"index": 1, "speculative": 1, **copy}
    made.stage(0, 0, 10_000, [(0, 9000), (0, 10_000, original), (4000, 6000, of_slow)])
    wasted = set(findings(made, 10_000)) & {"killed-tasks", "speculative-tasks", "repeated-tasks"}
    assert wasted == ({code} if code else set())


@pytest.mark.parametrize(
    ("spilled", "cpu", "cost"),
    [
        (63 * MB, 1000, None),  # of a task
        (64 * MB, 1000, 20 * 2 * 64 * MB / 100_000 / 20_000),  # so long a slow disk writes and reads it
        (640 * MB, 19_000, 1.0),  # all that Spark does not time
    ],
)
def test_what_a_spill_costs(spilled: int, cpu: int, cost: float | None) -> None:
    """20 tasks of 20 s at a time, of which Spark times what is on a CPU."""
    made = Made(a=20)
    made.job(0, 0, 20_000, (0,))
    did = {"disk_spilled": spilled, "cpu_time": cpu * 1_000_000}
    made.stage(0, 0, 20_000, [(0, 20_000, did)] * 20)
    found = findings(made, 20_000)
    assert ("spill" in found) == (cost is not None)
    if cost is not None:
        assert found["spill"].seconds == pytest.approx(cost, abs=0.01)


@pytest.mark.parametrize(("tasks", "seconds"), [(12, 7.0), (2, 0)])
def test_slots_that_are_idle_beside_tasks_are_on_top(tasks: int, seconds: float) -> None:
    """Of 40 slots 12 have a task all along. Where fewer than a quarter have one, another finding says so."""
    made = Made(a=40)
    made.job(0, 0, 10_000, (0,))
    made.stage(0, 0, 10_000, [(0, 10_000, {"cpu_time": 10**10})] * tasks)
    made.application.end = START + 10_000
    found = judge(made.application, Replay(made.application)).findings
    idle = next(one for one in found if one.code == "idle-slots")
    assert idle.seconds == seconds and ("slots had no task for 70%" in sentence(found).lower()) == (
        seconds > 0
    )
