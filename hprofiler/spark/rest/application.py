"""A whole application by Spark's REST interface, where its event log cannot be had: of a running driver.

The interface does not say which stages wait for which, and keeps only the newest stages and tasks.
"""

from __future__ import annotations

import time
from typing import Any

from hprofiler.base.answers import mapping, member, number, objects, text
from hprofiler.base.errors import HprofilerError
from hprofiler.base.text import printable, without_middle
from hprofiler.spark.application import (
    FAILED,
    KILLED,
    LOCALITIES,
    MOST_EXECUTORS,
    MOST_JOBS,
    RUNNING,
    SUCCESS,
    TASK_COLUMNS,
    Application,
    Executor,
    Job,
    Note,
    Stage,
)
from hprofiler.spark.causes import cause_of
from hprofiler.spark.facts import SparkError
from hprofiler.spark.log.reading import masked
from hprofiler.spark.log.sql import (
    MOST_EXECUTIONS,
    MOST_PACKED,
    Details,
    Metric,
    PlanNode,
    SqlExecution,
    pack_details,
)
from hprofiler.spark.rest.server import Ask, Server, find_application, moment

_PAGE = 1000
_QUERIES = {"details": "true", "planDescription": "true", "length": str(_PAGE)}
_SECONDS = 600.0
_MOST_STAGES = 5000
_MOST_WAITING = 100
_MOST_METRICS = 100
_LONGEST = 1000
_LONGEST_DETAILS = 20_000
_STATUSES = {"SUCCESS": SUCCESS, "FAILED": FAILED, "KILLED": KILLED}
_METRICS: dict[str, tuple[str, ...]] = {
    "run_time": ("executorRunTime",),
    "cpu_time": ("executorCpuTime",),
    "deserialize_time": ("executorDeserializeTime",),
    "deserialize_cpu_time": ("executorDeserializeCpuTime",),
    "gc_time": ("jvmGcTime",),
    "serialize_time": ("resultSerializationTime",),
    "fetch_wait": ("shuffleReadMetrics", "fetchWaitTime"),
    "shuffle_write_time": ("shuffleWriteMetrics", "writeTime"),
    "remote_requests": ("shuffleReadMetrics", "remoteReqsDuration"),
    "result_size": ("resultSize",),
    "peak_memory": ("peakExecutionMemory",),
    "memory_spilled": ("memoryBytesSpilled",),
    "disk_spilled": ("diskBytesSpilled",),
    "input_bytes": ("inputMetrics", "bytesRead"),
    "input_records": ("inputMetrics", "recordsRead"),
    "output_bytes": ("outputMetrics", "bytesWritten"),
    "output_records": ("outputMetrics", "recordsWritten"),
    "shuffle_remote_bytes": ("shuffleReadMetrics", "remoteBytesRead"),
    "shuffle_local_bytes": ("shuffleReadMetrics", "localBytesRead"),
    "shuffle_remote_bytes_to_disk": ("shuffleReadMetrics", "remoteBytesReadToDisk"),
    "shuffle_remote_blocks": ("shuffleReadMetrics", "remoteBlocksFetched"),
    "shuffle_local_blocks": ("shuffleReadMetrics", "localBlocksFetched"),
    "shuffle_read_records": ("shuffleReadMetrics", "recordsRead"),
    "shuffle_write_bytes": ("shuffleWriteMetrics", "bytesWritten"),
    "shuffle_write_records": ("shuffleWriteMetrics", "recordsWritten"),
}


def fetch_application(
    ask: Ask, wanted: str | None, seconds: float = _SECONDS, attempt: str = ""
) -> Application:
    """An application; the only one that the server has, if none is named, and its newest attempt. Raises
    HprofilerError.

    Spark has the newest stages first: if answers take longer than so many seconds, older ones lack tasks.
    """
    server = Server(ask, time.monotonic() + seconds)
    found, api = _begin(server, wanted, attempt)
    _add_times(found, server.get(f"/applications/{found.id}"))
    for one in objects(server.get(f"{api}/jobs"))[:MOST_JOBS]:
        job = _job(one)
        found.jobs[job.id] = job
    stages = objects(server.get(f"{api}/stages"))
    if len(stages) > _MOST_STAGES:
        found.notes.append(Note("stages-not-kept", len(stages) - _MOST_STAGES, f"{_MOST_STAGES:,}"))
    for one in stages[:_MOST_STAGES]:
        stage = _stage(one)
        found.stages[stage.key] = stage
    lacking = 0
    for stage in found.stages.values():
        try:
            if stage.status not in ("PENDING", "SKIPPED"):
                _add_tasks(found, stage, server, f"{api}/stages/{stage.id}/{stage.attempt}/taskList")
        except SparkError:
            lacking += 1
    _add_times_of_driver(found)
    try:
        _add_queries(found, server, f"{api}/sql")
    except SparkError:
        found.notes.append(Note("too-slow", lacking))
    waiting: dict[int, tuple[int, ...]] = {}
    for job in found.jobs.values():
        for id_ in job.stage_ids:
            waiting[id_] = (*waiting.get(id_, ())[:_MOST_WAITING], job.id)
    for stage in found.stages.values():
        stage.jobs = waiting.get(stage.id, ())
        for id_ in stage.jobs:  # the interface does not say why a job failed
            if found.jobs[id_].status == "FAILED":
                found.jobs[id_].failure = stage.failure or found.jobs[id_].failure
    found.notes.append(Note("by-rest"))
    return found


def fetch_settings(ask: Ask, wanted: str | None, seconds: float = _SECONDS, attempt: str = "") -> Application:
    """The settings and the executors of an application alone. Raises HprofilerError."""
    return _begin(Server(ask, time.monotonic() + seconds), wanted, attempt)[0]


def _begin(server: Server, wanted: str | None, attempt: str) -> tuple[Application, str]:
    """With its settings and executors, and the path of its other answers."""
    there = find_application(server, wanted, attempt)
    found = Application(id=there.id, name=there.name, attempt=there.attempt, version=there.version)
    found.notes += there.notes
    _add_environment(found, server.get(f"{there.path}/environment"))
    for one in objects(server.get(f"{there.path}/allexecutors"))[:MOST_EXECUTORS]:
        _add_executor(found, one)
    return found, there.path


def _add_times(found: Application, answer: object) -> None:
    attempts = objects(answer, "attempts")
    own = next((one for one in attempts if text(one, "attemptId", limit=20) == found.attempt), {})
    found.user = text(own, "sparkUser")
    found.start = moment(own, "startTime")
    found.end = moment(own, "endTime") if member(own, "completed") is True else 0
    found.last_event = found.end or int(time.time() * 1000)


def _add_times_of_driver(found: Application) -> None:
    """Those of its tasks, which it has in local mode: Spark writes the application's own in their place."""
    driver = found.executors.get("driver")
    if driver is None:
        return
    driver.total_duration = driver.total_gc_time = 0
    number = found.executor_ids.index("driver")
    for stage in found.stages.values():
        for executor, duration, gc in stage.tasks.columns("executor", "duration", "gc_time"):
            if executor == number:
                driver.total_duration += duration
                driver.total_gc_time += gc


def _add_environment(found: Application, answer: object) -> None:
    pairs = member(answer, "sparkProperties")
    for pair in pairs[:10_000] if isinstance(pairs, list) else []:
        if isinstance(pair, list) and len(pair) == 2:
            name, value = (text(one) for one in pair)
            found.properties[name] = masked(name, value)


def _add_executor(found: Application, one: dict[str, Any]) -> None:
    key = text(one, "id", limit=64)
    host, _, port = text(one, "hostPort", limit=300).rpartition(":")
    peaks = mapping(one, "peakMemoryMetrics")
    executor = Executor(
        key,
        host=host.strip("[]"),
        port=int(port) if port.isdecimal() and len(port) < 6 else 0,
        added=moment(one, "addTime"),
        removed=moment(one, "removeTime"),
        reason=text(one, "removeReason"),
        cores=number(one, "totalCores"),
        max_memory=number(one, "maxMemory"),
        max_onheap=number(one, "memoryMetrics", "totalOnHeapStorageMemory"),
        resource_profile=number(one, "resourceProfileId"),
        peak={name: number(peaks, name) for name in list(peaks)[:100]},
        active_tasks=number(one, "activeTasks"),
        completed_tasks=number(one, "completedTasks"),
        failed_tasks=number(one, "failedTasks"),
        total_tasks=number(one, "totalTasks"),
        total_duration=number(one, "totalDuration"),
        total_gc_time=number(one, "totalGCTime"),
        total_input_bytes=number(one, "totalInputBytes"),
        total_shuffle_read=number(one, "totalShuffleRead"),
        total_shuffle_write=number(one, "totalShuffleWrite"),
    )
    if key == "driver":
        found.driver = executor.host
    found.executors[key] = executor
    found.executor_ids.append(key)


def _job(one: dict[str, Any]) -> Job:
    ids = member(one, "stageIds")
    known = tuple(id_ for id_ in ids if type(id_) is int and id_ >= 0) if isinstance(ids, list) else ()
    return Job(
        number(one, "jobId"),
        start=moment(one, "submissionTime"),
        end=moment(one, "completionTime"),
        status=text(one, "status", limit=20),
        name=text(one, "name"),
        description=text(one, "description"),
        group=text(one, "jobGroup"),
        stage_ids=known,
        num_tasks=number(one, "numTasks"),
        num_skipped_tasks=number(one, "numSkippedTasks"),
    )


def _add_queries(found: Application, server: Server, path: str) -> None:
    """Those that the server has. An application without Spark SQL has no such path."""
    size = offset = without_plan = left_out = 0
    while True:
        try:
            answer = server.get(path, {**_QUERIES, "offset": str(offset)})
        except SparkError:
            raise
        except HprofilerError:
            return
        page = objects(answer)
        if all(number(one, "id") in found.sql for one in page):  # the server does not know pages
            break
        for one in page:
            if len(found.sql) >= MOST_EXECUTIONS:
                left_out += 1
                continue
            query = _query(found, one)
            packed = pack_details(_details(one))
            if size + len(packed) <= MOST_PACKED:
                size += len(packed)
                query.packed = packed
            else:
                without_plan += 1
            found.sql[query.id] = query
        if len(page) < _PAGE:
            break
        offset += _PAGE
    if left_out:
        found.notes.append(Note("sql-not-kept", left_out, f"{MOST_EXECUTIONS:,}"))
    if without_plan:
        found.notes.append(Note("plans-not-kept", without_plan, f"{MOST_PACKED >> 20} MiB"))


def _query(found: Application, one: dict[str, Any]) -> SqlExecution:
    start, id_ = moment(one, "submissionTime"), number(one, "id")
    status, message = text(one, "status", limit=20), _raw(one, "errorMessage")
    root = number(one, "rootExecutionId") if "rootExecutionId" in one else id_
    query = SqlExecution(id_, root, text(one, "description"), start)
    query.query = text(one, "queryId")
    if status != "RUNNING":
        query.end = start + number(one, "duration")
        failed_jobs = member(one, "failedJobIds")  # before Spark 3.4 nothing else says that it failed
        query.error = message or (("it failed" if not failed_jobs else None) if status == "FAILED" else "")
    for name, state in (("running", "RUNNING"), ("success", "SUCCEEDED"), ("failed", "FAILED")):
        jobs = member(one, f"{name}JobIds")
        for job in jobs if isinstance(jobs, list) else []:
            if type(job) is int and job >= 0:
                query.jobs[job] = state
                query.stages.update(dict.fromkeys(found.jobs[job].stage_ids if job in found.jobs else ()))
    return query


def _details(one: dict[str, Any]) -> Details:
    """Its plan. Accumulators are not in the answer: metrics are numbered anew."""
    found = Details(text=_raw(one, "planDescription"))
    for node in objects(one, "nodes")[:_PAGE]:
        metrics = []
        for metric in objects(node, "metrics")[:_MOST_METRICS]:
            metrics.append(Metric(text(metric, "name"), len(found.metrics)))
            found.metrics[len(found.metrics)] = _raw(metric, "value")
        codegen = number(node, "wholeStageCodegenId") if "wholeStageCodegenId" in node else None
        name, described = text(node, "nodeName"), text(node, "desc")
        found.nodes.append(PlanNode(number(node, "nodeId"), name, described, metrics, codegen))
    found.nodes.reverse()
    edges = objects(one, "edges")[: 2 * _PAGE]
    found.edges = [(number(edge, "fromId"), number(edge, "toId")) for edge in edges]
    return found


def _raw(value: object, name: str) -> str:
    """A text with its line breaks."""
    found = member(value, name)
    return without_middle(found, _LONGEST_DETAILS) if isinstance(found, str) else ""


def _stage(one: dict[str, Any]) -> Stage:
    kills = mapping(one, "killedTasksSummary")
    return Stage(
        number(one, "stageId"),
        number(one, "attemptId"),
        name=text(one, "name"),
        details=text(one, "details", limit=_LONGEST_DETAILS),
        description=text(one, "description"),
        pool=text(one, "schedulingPool"),
        start=moment(one, "submissionTime"),
        end=moment(one, "completionTime"),
        status=text(one, "status", limit=20),
        num_tasks=number(one, "numTasks"),
        failure=_raw(one, "failureReason"),
        resource_profile=number(one, "resourceProfileId"),
        first_task_launched=moment(one, "firstTaskLaunchedTime"),
        kills={printable(name[:_LONGEST]): number(kills, name) for name in list(kills)[:50]},
    )


def _add_tasks(found: Application, stage: Stage, server: Server, path: str) -> None:
    """All tasks of a stage, page by page."""
    numbers = {key: place for place, key in enumerate(found.executor_ids)}
    offset = 0
    while True:
        parameters = {"offset": str(offset), "length": str(_PAGE)}
        page = objects(server.get(path, parameters))
        for task in page:
            stage.tasks.add(_row(found, stage, task, numbers))
        if len(page) < _PAGE:
            break
        offset += _PAGE
    stage.tasks.pack()


def _row(found: Application, stage: Stage, task: object, numbers: dict[str, int]) -> tuple[int, ...]:
    executor = text(task, "executorId", limit=64)
    if executor not in numbers:
        numbers[executor] = len(found.executor_ids)
        found.executor_ids.append(executor)
        found.executors[executor] = Executor(executor, text(task, "host", limit=300))
    status = _STATUSES.get(text(task, "status", limit=20), RUNNING)
    launch = moment(task, "launchTime")
    locality = text(task, "taskLocality", limit=20)
    metrics = member(task, "taskMetrics")
    if status == FAILED:
        reason = cause_of(_raw(task, "errorMessage")).text[:_LONGEST] or "unknown"
        if reason in stage.failures or len(stage.failures) < 50:
            stage.failures[reason] = stage.failures.get(reason, 0) + 1
    row = {
        "tid": number(task, "taskId"),
        "index": number(task, "index"),
        "attempt": number(task, "attempt"),
        "partition": number(task, "partitionId") if member(task, "partitionId") else number(task, "index"),
        "executor": numbers[executor],
        "launch": launch,
        "finish": launch + number(task, "duration") if status != RUNNING else 0,
        "getting_result": moment(task, "resultFetchStart"),
        "status": status,
        "speculative": int(member(task, "speculative") is True),
        "locality": LOCALITIES.index(locality if locality in LOCALITIES else "NO_PREF"),
        **{column: number(metrics, *where) for column, where in _METRICS.items()},
        "python_time": 0,  # only logs have the operators' metrics of each task
    }
    return tuple(row[name] for name in TASK_COLUMNS)
