"""Spark's REST interface, of a driver or a history server: `/api/v1/applications/ID/…`. Answers are not
trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hprofiler.base.answers import member, number, objects, text
from hprofiler.spark.facts import Collected, DriverClock, Executor, Job, SparkError, SparkFacts, Stage, Waits

PAGE = 500
"""Tasks of one answer; Spark's own default is 20."""
_MOST_STAGES = 5000
_SLACK = (
    60.0  # seconds around the recording in which tasks are wanted, while the driver's clock is not known well
)
_DATE_PRECISE = 0.02
_DATE_TRIES = 8
_LONGEST = 1000


@dataclass(frozen=True)
class Answer:
    """JSON, and when it was asked for and came (seconds since 1970); `date` is what the server's clock said
    then, in whole seconds, if that is known."""

    content: Any
    sent: float
    received: float
    date: float | None = None


Ask = Callable[[str, Mapping[str, str]], Answer]
"""Asks for the JSON at a path below `/api/v1`. Raises HprofilerError."""
ClockOf = Callable[[str], DriverClock | None]
"""From a driver's host to its clock, None if that is not known."""


def fetch_facts(
    ask: Ask,
    application: str | None,
    since: float,
    until: float,
    clock_of: ClockOf,
    seconds: float = 60.0,
    attempt: str = "",
) -> SparkFacts:
    """The facts of an application; of the only one that the server has, if none is named.

    `since` and `until` are the recording, in seconds since 1970 by this machine's clock. `clock_of` gives the
    clock of the driver's host; if that is not known, it is measured as well as the driver's answers allow.
    Raises HprofilerError.
    """
    server = Server(ask, time.monotonic() + seconds)
    identity, attempt, name, version = find_application(server, application, attempt)
    api = f"/applications/{identity}" + (f"/{attempt}" if attempt else "")
    executors: dict[str, Executor] = {}
    for one in objects({"list": server.get(f"{api}/allexecutors")}, "list"):
        key = text(one, "id", limit=64)
        executors[key] = Executor(key, _host(text(one, "hostPort", limit=300)), number(one, "totalCores"))
    driver = executors["driver"].host if "driver" in executors else ""
    clock = clock_of(driver) or server.clock.measured(lambda: server.get(f"/applications/{identity}"))
    ahead, slack = (clock.offset, _SLACK) if clock else (0.0, 2 * _SLACK)
    found = Collected((since + ahead - slack) * 1000, (until + ahead + slack) * 1000)
    for one in objects({"list": server.get(f"{api}/jobs")}, "list"):
        _add_job(found, one)
    for one in objects({"list": server.get(f"{api}/stages")}, "list")[:_MOST_STAGES]:
        stage = Stage(
            id=number(one, "stageId"),
            attempt=number(one, "attemptId"),
            name=text(one, "name", limit=_LONGEST),
            from_=moment(one, "submissionTime"),
            to=moment(one, "completionTime"),
            tasks=number(one, "numTasks"),
            waits=Waits(
                number(one, "executorRunTime"),
                number(one, "shuffleFetchWaitTime"),
                number(one, "shuffleWriteTime") // 1_000_000,
                number(one, "jvmGcTime"),
            ),
        )
        if found.is_meant(stage.from_, stage.to):
            found.stages[stage.id, stage.attempt] = stage
    for stage in found.stages.values():
        for task in _tasks(server, f"{api}/stages/{stage.id}/{stage.attempt}/taskList"):
            _add_task(found, stage, task)
    return SparkFacts(
        application=identity,
        attempt=attempt,
        name=name,
        version=version,
        read=int(time.time() * 1000),
        driver=driver,
        clock=clock,
        executors=tuple(executors.values()),
        jobs=tuple(found.jobs.values()),
        stages=tuple(found.stages.values()),
        tasks=found.tasks,
        notes=tuple(found.notes()),
    )


class Server:
    """Asks until a deadline, and compares clocks."""

    def __init__(self, ask: Ask, deadline: float) -> None:
        self._ask = ask
        self._deadline = deadline
        self.clock = _DateClock()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        if time.monotonic() > self._deadline:
            raise SparkError("it answers too slowly", "read its event log: --spark FILE")
        answer = self._ask(path, parameters or {})
        self.clock.add(answer)
        return answer.content


class _DateClock:
    """The server's clock against ours, from the whole seconds of its answers.

    An answer says that the clock is ahead by more than `date - received` and less than `date + 1 - sent`.
    Answers at different moments of a second narrow that down.
    """

    def __init__(self) -> None:
        self._least, self._most = float("-inf"), float("inf")

    def add(self, answer: Answer) -> None:
        if answer.date is None:
            return
        least, most = answer.date - answer.received, answer.date + 1 - answer.sent
        if most < self._least or least > self._most:  # a clock was set, or another server answered
            self._least, self._most = least, most
        else:
            self._least, self._most = max(self._least, least), min(self._most, most)

    def measured(self, ask: Callable[[], object]) -> DriverClock | None:
        """Ask when the server's second is just about to change, which halves the doubt each time.

        None if the server does not say what time it is.
        """
        if self._most == float("inf"):
            return None
        for _ in range(_DATE_TRIES):
            doubt = self._most - self._least
            middle = (self._least + self._most) / 2
            time.sleep(1 - (time.time() + middle) % 1)
            ask()
            if self._most - self._least < _DATE_PRECISE:
                break
            if self._most - self._least > doubt * 0.9:  # the way there takes longer than this is precise
                break
        return DriverClock(
            round((self._least + self._most) / 2, 6),
            round((self._most - self._least) / 2, 6),
            "Date of the driver's answers",
        )


def find_application(server: Server, wanted: str | None, attempt: str = "") -> tuple[str, str, str, str]:
    """Id, attempt (if it has several), name and Spark's version; of the newest attempt, if none is named."""
    if wanted:
        listed = [server.get(f"/applications/{wanted}")]
    else:
        listed = objects({"list": server.get("/applications")}, "list")
    found = [one for one in listed if _is_safe(text(one, "id", limit=200))]
    if not found:
        raise SparkError("no Spark application is known there", "check the address")
    if len(found) > 1:
        some = ", ".join(text(one, "id", limit=200) for one in found[:5])
        raise SparkError(
            f"it knows {len(found)} applications ({some} …)", "name one: http://HOST:18080/history/ID"
        )
    attempts = objects(found[0], "attempts")
    known = {text(one, "attemptId", limit=20): one for one in reversed(attempts)}  # newest last
    identity = wanted or text(found[0], "id", limit=200)
    if attempt and attempt not in known and set(known) != {""}:
        raise SparkError(f"{identity} has no attempt {attempt}", f"its attempts are {', '.join(known)}")
    chosen = attempt if attempt in known else next(reversed(known), "")
    version = text(known.get(chosen, {}), "appSparkVersion", limit=100)
    name = text(found[0], "name", limit=_LONGEST)
    return identity, chosen if _is_safe(chosen) else "", name, version


def _is_safe(word: str) -> bool:
    """Whether it can be a part of a path."""
    return bool(word) and word.isascii() and all(letter.isalnum() or letter in "_-" for letter in word)


def _tasks(server: Server, path: str) -> Iterator[dict[str, Any]]:
    """All tasks of an attempt of a stage, page by page."""
    offset = 0
    while True:
        page = objects({"list": server.get(path, {"offset": str(offset), "length": str(PAGE)})}, "list")
        yield from page
        if len(page) < PAGE:
            return
        offset += PAGE


def _add_job(found: Collected, job: object) -> None:
    from_, to = moment(job, "submissionTime"), moment(job, "completionTime")
    if not found.is_meant(from_, to):
        return
    identity, stages = number(job, "jobId"), member(job, "stageIds")
    described = text(job, "description", limit=_LONGEST) or text(job, "name", limit=_LONGEST)
    known = stages[:_MOST_STAGES] if isinstance(stages, list) else []
    ids = tuple(one for one in known if isinstance(one, int) and 0 <= one < 1 << 53)
    found.jobs[identity] = Job(identity, from_, to, described, ids)


def _add_task(found: Collected, stage: Stage, task: object) -> None:
    launch = moment(task, "launchTime")
    finish = 0
    if text(task, "status", limit=20) != "RUNNING":
        # The task's thread has ended when the driver fetches the result.
        finish = moment(task, "resultFetchStart") or launch + number(task, "duration")
    metrics = member(task, "taskMetrics")
    cpu = number(metrics, "executorCpuTime") + number(metrics, "executorDeserializeCpuTime")
    executor = text(task, "executorId", limit=64)
    found.add_task(executor, number(task, "taskId"), stage.id, stage.attempt, launch, finish, cpu)


def moment(value: object, name: str) -> int:
    """Milliseconds since 1970 of a date such as `2015-02-03T16:42:59.720GMT`; 0 if it is none."""
    written = text(value, name, limit=40)
    try:
        parsed = datetime.fromisoformat(f"{written.removesuffix('GMT')}+00:00")
        return max(0, round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0


def _host(address: str) -> str:
    """The host of `host:port`."""
    return address.rpartition(":")[0].strip("[]")
