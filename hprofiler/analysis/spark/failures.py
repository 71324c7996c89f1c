"""What failed in an application, and why: the earliest cause first; on top that which ended it.

A job that was cancelled has not failed, nor one that ended only because the application did, nor one whose
query completed all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.spark.application import Application, Executor, Job, Stage
from hprofiler.spark.causes import (
    EXECUTOR_LOST,
    FETCH_FAILED,
    Cause,
    cause_of,
    is_cancelled,
    is_interrupted,
    is_shut_down,
)
from hprofiler.spark.log.sql import SqlExecution
from hprofiler.spark.losses import EXPECTED, UNEXPLAINED, loss_code, losses

MOST_CAUSES = 20
_GAVE_UP = re.compile(r"Master removed our application|[Mm]ax number of executor failures")
"""What Spark says when too many executors have ended."""
_NO_REASON = EXPECTED | UNEXPLAINED
_AFTER_OTHERS = ("FileAlreadyExistsException", "FileExistsError", "CommitDeniedException", FETCH_FAILED)
"""Exceptions of a task that follow from an earlier failure of it."""


@dataclass(frozen=True)
class Failure:
    """What failed for one cause: `time` is when first, by the driver's clock. `stage` is the attempt that
    failed, and `query` the SQL execution, where that is known. `jobs`, `queries` and `streams` (runs of
    streaming queries) are those that failed for it."""

    cause: Cause
    time: int
    stage: tuple[int, int] | None = None
    query: int | None = None
    jobs: list[int] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Failures:
    """What failed of `all_jobs` and all queries, in ids; `causes` are oldest first, up to MOST_CAUSES of
    `all_causes`. `losses` has the code of each executor that ended.

    `fatal` is the first cause after which no job began that succeeded; None if the application went on after
    each of them. `consequences` are jobs that ended only because the application did, `cancelled` those that
    were cancelled, of them `unneeded` those whose query completed all the same; `recovered` those that failed
    though their query completed. `repeated` are attempts of stages that failed, and were followed by another
    one. `cut_off` is a loss of executors before jobs were cut off without any other cause.
    """

    jobs: tuple[int, ...]
    queries: tuple[int, ...]
    streams: tuple[str, ...]
    stages: tuple[tuple[int, int], ...]
    repeated: tuple[tuple[int, int], ...]
    consequences: int
    cancelled: int
    unneeded: int
    recovered: int
    causes: tuple[Failure, ...]
    fatal: Failure | None
    all_causes: int
    losses: Mapping[str, str]
    cut_off: Cause | None
    exit_code: int | None
    all_jobs: int


def find_failures(application: Application) -> Failures:
    found = _Found()
    counts: Counter[str] = Counter()
    failed_jobs: list[int] = []
    failed_stages: dict[tuple[int, int], None] = {}
    codes = losses(application)
    first_loss, explained = _first_loss(application, codes), _explained(application)
    by_job = _failed_stages(application)
    for job in application.jobs.values():
        kind = _kind_of_job(application, job)
        counts[kind] += 1
        if kind == "failed":
            failed_jobs.append(job.id)
            failure = _of_job(job, by_job.get(job.id, []), first_loss, explained)
            found.add(failure)
            failed_stages.update({failure.stage: None} if failure.stage else {})
    queries = _add_queries(application, found)
    streams = [run for run, stream in application.streams.items() if _has_failed(stream.error)]
    for run in streams:
        _add_stream(run, cause_of(application.streams[run].error or ""), application.until, found)
    causes = _by_cause(found.failures, application)
    last = _last_attempts(application)
    repeated = tuple(
        stage.key
        for stage in application.stages.values()
        if stage.failure and stage.attempt < last[stage.id] and stage.key not in failed_stages
    )
    cut_off = None if causes or not counts["consequence"] else first_loss
    return Failures(
        tuple(failed_jobs),
        tuple(queries),
        tuple(streams),
        tuple(failed_stages),
        repeated,
        counts["consequence"],
        counts["cancelled"] + counts["unneeded"],
        counts["unneeded"],
        counts["recovered"],
        causes[:MOST_CAUSES],
        _fatal(causes, application),
        len(causes),
        codes,
        cut_off,
        application.exit_code,
        len(application.jobs),
    )


def failure_findings(found: Failures) -> list[SparkFinding]:
    """Whether the application failed and for what, and how many of its jobs somebody cancelled."""
    cancelled = found.cancelled - found.unneeded
    parameters = {"cancelled": cancelled, "jobs": found.all_jobs}
    return [*_failure(found), *([SparkFinding("jobs-cancelled", parameters)] if cancelled else [])]


def _failure(found: Failures) -> list[SparkFinding]:
    """By the cause that ended the application, else the earliest one. `survived` is whether it went on after
    others before, `went_on` whether it did after all of them."""
    parameters: dict[str, Any] = {}
    if found.causes:
        first = found.fatal or found.causes[0]
        parameters = {
            "reason": first.cause.text,
            "exception": first.cause.kind,
            "message": first.cause.message,
            "query": first.query,
            "others": found.all_causes - 1,
            "survived": first is not found.causes[0],
            "went_on": found.fatal is None and not found.exit_code,
            "consequences": found.consequences,
        }
        if first.stage:
            parameters.update(stage=first.stage[0], attempts=(first.stage[1],))
    if found.jobs:
        return [SparkFinding("job-failed", {"failed": len(found.jobs), "jobs": found.all_jobs, **parameters})]
    if found.queries:
        return [SparkFinding("query-failed", {"failed": len(found.queries), **parameters})]
    if found.streams:
        return [SparkFinding("stream-failed", {"failed": len(found.streams), **parameters})]
    if found.consequences:
        reason = found.cut_off.text if found.cut_off else ""
        parameters = {"failed": found.consequences, "jobs": found.all_jobs, "reason": reason}
        return [SparkFinding("jobs-cut-off", parameters), *([] if reason else _exit_code(found))]
    return _exit_code(found)


def _exit_code(found: Failures) -> list[SparkFinding]:
    return [SparkFinding("exit-code", {"exit_code": found.exit_code})] if found.exit_code else []


def _kind_of_job(application: Application, job: Job) -> str:
    if job.status != "FAILED":
        return "running" if job.status == "RUNNING" else "succeeded"
    query = application.sql.get(job.sql) if job.sql is not None else None
    completed = query is not None and query.error == ""
    if is_cancelled(job.failure) and (completed or not is_shut_down(job.failure)):
        return "unneeded" if completed else "cancelled"
    if is_shut_down(job.failure):
        return "consequence"
    return "recovered" if completed else "failed"


def _has_failed(error: str | None) -> bool:
    """Whether a query did, by its error."""
    stopped = not error or is_cancelled(error) or is_shut_down(error)
    return not stopped and not is_interrupted(cause_of(error or ""))


def _failed_stages(application: Application) -> dict[int, list[Stage]]:
    """Stages that failed by themselves, by job."""
    found: dict[int, list[Stage]] = {}
    for stage in application.stages.values():
        if stage.failure and not is_cancelled(stage.failure) and not is_shut_down(stage.failure):
            for job in stage.jobs:
                found.setdefault(job, []).append(stage)
    return found


class _Found:
    """The failures so far, in their order, and the first one of a job, a query or a cause."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._places: dict[Hashable, int] = {}

    def add(self, one: Failure) -> None:
        for key in _keys(one.cause, one.jobs, [] if one.query is None else [one.query]):
            self._places.setdefault(key, len(self.failures))
        self.failures.append(one)

    def first(self, cause: Cause, jobs: Iterable[int] = (), queries: Iterable[int] = ()) -> Failure | None:
        places = [self._places[key] for key in _keys(cause, jobs, queries) if key in self._places]
        return self.failures[min(places)] if places else None


def _keys(cause: Cause, jobs: Iterable[int], queries: Iterable[int]) -> list[Hashable]:
    return [cause[:2], *(("job", id_) for id_ in jobs), *(("query", id_) for id_ in queries)]


def _of_job(
    job: Job, stages: list[Stage], first_loss: Cause | None, explained: Mapping[str, Executor]
) -> Failure:
    """By the last of its failed stages: attempts before it were repeated."""
    last = max(stages, key=lambda stage: (stage.end, stage.key), default=None)
    if last is None:
        return Failure(cause_of(job.failure), job.end, None, job.sql, [job.id])
    cause = _of_stage(last)
    if _GAVE_UP.search(cause.message) and first_loss:
        cause = cause._replace(message=f"{cause.message}, after {first_loss.text}")
    lost = _lost_before(last, cause, explained)
    time = lost.removed if lost else last.end
    return Failure(_of_executor(lost) if lost else cause, time, last.key, job.sql, [job.id])


def _of_stage(stage: Stage) -> Cause:
    """The cause that most attempts of the task had that failed too often, without those that follow from
    others; the first one of several."""
    own = cause_of(stage.failure)
    # Spark 4 says of some failures only the outermost exception, and not of which task it is.
    tasks = stage.causes if "Task " in stage.failure else [one for one in stage.causes if _contains(one, own)]
    causes = [cause for cause in tasks if not _is_weak(cause)]
    kinds = Counter(cause.kind for cause in causes)
    if not kinds:
        return own
    most = max(kinds, key=lambda kind: kinds[kind])  # the first one of several
    return next(cause for cause in causes if cause.kind == most)


def _contains(cause: Cause, outer: Cause) -> bool:
    return outer.message in cause.within or outer.message in cause.text


def _is_weak(cause: Cause) -> bool:
    if cause.kind == EXECUTOR_LOST:
        return loss_code(cause.message) in UNEXPLAINED | {"heap"}
    return cause.kind.rpartition(".")[2] in _AFTER_OTHERS


def _explained(application: Application) -> dict[str, Executor]:
    """Executors of whose end the log says why, the first one that ended first."""
    lost = [one for one in application.workers if one.removed > 0 and loss_code(one.reason) not in _NO_REASON]
    return {one.id: one for one in sorted(lost, key=lambda one: one.removed)}


def _lost_before(stage: Stage, cause: Cause, explained: Mapping[str, Executor]) -> Executor | None:
    """The executor that had the blocks that a stage could not fetch, or ran its task, if the log says better
    why it ended."""
    ids: Sequence[str] = ()
    if FETCH_FAILED in stage.failure:
        ids = stage.lost_blocks or list(explained)[:1]  # Spark may not say whose
    elif cause.executor and loss_code(cause.message) in UNEXPLAINED:
        ids = (cause.executor,)
    lost = (explained[id_] for id_ in ids if id_ in explained)
    return min((one for one in lost if one.removed <= stage.end), key=lambda one: one.removed, default=None)


def _of_executor(executor: Executor) -> Cause:
    return Cause(EXECUTOR_LOST, cause_of(executor.reason).text, executor.id)


def _add_queries(application: Application, found: _Found) -> list[int]:
    """The queries that failed, without those that another one ran; `found` gets their failures."""
    failed = {query.id: query for query in application.sql.values() if _has_failed(query.error)}
    for query in failed.values():
        _add_query(query, found)
    ids = [id_ for id_, one in failed.items() if one.root == id_ or one.root not in failed]
    for id_, (time, error) in application.unplanned.items():
        if _has_failed(error):
            ids.append(id_)
            found.add(Failure(cause_of(error), time, query=id_, queries=[id_]))
    return ids


def _add_query(query: SqlExecution, found: _Found) -> None:
    """A query that has the failure of none of its jobs or sub-executions failed in the driver."""
    error = cause_of(query.error or "")
    if one := found.first(error, query.jobs, (query.id, query.root)):
        one.queries.append(query.id)
    else:
        found.add(Failure(error, query.end, query=query.id, queries=[query.id]))


def _add_stream(run: str, error: Cause, time: int, found: _Found) -> None:
    """A streaming query may have the failure of one of its batches."""
    if one := found.first(error):
        one.streams.append(run)
    else:
        found.add(Failure(error, time, streams=[run]))


def _by_cause(found: list[Failure], application: Application) -> tuple[Failure, ...]:
    """Failures with the same cause are one."""
    by_cause: dict[Cause, Failure] = {}
    for one in sorted(found, key=lambda one: one.time or application.until):
        first = by_cause.setdefault(one.cause, one)
        if first is not one:
            first.jobs.extend(one.jobs)
            first.queries.extend(one.queries)
            first.streams.extend(one.streams)
    return tuple(by_cause.values())


def _fatal(causes: Sequence[Failure], application: Application) -> Failure | None:
    jobs, queries = application.jobs, application.sql
    last = max((job.start for job in jobs.values() if job.status == "SUCCEEDED"), default=0)

    def end(one: Failure) -> int:
        """Of the last that failed for it."""
        ends = [jobs[id_].end for id_ in one.jobs]
        ends += [queries[id_].end for id_ in one.queries if id_ in queries]
        return max([one.time or application.until, *ends])

    return next((one for one in causes if end(one) >= last), None)


def _last_attempts(application: Application) -> dict[int, int]:
    last: dict[int, int] = {}
    for id_, attempt in application.stages:
        last[id_] = max(attempt, last.get(id_, 0))
    return last


def _first_loss(application: Application, codes: Mapping[str, str]) -> Cause | None:
    """The first executor whose end has a reason that may have ended the application."""
    lost = [one for one in application.workers if codes.get(one.id, "idle") not in EXPECTED]
    first = min(lost, key=lambda one: one.removed, default=None)
    return _of_executor(first) if first else None
