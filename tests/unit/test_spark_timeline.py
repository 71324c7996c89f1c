"""Active tasks over time, and what they did."""

from __future__ import annotations

import random

import pytest

from hprofiler.spark.application import SUCCESS, Application, Stage, TaskTable
from hprofiler.spark.figures import figures
from hprofiler.spark.timeline import timeline


def application(*tasks: dict[str, int], end: int = 0) -> Application:
    stage = Stage(0, tasks=TaskTable.of(tasks))
    return Application(stages={(0, 0): stage}, end=end)


def test_tasks_and_what_they_did() -> None:
    found = timeline(
        application(
            {"launch": 1000, "finish": 3000, "run_time": 1600, "cpu_time": 1_000_000_000, "gc_time": 400},
            {"launch": 2000, "finish": 5000, "run_time": 3000},
        ),
        buckets=4,
    )
    assert (found.start, found.width) == (1000, 1000)
    assert found.active == [1.0, 2.0, 1.0, 1.0, 0.0]
    assert found.most == [1, 2, 1, 1, 0]
    assert found.parts["cpu"] == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert found.parts["gc"] == [0.2, 0.2, 0.0, 0.0, 0.0]
    assert found.parts["run"] == [0.8, 1.8, 1.0, 1.0, 0.0]


def test_it_begins_with_the_first_stage() -> None:
    """A stage may wait for executors before its first task."""
    task = {"launch": 3000, "finish": 5000, "fetch_wait": 1000}
    stage = Stage(0, start=1000, end=5000, tasks=TaskTable.of([task]))
    found = timeline(Application(stages={(0, 0): stage}), buckets=2)
    assert (found.start, found.active, found.most) == (1000, [0.0, 1.0, 0.0], [0, 1, 0])
    record = found.record()
    assert record["cores"]["shuffleRead"] == [0.0, 0.5, 0.0] and set(record["cores"]) >= {"cpu", "gc"}


def test_a_task_that_runs_lasts_until_the_last_event() -> None:
    found = timeline(application({"launch": 1000, "finish": 2000}, {"launch": 1500}, end=3000), buckets=4)
    assert found.active == [1.0, 2.0, 1.0, 1.0, 0.0]
    assert timeline(application()).active == []


def test_the_average_is_that_of_the_buckets() -> None:
    """Whatever a task does between its launch and its end, it is active; also one that runs, or was lost."""
    rows = [{"launch": 1000, "finish": 2000, "run_time": 100, "status": SUCCESS}, {"launch": 1500}]
    stages = {
        (0, 0): Stage(0, start=1000, end=2500, status="COMPLETE", tasks=TaskTable.of(rows)),
        (1, 0): Stage(1, start=2000, status="ACTIVE", tasks=TaskTable.of([{"launch": 2000}])),
    }
    made = Application(stages=stages, last_event=3000)
    line, found = timeline(made, buckets=4), figures(made)
    assert found.average_active_tasks == pytest.approx((1000 + 1000 + 1000) / 2000)
    assert sum(line.active) * line.width == pytest.approx(found.average_active_tasks * found.elapsed)


@pytest.mark.parametrize("buckets", [1, 7, 100, 2000])
def test_nothing_is_lost(buckets: int) -> None:
    chance = random.Random(3)
    tasks = []
    for _ in range(500):
        launch = chance.randrange(10_000)
        length = chance.choice((0, 1, 30, 5000))
        tasks.append({"launch": launch, "finish": launch + length, "cpu_time": length * 700_000})
    found = timeline(application(*tasks), buckets)
    whole = sum(task["finish"] - task["launch"] for task in tasks)
    assert sum(found.active) * found.width == pytest.approx(whole, rel=1e-3)
    assert sum(found.parts["cpu"]) * found.width == pytest.approx(0.7 * whole, rel=1e-3)
    moments = {one["launch"] for one in tasks}
    at_once = max(sum(one["launch"] <= moment < one["finish"] for one in tasks) for moment in moments)
    assert max(found.most) == at_once
