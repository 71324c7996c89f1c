"""How long a replay of a million Spark tasks takes, and an account of thousands of stages at once."""

from __future__ import annotations

import random
import time
from heapq import heapreplace

from hprofiler.analysis.spark.account import account
from hprofiler.spark.application import SUCCESS, Application, Executor, Job, Stage, TaskTable
from hprofiler.spark.replay.schedule import Replay
from tests.bench.table import Row, under

_TASKS, _EXECUTORS, _CORES = 1_000_000, 50, 4
_OPEN = 3000


def rows() -> list[Row]:
    application = _application()
    begin = time.process_time()
    replay = Replay(application)
    made = time.process_time()
    assert replay.as_it_was == replay.measured
    replay.run({0: [time / 2 for time in replay.stages[0].duration]})
    ran = time.process_time()
    at_once = _open_at_once()
    replay = Replay(at_once)
    accounted = time.process_time()
    account(at_once, replay)
    whole = time.process_time() - accounted
    return [
        under(5, f"account of {_OPEN:,} Spark stages that are open at the same time", whole, "of CPU time"),
        under(2, f"replay of {_TASKS:,} Spark tasks", ran - made, "of CPU time"),
        under(20, "the same, with what is made once for all replays", ran - begin, "of CPU time"),
    ]


def _application() -> Application:
    """One stage on 200 slots that are always busy."""
    application = Application(executor_ids=[str(number) for number in range(_EXECUTORS)])
    for id_ in application.executor_ids:
        application.executors[id_] = Executor(id_, added=1, cores=_CORES)
    seed = random.Random(0)
    slots = [(1000, slot) for slot in range(_EXECUTORS * _CORES)]
    tasks = []
    for number in range(_TASKS):
        launch, slot = slots[0]
        finish = launch + seed.randint(50, 2000)
        heapreplace(slots, (finish, slot))
        tasks.append(
            {
                "tid": number,
                "index": number,
                "partition": number,
                "executor": slot // _CORES,
                "launch": launch,
                "finish": finish,
                "status": SUCCESS,
            }
        )
    end = max(finish for finish, _ in slots)
    stage = Stage(0, start=1000, end=end, status="COMPLETE", num_tasks=_TASKS, jobs=(0,))
    stage.tasks = TaskTable.of(tasks)
    application.stages[stage.key] = stage
    application.jobs[0] = Job(0, start=1000, end=end, stage_ids=(0,))
    return application


def _open_at_once() -> Application:
    """Stages of 20 tasks each, at any time."""
    application = Application(start=1000, end=600_000, executor_ids=["0"])
    application.executors["0"] = Executor("0", added=1, cores=400)
    seed = random.Random(0)
    for number in range(_OPEN):
        launches = [seed.randint(1000, 590_000) for _ in range(20)]
        rows = [
            {"index": place, "partition": place, "launch": launch, "finish": launch + 5000, "status": SUCCESS}
            for place, launch in enumerate(launches)
        ]
        stage = Stage(number, start=1000, end=600_000, status="COMPLETE", num_tasks=20, jobs=(0,))
        stage.tasks = TaskTable.of(rows)
        application.stages[stage.key] = stage
    application.jobs[0] = Job(0, start=1000, end=600_000, stage_ids=(*range(_OPEN),))
    return application
