"""Small Spark applications for tests, with times in milliseconds from 0; what Spark says of a real one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hprofiler.spark.application import SUCCESS, Application, Executor, Job, Stage, TaskTable

START = 1_000_000
"""When they begin, in milliseconds since 1970."""
LOG = Path(__file__).with_name("spark") / "event_log"
"""Of a real application by Spark 3.5, without members that nobody reads. Its driver's answers: ANSWERS."""
ANSWERS: dict[str, Any] = json.loads(LOG.with_name("rest.json").read_text())
ID = "local-1795693732034"


def served(answers: Mapping[str, Any] = ANSWERS, below: str = "") -> dict[str, Any]:
    """The paths of a server that has these answers."""
    more = {path.replace("/jobs", "/environment"): {} for path in answers if path.endswith("/jobs")}
    return {f"{below}/api/v1{path}": content for path, content in {**more, **answers}.items()}


def event(name: str, **members: Any) -> bytes:
    """A line of an event log."""
    named = {key.replace("_", " "): value for key, value in members.items()}
    return json.dumps({"Event": f"SparkListener{name}", **named}, separators=(",", ":")).encode()


def stage_event(name: str, id_: int = 0, **members: Any) -> bytes:
    info = {"Stage ID": id_, "Stage Attempt ID": 0, "Stage Name": "count", "Number of Tasks": 2, **members}
    return event(name, Stage_Info=info)


METRICS = {"Executor Run Time": 900, "Shuffle Read Metrics": {"Fetch Wait Time": 7}}


def task_event(
    name: str, tid: int, reason: str = "Success", metrics: dict[str, Any] = METRICS, **info: Any
) -> bytes:
    times = {"Launch Time": 1000, "Finish Time": 2000 if name == "TaskEnd" else 0}
    where = {"Executor ID": "1", "Host": "node1", "Locality": "ANY"}
    return event(
        name,
        Stage_ID=0,
        Stage_Attempt_ID=0,
        Task_End_Reason={"Reason": reason},
        Task_Info={"Task ID": tid, "Index": tid, **where, **times, **info},
        Task_Metrics=metrics,
    )


class Made:
    """An application in the making: executors, jobs, and stages whose tasks are (launch, duration)."""

    def __init__(self, **cores: int) -> None:
        self.application = Application(id="app-1", start=START)
        for id_, count in cores.items():
            self.executor(id_, count)

    def executor(self, id_: str, cores: int, added: int = 0, removed: int = 0, host: str = "") -> None:
        self.application.executor_ids.append(id_)
        self.application.executors[id_] = Executor(
            id_, host or f"host-{id_}", added=START + added, removed=removed and START + removed, cores=cores
        )

    def job(self, id_: int, start: int, end: int, stages: tuple[int, ...], sql: int | None = None) -> None:
        job = Job(id_, START + start, START + end, "SUCCEEDED", stage_ids=stages, sql=sql)
        self.application.jobs[id_] = job

    def stage(
        self,
        id_: int,
        start: int,
        end: int,
        tasks: list[tuple[int, int] | tuple[int, int, dict[str, int]]],
        parents: tuple[int, ...] = (),
        job: int | None = 0,
        attempt: int = 0,
    ) -> None:
        rows = [
            {
                "tid": 1000 * id_ + number,
                "index": number,
                "partition": number,
                "launch": START + launch,
                "finish": START + launch + duration,
                "status": SUCCESS,
                "run_time": duration,
                **(more[0] if more else {}),
            }
            for number, (launch, duration, *more) in enumerate(tasks)
        ]
        stage = Stage(id_, attempt, start=START + start, end=START + end, status="COMPLETE", parents=parents)
        stage.num_tasks, stage.tasks = len(rows), TaskTable.of(rows)
        stage.jobs = () if job is None else (job,)
        self.application.stages[id_, attempt] = stage
