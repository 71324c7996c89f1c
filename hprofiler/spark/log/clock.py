"""A driver's clock that was set forward while tasks ran.

Tasks begin and end by the driver's clock, and what they did is by that of their executors. After the driver's
was set forward, all tasks that ran meanwhile seem to have waited for the same time, though they began and
ended at different ones. If the driver hung they would have waited for different times, and ended at once.
"""

from __future__ import annotations

from hprofiler.spark.application import SUCCESS, TASK_COLUMNS, Application, TaskTable

_LEAST = 60_000
"""Milliseconds. A clock that is kept right moves by less."""
_APART = 3
_MOMENTS = ("launch", "finish", "getting_result")


def set_forward(application: Application, since: int, until: int) -> int:
    """By how many milliseconds the clock was set forward between two moments, of which the log has none in
    between. 0 if tasks do not show it."""
    if until - since < _LEAST:
        return 0
    tasks = []
    for stage in application.stages.values():
        if stage.start <= since and (stage.end >= until or not stage.end):
            for launch, finish, *more in stage.tasks.columns("launch", "finish", "scheduler_delay", "status"):
                if 0 < launch <= since and finish >= until and more[1] == SUCCESS:
                    tasks.append((launch, finish, more[0]))
    if not tasks:
        return 0
    launches, finishes, waits = (max(times) - min(times) for times in zip(*tasks, strict=True))
    by = min(wait for *_, wait in tasks)
    known = _LEAST <= by <= until - since and _APART * waits < min(launches, finishes)
    return by if known else 0


def set_right(application: Application, until: int, by: int) -> None:
    """Make all moments up to one what they would have been by the later clock."""

    def later(moment: int) -> int:
        return moment + by if 0 < moment <= until else moment

    application.start = later(application.start)
    for executor in application.executors.values():
        executor.added, executor.removed = later(executor.added), later(executor.removed)
    for job in application.jobs.values():
        job.start, job.end = later(job.start), later(job.end)
    for stage in application.stages.values():
        if 0 < (stage.first_task_launched or stage.start) <= until:
            stage.tasks = _moved(application, stage.tasks, until, by)
        stage.start, stage.end = later(stage.start), later(stage.end)
        stage.first_task_launched = later(stage.first_task_launched)
    for query in application.sql.values():
        query.start, query.end = later(query.start), later(query.end)
    for id_, (time, error) in application.unplanned.items():
        application.unplanned[id_] = later(time), error
    for stream in application.streams.values():
        stream.start = later(stream.start)
        for batch in stream.batches:
            batch.start = later(batch.start)


def _moved(application: Application, tasks: TaskTable, until: int, by: int) -> TaskTable:
    moments = [TASK_COLUMNS.index(name) for name in _MOMENTS]
    launch, finish, executor = map(TASK_COLUMNS.index, ("launch", "finish", "executor"))
    moved = TaskTable()
    for values in tasks.columns(*TASK_COLUMNS):
        row = list(values)
        if 0 < row[launch] <= until < row[finish]:
            of = application.executors[application.executor_ids[row[executor]]]
            of.total_duration = max(0, of.total_duration - by)
        for column in moments:
            row[column] += by if 0 < row[column] <= until else 0
        moved.add(tuple(row))
    moved.pack()
    return moved
