"""A MapReduce job's own account: the attempts of its tasks, and the CPU time that it counted for them.

A running job is asked at its ApplicationMaster, through the ResourceManager's proxy; one that has ended, at
the history server that YARN links to.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from hprofiler.base.answers import member, milliseconds, objects, text
from hprofiler.base.background import in_order
from hprofiler.base.passwords import shown_url
from hprofiler.model import JobAccount, JobPart
from hprofiler.model.job import MOST_PARTS
from hprofiler.resolve.yarn.containers import host_of
from hprofiler.resolve.yarn.rest import OF_DRIVER, ResourceManager, YarnError

MAPREDUCE = "MAPREDUCE"
"""The type of such an application."""
_MOST_ASKED = 500
"""Each task is asked for its attempts only where a job has no more."""
_AT_ONCE = 8
_SECONDS = 10.0
_CPU = "CPU_MILLISECONDS"
_TASK = re.compile(r"task_[0-9]{1,19}_[0-9]{1,10}_([mr]_[0-9]{1,10})")
_ATTEMPT = re.compile(r"attempt_[0-9]{1,19}_[0-9]{1,10}_([mr]_[0-9]{1,10}_[0-9]{1,10})")
# Clocks that differ by less are taken to agree: the date of an answer has whole seconds.
_AGREE = 2.0

Ask = Callable[[str], tuple[Any, str | None]]


class _Task(NamedTuple):
    """`name` is such as m_000003; `counts` is the attempt that counts, "" if there is none yet."""

    id: str
    name: str
    counts: str
    started: int
    ended: int


def job_account(manager: ResourceManager, application: str) -> JobAccount:
    """Raises YarnError if neither the job nor a history server answers."""
    ask = _asking(manager, application)
    counted, date = ask("/counters")
    ahead = _ahead(date)
    total = _total(objects(counted, "jobCounters", "counterGroup"), "totalCounterValue")
    tasks = _tasks(ask("/tasks")[0])
    parts = (
        _attempts(ask, tasks, ahead) if len(tasks) <= _MOST_ASKED else [_part(one, ahead) for one in tasks]
    )
    return JobAccount(
        manager="mapreduce",
        cpu_seconds=None if total is None else total / 1e3,
        parts=tuple(parts[:MOST_PARTS]),
        left_out=max(0, len(parts) - MOST_PARTS),
    )


def _asking(manager: ResourceManager, application: str) -> Ask:
    job = application.replace("application_", "job_")
    app = member(manager.get(f"/apps/{application}"), "app")
    if text(app, "state") == "RUNNING":
        base = f"/proxy/{application}/ws/v1/mapreduce/jobs/{job}"
        return lambda path: manager.ask_dated(f"{base}{path}", None, OF_DRIVER)
    page = text(app, "trackingUrl", limit=2000)
    if not page.startswith(("http://", "https://")):
        raise YarnError(f"{application} has ended, and YARN links to no history server")
    with manager.rest.opened(page, anywhere=True) as body:
        parts = urlsplit(body.url)
    if "jobhistory" not in parts.path:
        raise YarnError(f"{shown_url(page)} is not the page of a history server")
    address = f"{parts.scheme}://{parts.netloc}/ws/v1/history/mapreduce/jobs/{job}"
    return lambda path: manager.rest.get_dated(f"{address}{path}", None, OF_DRIVER)


def _ahead(date: str | None) -> float:
    """By how many seconds the server's clock is ahead, by the `Date` of its answer."""
    try:
        ahead = parsedate_to_datetime((date or "")[:100]).timestamp() + 0.5 - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return ahead if abs(ahead) > _AGREE else 0.0


def _total(groups: Sequence[Mapping[str, Any]], value: str) -> int | None:
    """The CPU time in milliseconds; None where it is not counted."""
    counters = (one for group in groups for one in objects(group, "counter") if text(one, "name") == _CPU)
    return next((milliseconds(one, value) for one in counters if milliseconds(one, value)), None)


def _tasks(answer: object) -> list[_Task]:
    found = []
    for task in objects(answer, "tasks", "task"):
        id_ = text(task, "id", limit=100)
        name, counts = _TASK.fullmatch(id_), _ATTEMPT.fullmatch(text(task, "successfulAttempt", limit=100))
        if name:
            times = milliseconds(task, "startTime"), milliseconds(task, "finishTime")
            found.append(_Task(id_, name.group(1), counts.group(1) if counts else "", *times))
    return found


def _attempts(ask: Ask, tasks: Sequence[_Task], ahead: float) -> list[JobPart]:
    """All attempts of the tasks, as far as there is time to ask for them."""
    deadline = time.monotonic() + _SECONDS

    def attempts(task: _Task) -> list[JobPart]:
        if time.monotonic() > deadline:
            return [_part(task, ahead)]
        try:
            listed = objects(ask(f"/tasks/{task.id}/attempts")[0], "taskAttempts", "taskAttempt")
            counted = objects(ask(f"/tasks/{task.id}/counters")[0], "jobTaskCounters", "taskCounterGroup")
        except YarnError:
            return [_part(task, ahead)]
        return [_attempt(one, task, _total(counted, "value"), ahead) for one in listed] or [
            _part(task, ahead)
        ]

    return [part for parts in in_order(attempts, tasks, _AT_ONCE) for part in parts]


def _attempt(attempt: Mapping[str, Any], task: _Task, cpu: int | None, ahead: float) -> JobPart:
    known = _ATTEMPT.fullmatch(text(attempt, "id", limit=100))
    name = known.group(1) if known else task.name
    # Of a task that runs the newest attempt counts, which is mostly the only one.
    counts = name == task.counts or not task.counts
    return JobPart(
        name=f"task {name}",
        host=host_of(text(attempt, "nodeHttpAddress"))[:255],
        labels={"attempt": name},
        started=_seconds(milliseconds(attempt, "startTime"), ahead),
        ended=_seconds(milliseconds(attempt, "finishTime"), ahead),
        cpu_seconds=cpu / 1e3 if cpu is not None and counts else None,
        counts=counts,
    )


def _part(task: _Task, ahead: float) -> JobPart:
    times = _seconds(task.started, ahead), _seconds(task.ended, ahead)
    return JobPart(name=f"task {task.name}", labels={"task": task.name}, started=times[0], ended=times[1])


def _seconds(moment: int, ahead: float) -> float:
    return max(0.0, moment / 1e3 - ahead) if moment else 0.0
