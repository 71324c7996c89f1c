"""What part of a job was recorded: each process over time, how many at a time, the part of the CPU time, and
what was missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from hprofiler.analysis.facts import RunFacts
from hprofiler.base.text import short_host
from hprofiler.model import HostRecord, JobAccount, Process, Recording, Status
from hprofiler.runfolder import RunRecord
from hprofiler.spark.application import DRIVERS, Application

RUN, PROCESS, CUT = "run", "process", "cut"
"""What ended a recording: the end of the run, that of its process, or the agent, which cut it short."""
MAPREDUCE, SPARK, PROCESSES = "mapreduce", "spark", "processes"
"""Who counts CPU time: MapReduce and Spark that of their tasks, the kernel that of each process."""
BEFORE, SHORT, AT_END = "ended-before", "too-short", "at-the-end"
NOT_RECORDED, NOTHING = "not-recorded", "nothing-recorded"
HOST_FAILED, HOST_UNKNOWN = "host-failed", "host-not-visited"
"""Why a process of a job was missed."""
MOST_MISSED = 1000
# A JVM is recorded from about a second and a half after its start.
_SHORT = 2.0
_LACKING = ("tasks-not-kept", "stages-not-kept", "too-slow", "compacted", "driver-gone")


class Presence(NamedTuple):
    """A recorded process, in seconds since the run's start: when it `started`, which may be before the run
    (None: unknown), from when to when it was recorded, and what ended that.

    `cpu` is its CPU time while it was recorded: what was sampled, or the kernel's account where CPU time was
    not sampled. `cpu_kernel` is the kernel's account in any case, and `cpu_before` what it had used before.
    `cpu_counted` is that of its whole life by the job's own account; None is unknown.
    """

    host: str
    process: Process
    started: float | None
    joined: float
    ended: float
    ended_by: str
    cpu: float
    cpu_kernel: float
    cpu_before: float | None
    cpu_counted: float | None = None

    @property
    def cpu_life(self) -> float | None:
        """The CPU time until the end of its recording, by the kernel. Samples may say a bit more."""
        return None if self.cpu_before is None else self.cpu_before + max(self.cpu, self.cpu_kernel)


class Missed(NamedTuple):
    """A process of a job that was not recorded, and the code of why; `detail` is more on that. Times are in
    seconds since the run's start; `ended` is None if it goes on."""

    name: str
    host: str
    started: float
    ended: float | None
    code: str = ""
    detail: str = ""
    cpu: float | None = None


class Moment(NamedTuple):
    """From this second on so many processes were recorded, and so many lived that were not."""

    second: float
    recorded: int
    missed: int


class CpuSeen(NamedTuple):
    """CPU seconds that were recorded, and all that `counted_by` counts, in which `missed` are those of
    processes that were not recorded, None if unknown."""

    counted_by: str
    recorded: float
    whole: float
    missed: float | None

    @property
    def share(self) -> float:
        return min(1.0, self.recorded / self.whole)


@dataclass(frozen=True)
class Seen:
    """`seconds` is the length of the recording. `missed` are processes that lived during it, `others` those
    that lived before or after. `cpu` is None also if only the last seconds were kept, on purpose. `problem`
    says why a job's own account is not known."""

    seconds: float = 0.0
    presences: tuple[Presence, ...] = ()
    missed: tuple[Missed, ...] = ()
    missed_more: int = 0
    others: int = 0
    cpu: CpuSeen | None = None
    problem: str = ""

    @property
    def changes(self) -> bool:
        """Whether processes came or went during the recording."""
        return bool(self.missed) or any(one.joined or one.ended_by != RUN for one in self.presences)

    @property
    def moments(self) -> list[Moment]:
        """How many processes there were over time: a step whenever that changes."""
        steps: list[tuple[float, int, int]] = []
        for one in self.presences:
            steps += [(one.joined, 1, 0), (one.ended, -1, 0)]
            if one.started is not None and one.started < one.joined:
                steps += [(max(0.0, one.started), 0, 1), (one.joined, 0, -1)]
        for other in self.missed:
            steps.append((max(0.0, other.started), 0, 1))
            steps.append((self.seconds if other.ended is None else other.ended, 0, -1))
        found, recorded, missed = [], 0, 0
        for second, changed in groupby(sorted(steps), key=lambda step: step[0]):
            for _, more, others in changed:
                recorded, missed = recorded + more, missed + others
            found.append(Moment(second, recorded, missed))
        return found


def seen(facts: RunFacts) -> Seen:
    hosts, job = facts.record.hosts, facts.record.job
    presences = sorted(_presences(hosts), key=lambda one: (one.joined, one.host, one.process.pid))
    seconds = _length(facts.record, presences)
    zero = _zero(hosts)
    account = _Account([], [None] * len(presences), _of_processes(presences))
    if facts.job is not None and zero is not None:
        ahead = facts.spark.clock.offset if facts.spark and facts.spark.clock else 0.0
        account = _spark_account(facts.job.application, facts.drivers, presences, zero + ahead, account)
    elif job is not None:
        began = _moment(facts.record.started) if zero is None else zero
        account = _job_account(job, presences, began, account)
    counted = zip(presences, account.counted, strict=True)
    reasons = _Reasons(hosts, seconds)
    missed = [reasons.explained(one) for one in account.missed]
    during = [one for one in missed if one.code not in (BEFORE, AT_END)]
    during.sort(key=lambda one: (one.started, one.name))
    return Seen(
        seconds,
        tuple(one._replace(cpu_counted=cpu) for one, cpu in counted),
        tuple(during[:MOST_MISSED]),
        max(0, len(during) - MOST_MISSED),
        len(missed) - len(during),
        account.cpu if facts.record.last_of is None else None,
        job.problem if job else "",
    )


def _presences(hosts: Iterable[HostRecord]) -> Iterator[Presence]:
    for host in hosts:
        gone = {one.pid for one in host.outcomes if one.gone}
        cut = {one.pid for one in host.short}
        of_process: dict[int, list[Recording]] = {}
        for recording in host.recordings:
            of_process.setdefault(recording.pid, []).append(recording)
        for pid, recordings in of_process.items():
            one = recordings[-1]
            sampled = next((event.totals.get("cpu") for event in recordings if event.event == "cpu"), None)
            kernel = max(event.cpu_seconds for event in recordings)
            cpu = kernel if sampled is None else sampled / 1e9
            by = PROCESS if pid in gone else CUT if pid in cut else RUN
            started = None if one.age is None else one.joined - one.age
            ended = max(event.ended for event in recordings)
            yield Presence(
                host.name, one.process, started, one.joined, ended, by, cpu, kernel, one.cpu_before
            )


def _length(record: RunRecord, presences: Sequence[Presence]) -> float:
    """Of the recording, in seconds. If all processes ended before it, at most as long as the run took."""
    longest = max((one.ended for one in presences), default=0.0)
    if any(one.ended_by == RUN for one in presences):
        return longest
    took = _moment(record.finished) - _moment(record.started)
    return max(longest, min(record.sampling.duration, took))


def _zero(hosts: Iterable[HostRecord]) -> float | None:
    """The start of the recording in seconds since 1970."""
    recordings = [one for host in hosts for one in host.recordings if one.times]
    return min((one.times.start / 1e6 - one.joined for one in recordings if one.times), default=None)


def _moment(iso: str) -> float:
    """A moment of run.json in seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError:
        return 0.0


class _Account(NamedTuple):
    """What a job counts: processes that were not recorded, the CPU time of each presence, and the sum."""

    missed: Sequence[Missed]
    counted: Sequence[float | None]
    cpu: CpuSeen | None


def _job_account(job: JobAccount, presences: Sequence[Presence], zero: float, without: _Account) -> _Account:
    """By what a job's manager listed; it has a sum if the manager counts CPU time."""
    index = {_key(part.labels): part for part in job.parts}
    names = {tuple(sorted(part.labels)) for part in job.parts}
    found = []
    for one in presences:
        keys = (tuple((name, one.process.labels.get(name, "")) for name in of) for of in names)
        found.append(next((index[key] for key in keys if key in index), None))
    known = {_key(part.labels) for part in found if part}
    others = [part for part in job.parts if part.started and _key(part.labels) not in known]
    missed = [
        Missed(
            part.name,
            part.host,
            part.started - zero,
            part.ended - zero if part.ended else None,
            cpu=part.cpu_seconds,
        )
        for part in others
    ]
    counted = [part.cpu_seconds if part else None for part in found]
    counting = [(one.cpu, part) for one, part in zip(presences, found, strict=True) if part and part.counts]
    unknown = any(part.cpu_seconds is None for _, part in counting)
    if job.manager != MAPREDUCE or not job.cpu_seconds or unknown:
        return _Account(missed, counted, without.cpu)
    # A counter has not what the JVM used before its task was set up, which is recorded all the same.
    recorded = sum(min(cpu, part.cpu_seconds or 0.0) for cpu, part in counting)
    lost = [part.cpu_seconds for part in others if part.counts]
    all_known = not job.left_out and None not in lost
    whole = sum(filter(None, lost)) if all_known else None
    return _Account(missed, counted, CpuSeen(MAPREDUCE, recorded, job.cpu_seconds, whole))


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _spark_account(
    application: Application,
    drivers: frozenset[tuple[str, int]],
    presences: Sequence[Presence],
    zero: float,
    without: _Account,
) -> _Account:
    """Spark counts the CPU time of its tasks. What was recorded is its count for the recorded time."""
    executors: list[str | None] = []
    spans: dict[str, list[tuple[float, float]]] = {}
    for one in presences:
        own = "driver" if drivers == {(one.host, one.process.pid)} else None
        executors.append(one.process.labels.get("executor", own) if one.process.is_jvm else None)
        if (executor := executors[-1]) is not None:
            span = (zero + one.joined) * 1e3, (zero + one.ended) * 1e3
            spans.setdefault(executor, []).append(span)
    whole: dict[str, float] = {}
    recorded = 0.0
    for stage in application.stages.values():
        names = ("executor", "launch", "finish", "cpu_time", "deserialize_cpu_time")
        for number, launch, finish, cpu, more in stage.tasks.columns(*names):
            used, executor = (cpu + more) / 1e9, application.executor_ids[number]
            whole[executor] = whole.get(executor, 0.0) + used
            known = spans.get(executor, ())
            inside = sum(max(0.0, min(finish, until) - max(launch, since)) for since, until in known)
            recorded += used * min(1.0, inside / max(1, finish - launch))
    missed = [
        Missed(
            f"executor {one.id}",
            one.host,
            one.added / 1e3 - zero,
            one.removed / 1e3 - zero if one.removed else None,
            cpu=whole.get(one.id, 0.0),
        )
        for one in application.workers
        if one.added and one.id not in spans and one.id not in DRIVERS
    ]
    counted = [None if one is None else whole.get(one) for one in executors]
    lacks = any(note.code in _LACKING for note in application.notes)
    if lacks or not spans or not any(whole.values()):
        return _Account(missed, counted, without.cpu)
    lost = sum(used for executor, used in whole.items() if executor not in spans)
    return _Account(missed, counted, CpuSeen(SPARK, recorded, sum(whole.values()), lost))


def _of_processes(presences: Sequence[Presence]) -> CpuSeen | None:
    """By the kernel: what recorded processes used until their recordings ended, if it is known of all."""
    lives = [one.cpu_life for one in presences if one.cpu_life is not None]
    if len(lives) < len(presences) or not (whole := sum(lives)):
        return None
    return CpuSeen(PROCESSES, sum(one.cpu for one in presences), whole, None)


class _Reasons:
    """Why processes were not recorded, by name and host. A job may miss thousands, on a thousand hosts."""

    def __init__(self, hosts: Sequence[HostRecord], seconds: float) -> None:
        self._seconds = seconds
        self._failed: dict[str, str] = {}
        self._hosts: dict[str, HostRecord] = {}
        self._short: dict[str, HostRecord] = {}
        for host in hosts:
            for line in host.outcomes:
                if line.pid is not None and line.status is Status.FAILED:
                    self._failed.setdefault(line.label, line.reason)
            for name in filter(None, (host.name, host.address)):
                self._hosts.setdefault(name, host)
                if not host.inside:
                    self._short.setdefault(short_host(name), host)

    def explained(self, missed: Missed) -> Missed:
        code, detail = self._why(missed)
        return missed._replace(code=code, detail=detail)

    def _why(self, missed: Missed) -> tuple[str, str]:
        """The code of why it was not recorded, and more on that."""
        started, ended = missed.started, missed.ended
        if ended is not None and ended <= 0:
            return BEFORE, ""
        if started >= self._seconds - _SHORT:
            return AT_END, ""
        if missed.name in self._failed:
            return NOT_RECORDED, self._failed[missed.name]
        # A short name matches its long forms.
        there = self._hosts.get(missed.host) or self._short.get(short_host(missed.host))
        refused = [one for one in there.outcomes if one.status is Status.FAILED] if there is not None else []
        if there is not None and there.failed:
            return HOST_FAILED, next(one.reason for one in refused if one.pid is None)
        if there is not None and there.inside and refused:
            return NOT_RECORDED, refused[0].reason
        if ended is not None and ended - max(0.0, started) < _SHORT:
            return SHORT, ""
        return (NOTHING if there is not None else HOST_UNKNOWN), ""
