"""How long a replay of a million Spark tasks takes."""

from __future__ import annotations

import random
import time
from heapq import heapreplace

from hprofiler.spark.application import SUCCESS, Application, Executor, Job, Stage, TaskTable
from hprofiler.spark.replay.schedule import Replay
from tests.bench.table import Row, under

_TASKS, _EXECUTORS, _CORES = 1_000_000, 50, 4


def rows() -> list[Row]:
    application = _application()
    begin = time.process_time()
    replay = Replay(application)
    made = time.process_time()
    assert replay.as_it_was == replay.measured
    replay.run({0: [time / 2 for time in replay.stages[0].duration]})
    ran = time.process_time()
    return [
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
