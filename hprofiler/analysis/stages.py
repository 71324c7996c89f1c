"""Samples by Spark stage: of each process from what Spark knows of its executor, and added up for an
event."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from hprofiler._flamegraph import Profile
from hprofiler.analysis.blocked_stacks import EVENTS, BlockedRules, most_first
from hprofiler.analysis.facts import PYSPY, RunFacts
from hprofiler.analysis.subject import Finding, says
from hprofiler.analysis.words import percent
from hprofiler.model import PARENT, HostRecord, Recording
from hprofiler.model.measures import duration
from hprofiler.spark.facts import SparkFacts, Tasks, Waits
from hprofiler.spark.replay.schedule import Gain, Replay
from hprofiler.spark.windows import SEVERAL, Assignment, StageTime, assignment, stage_name, stage_times

# Threads of tasks, by their names or by what they do; while they wait for a task they belong to none.
_TASK = (r"^\[Executor task l", r"^L?org[./]apache[./]spark[./]executor[./]Executor\$TaskRunner[.;:]+run\b")
# What a Python worker does for a task: all that uses a CPU.
_PYTHON_TASK = r"^main \(pyspark/worker\.py\)$"
_IDLE = (r"^L?java[./]util[./]concurrent[./]ThreadPoolExecutor[.;:]+getTask\b",)
_KNOWN_ENOUGH = 0.95
# Of a sentence on the stage with most samples: least samples of all tasks, its least part of them, the least
# part that is blocked, and of a slow task how many there are at least, and how many medians it takes.
_FEWEST = 100
_WORTH_A_SENTENCE = 0.2
_WAIT = 0.1
_FEWEST_TASKS = 3
_SLOW = 1.5
# Samplers and clocks are a little off: only more than this part of the time is said to have no samples.
_UNSAMPLED = 0.1
_TIMERS = ("ctimer", "itimer")
_LOCAL_DISK = "local-disk"
UNSAMPLED = "unsampled"


@dataclass(frozen=True)
class StageShare:
    """A stage: the name of its slice, its call site, how many samples belong to it.

    `cpu` is the CPU time in seconds that its samples stand for, and `python` the part of it in Python
    workers; None for other events. The page's is more: there all CPU time of the processes is spread over the
    samples, also what no sampler saw. `spark_cpu` is Spark's own count for the parts of its tasks that lie in
    the recordings, without Python; None if that is not known. `blocked` are the samples that wait, by rules
    of `blocked_stacks`, of wall-clock time, and `spark_waits` what Spark counts of all its tasks. `unsampled`
    is the part of its tasks' wall-clock time without samples, if that is much: a thread that waits for a disk
    in the kernel takes no signal.
    """

    name: str
    label: str
    certain: int
    likely: int
    cpu: float | None
    spark_cpu: float | None
    python: float = 0.0
    blocked: Mapping[str, int] = field(default_factory=dict)
    spark_waits: Waits = field(default_factory=Waits)
    unsampled: float = 0.0

    @property
    def samples(self) -> int:
        return self.certain + self.likely

    @property
    def jvm_cpu(self) -> float | None:
        """The CPU time that Spark counts too: without Python's."""
        return self.cpu if self.cpu is None else self.cpu - self.python


@dataclass(frozen=True)
class StageShares:
    """An event's samples by stage, most first; `several` were taken while tasks of several stages were in the
    executor, `none` belong to no task.

    `gains` are by how much the job would be shorter at most if its tasks never waited so, by rules of
    `blocked_stacks` or UNSAMPLED; they are known where Spark's whole application is, of wall-clock time.
    They are bounds only if it `is_recorded` whole: what was not recorded gains nothing in them. `workers` are
    the Python workers whose wall-clock time is not counted here, by their labels.
    """

    stages: tuple[StageShare, ...]
    several: int
    none: int
    gains: Mapping[str, Gain] = field(default_factory=dict)
    is_recorded: bool = False
    workers: tuple[str, ...] = ()

    @property
    def certain(self) -> float:
        """The part of the tasks' samples whose stage is certain."""
        certain = sum(one.certain for one in self.stages)
        return certain / max(1, sum(one.samples for one in self.stages) + self.several)

    @property
    def likely(self) -> float:
        likely = sum(one.likely for one in self.stages)
        return likely / max(1, sum(one.samples for one in self.stages) + self.several)


def divided(facts: RunFacts, host: HostRecord, recording: Recording, profile: Profile) -> Profile:
    """A process's profile, with threads at the roots, whose samples belong to the stages of its executor."""
    times = profile.times
    if times is None:
        return profile
    executor = _executor(facts, host, recording) if facts.slices else None
    known = facts.spark.tasks[executor] if facts.spark and executor else Tasks()
    named = _renamed(known, times.slices) if facts.slices else {name: "" for name, _ in times.slices}
    if named:
        profile = profile.with_slices_named(named)
    windows = Assignment((), ())
    if facts.spark is not None and executor is not None:
        doubt = host.clock.uncertainty if host.clock else 0.0
        windows = assignment(facts.spark, executor, times.start, times.width, doubt)
    if not times.slices and not windows.ranges:
        return profile
    # A thread keeps the name of its last task until it gets another, so idle ones are called like tasks.
    # A worker works while its task's thread waits for it: in wall-clock time that counts once.
    tasks = _TASK if recording.event == "wall" else (*_TASK, _PYTHON_TASK)
    return profile.assigned(tasks if windows.ranges else (), _IDLE, windows.slices, windows.ranges)


def _executor(facts: RunFacts, host: HostRecord, recording: Recording) -> str | None:
    """The executor of a process or of its parent, if Spark knows its tasks. In local mode that is the
    driver, if only one process may be it."""
    spark = facts.spark
    if spark is None:
        return None
    labels = recording.process.labels
    application = labels.get("application")
    if application and spark.application and application != spark.application:
        return None
    executor = labels.get("executor", "driver")
    jvm = int(labels[PARENT]) if labels.get(PARENT, "").isdecimal() else recording.pid
    if executor == "driver" and facts.drivers != {(host.name, jvm)}:
        return None
    return executor if executor in spark.tasks else None


def _renamed(tasks: Tasks, slices: Sequence[tuple[str, bool]]) -> dict[str, str]:
    """Slices that are of tasks (`task 42`, by names of threads before Spark 3.1, and of Python workers), and
    their stages, if known."""
    named = {name: "" for name, _ in slices if name.startswith("task ")}
    if named:
        stages = {f"task {tid}": stage_name(stage, attempt) for tid, stage, attempt, *_ in tasks.rows()}
        named = {name: stages.get(name, "") for name in named}
    return named


class StageSums:
    """Adds up the samples of an event's processes by stage."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        self._samples: dict[tuple[str, bool], int] = {}
        self._cpu: dict[str, float] = {}
        self._python: dict[str, float] = {}
        self._wall: dict[str, float] = {}
        # A broken stack does not say what it waits for; without it, the others' shares would be too large.
        self._rules = BlockedRules() if facts.event in EVENTS and not facts.untrusted else None
        self._blocked: dict[str, dict[str, int]] = {}
        self._none = 0
        self._workers: list[str] = []
        self._recorded: list[tuple[str, int, int]] = []

    def add(self, host: HostRecord, recording: Recording, profile: Profile) -> None:
        """A process; a profile without times, or of another process than an executor, has no stages."""
        executor = _executor(self._facts, host, recording)
        times = profile.times
        if executor is None or times is None:
            return
        is_python = recording.engine == PYSPY
        if is_python and self._facts.event != "cpu":
            self._workers.append(recording.label)
            return  # it works while its task's thread waits for it: that time counts once
        none, *counts = times.slice_samples
        taken = max(1, none + sum(counts))
        cpu_of_sample = profile.total("cpu") / taken / 1e9 if is_python else _cpu_of_sample(recording)
        weight = profile.total("samples") / taken if self._facts.is_mixed else 1
        self._none += round(none * weight)
        for number, (slice_, count) in enumerate(zip(times.slices, counts, strict=True), 1):
            cpu = count * cpu_of_sample
            self._samples[slice_] = self._samples.get(slice_, 0) + round(count * weight)
            self._cpu[slice_[0]] = self._cpu.get(slice_[0], 0.0) + cpu
            self._python[slice_[0]] = self._python.get(slice_[0], 0.0) + (cpu if is_python else 0.0)
            self._wall[slice_[0]] = self._wall.get(slice_[0], 0.0) + count * recording.interval / 1e9
            if self._rules is not None and count:
                blocked = self._blocked.setdefault(slice_[0], {})
                for rule, waiting in self._rules.counts(profile.in_slice(number)).items():
                    blocked[rule] = blocked.get(rule, 0) + waiting
        if is_python:
            return  # what Spark counts is of the executor
        begin = recording.times.start if recording.times else times.start
        if self._facts.time is not None and self._facts.start is not None:
            begin = max(begin, self._facts.time.microseconds(self._facts.start)[0])
        self._recorded.append((executor, begin, begin + round(recording.seconds * 1e6)))

    def shares(self) -> StageShares | None:
        """None if there is not one sample of a stage."""
        spark = self._facts.spark
        if spark is None or not any(self._samples.values()):
            return None
        is_cpu = self._facts.event == "cpu"
        is_wall = self._facts.event == "wall"
        times = stage_times(spark, self._recorded) if is_cpu or is_wall else {}
        several = self._samples.get((SEVERAL, False), 0)
        labels = stage_labels(spark)
        waits = {stage_name(one.id, one.attempt): one.waits for one in spark.stages}
        stages = []
        sampled = (name for (name, _), count in self._samples.items() if count and name != SEVERAL)
        for name in dict.fromkeys(sampled):
            known = times.get(name)
            stages.append(
                StageShare(
                    name=name,
                    label=labels.get(name, ""),
                    certain=self._samples.get((name, True), 0),
                    likely=self._samples.get((name, False), 0),
                    cpu=self._cpu[name] if is_cpu else None,
                    spark_cpu=known.cpu if is_cpu and known and known.known >= _KNOWN_ENOUGH else None,
                    python=self._python[name] if is_cpu else 0.0,
                    blocked=self._blocked.get(name, {}),
                    spark_waits=waits.get(name, Waits()) if self._rules is not None else Waits(),
                    unsampled=_unsampled(self._wall[name], known) if is_wall and not several else 0.0,
                )
            )
        stages.sort(key=lambda one: (-one.samples, one.name))
        replay = self._facts.replay
        if replay is None or not is_wall:
            return StageShares(tuple(stages), several, self._none, workers=tuple(self._workers))
        return StageShares(
            tuple(stages),
            several,
            self._none,
            _gains(stages, replay),
            self._is_recorded(spark, replay),
            tuple(self._workers),
        )

    def _is_recorded(self, spark: SparkFacts, replay: Replay) -> bool:
        """Whether recordings of all executors contain all their tasks."""
        ahead = spark.clock.offset * 1e6 if spark.clock else 0.0
        return all(
            any(
                one == executor and since + ahead <= first * 1000 and last * 1000 <= until + ahead
                for one, since, until in self._recorded
            )
            for executor, (first, last) in replay.slots.busy.items()
        )


def _unsampled(sampled: float, known: StageTime | None) -> float:
    """The part of a stage's task time without samples; 0 if it is small. Without any, the stage's threads may
    have other names."""
    part = 1 - sampled / known.time if sampled and known and known.time else 0.0
    return part if part >= _UNSAMPLED else 0.0


def _gains(stages: Iterable[StageShare], replay: Replay) -> dict[str, Gain]:
    """The bounds of each rule: tasks of a stage are shorter by the part of the stage's samples that wait.

    The replay has all attempts of a stage as one.
    """
    numbers = {
        stage_name(stage.id, attempt): number
        for number, stage in enumerate(replay.stages)
        for attempt in stage.attempt_numbers
    }
    attempts: dict[int, list[StageShare]] = {}
    for one in stages:
        if one.name in numbers and one.samples:
            attempts.setdefault(numbers[one.name], []).append(one)
    shorter: dict[str, dict[int, Sequence[float]]] = {}
    for number, shares in attempts.items():
        for rule, wait in _waits(shares).items():
            held, part = replay.stages[number].held, 1 - wait
            shorter.setdefault(rule, {})[number] = array("f", (part * time for time in held))
    return {rule: replay.gain(durations) for rule, durations in shorter.items()}


def _waits(attempts: Sequence[StageShare]) -> dict[str, float]:
    """The parts of a stage's samples that wait, by rule; UNSAMPLED is a part of its tasks' time."""
    counts: dict[str, int] = {}
    for one in attempts:
        for rule, count in one.blocked.items():
            counts[rule] = counts.get(rule, 0) + count
    samples = sum(one.samples for one in attempts)
    # In samples: how many there are, with those that were not taken.
    whole = sum(one.samples / (1 - one.unsampled) for one in attempts)
    waits = {rule: count / samples for rule, count in counts.items()}
    if whole > samples:
        waits.pop(_LOCAL_DISK, None)
        waits[UNSAMPLED] = (whole - samples + counts.get(_LOCAL_DISK, 0)) / whole
    return waits


def _cpu_of_sample(recording: Recording) -> float:
    """The seconds of CPU time that a sample stands for.

    Perf events count exactly. Timers fire once a tick of the kernel at most, whichever thread runs.
    """
    taken, expected = recording.samples.taken, recording.samples.expected
    missed = expected / taken if recording.source in _TIMERS and taken else 1.0
    return recording.interval / 1e9 * max(1.0, missed)


def stage_labels(spark: SparkFacts) -> Mapping[str, str]:
    """The call site of each stage, by the name of its slice."""
    return {stage_name(one.id, one.attempt): one.name for one in spark.stages}


def stage_finding(spark: SparkFacts | None, shares: StageShares | None, share_of: str) -> Finding | None:
    """The stage that takes most of the tasks' samples, what they are blocked on, and its slowest task."""
    tasks = sum(one.samples for one in shares.stages) + shares.several if shares else 0
    if spark is None or shares is None or not shares.stages or tasks < _FEWEST:
        return None
    most = shares.stages[0]
    if most.samples < _WORTH_A_SENTENCE * tasks:
        return None
    parts = [f"{most.name} takes {percent(most.samples, tasks)} of the {share_of} of tasks"]
    for wait, count in list(most_first(most.blocked))[:1]:
        if count >= _WAIT * most.samples:
            parts.append(f"{percent(count, most.samples)} of that is {wait}")
    slowest = _slowest(spark, most.name)
    if slowest:
        parts.append(slowest)
    text = "; ".join(parts)
    return says("stage", f"{text[:1].upper()}{text[1:]}.")


def _slowest(spark: SparkFacts, name: str) -> str:
    """ "its slowest task, on node7, takes 38 s longer than the median", if that is far longer.

    A task that was still running when Spark was asked has run until then.
    """
    tasks = [
        ((finish or max(launch, spark.until)) - launch, executor)
        for executor, table in spark.tasks.items()
        for _, stage, attempt, launch, finish, _ in table.rows()
        if stage_name(stage, attempt) == name
    ]
    if len(tasks) < _FEWEST_TASKS:
        return ""
    usual = median(time for time, _ in tasks)
    time, executor = max(tasks)
    longer = (time - usual) / 1000
    if time <= _SLOW * usual or longer < 1:
        return ""
    host = next((one.host for one in spark.executors if one.id == executor and one.host), "")
    where = host or f"executor {executor}"
    return f"its slowest task, on {where}, takes {duration(longer)} longer than the median"
