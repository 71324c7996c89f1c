"""Blocked time: how long tasks waited for the disk, the network, garbage collection or the scheduler, and
how much shorter the application would be at best if they never had.

The method is that of Ousterhout et al., "Making Sense of Performance in Data Analytics Frameworks"
(NSDI 2015). What is blocked on one resource may be blocked on another at the same moment, and a task that
waits less for one may wait more for the next: the figures of several resources never add up.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hprofiler.spark.application import Application
from hprofiler.spark.replay.schedule import Gain, Replay, Replayed, ReplayStage


@dataclass(frozen=True)
class Resource:
    """Something that tasks wait for.

    `time` gives milliseconds of each task of a stage; it is None where no event log has anything of it. Some
    of it may be `without_slot`, when the task's slot already had another task. If it is `optional`, logs
    without any of it say nothing about it.
    """

    name: str
    time: Callable[[ReplayStage], Sequence[float]] | None
    without_slot: bool = False
    optional: bool = False


def _disk(stage: ReplayStage) -> Sequence[float]:
    columns = zip(stage.column("fetch_wait"), stage.column("shuffle_write_time"), strict=True)
    return [wait + nanoseconds / 1e6 for wait, nanoseconds in columns]


def _gc(stage: ReplayStage) -> Sequence[float]:
    # The counters of the collector also run while a task is deserialized.
    return list(map(min, stage.column("gc_time"), stage.duration))


RESOURCES = (
    Resource("network", lambda stage: stage.column("fetch_wait")),
    Resource("disk", _disk),
    Resource("gc", _gc),
    Resource("scheduler", lambda stage: stage.column("scheduler_delay"), without_slot=True),
    Resource("python", lambda stage: stage.column("python_time"), optional=True),
    Resource("locks", None),
)
"""In the order in which they are shown."""


@dataclass(frozen=True)
class Blocked:
    """How long all tasks waited for a resource (milliseconds), and what the application would gain at best if
    they had not. Both are None if the event log has nothing of it."""

    resource: Resource
    time: float | None
    gain: Gain | None


@dataclass(frozen=True, slots=True)
class StageBlocked:
    """A stage with all its attempts: the time of its tasks, and what they waited for, by resource;
    milliseconds."""

    stage: int
    attempts: tuple[int, ...]
    name: str
    task_time: float
    waits: dict[str, float]


@dataclass(frozen=True)
class Use:
    """How much all tasks used, also failed and repeated ones: bytes of disk and network, CPU and slots. Times
    are milliseconds.

    `disk` counts input, output, shuffle writes and reads, and spills twice, as if all came from a disk;
    `network` only shuffle reads from other hosts.
    """

    disk: int
    network: int
    cpu_time: float
    task_time: int
    slot_time: int
    hosts: int
    measured: int

    def per_cpu_second(self, size: int) -> float | None:
        return size / (self.cpu_time / 1000) if self.cpu_time else None

    def per_host_second(self, size: int) -> float | None:
        return size / (self.measured / 1000) / self.hosts if self.measured and self.hosts else None

    @property
    def slots(self) -> float | None:
        """The part of the slots' time in which they had a task."""
        return self.task_time / self.slot_time if self.slot_time else None

    @property
    def cpu(self) -> float | None:
        """The part of the slots' time in which their tasks ran on a CPU, if Spark counted that."""
        return self.cpu_time / self.slot_time if self.slot_time and self.cpu_time else None


@dataclass(frozen=True)
class BlockedTime:
    """The blocked time of an application. `stages` are in the order of their ids. `gc_pauses` are
    milliseconds by the executors' own count, as Spark sampled it; 0 if it did not."""

    replay: Replayed
    resources: tuple[Blocked, ...]
    stages: tuple[StageBlocked, ...]
    gc_pauses: int
    use: Use

    @property
    def task_time(self) -> float:
        return sum(stage.task_time for stage in self.stages)


def blocked_time(application: Application, replay: Replay) -> BlockedTime:
    waits: dict[str, list[float]] = {}
    resources = []
    for resource in RESOURCES:
        if resource.time is None:
            resources.append(Blocked(resource, None, None))
            continue
        shorter: dict[int, Sequence[float]] = {}
        waits[resource.name] = sums = [0.0] * len(replay.stages)
        for number, stage in enumerate(replay.stages):
            times = resource.time(stage)
            if any(times):
                sums[number] = sum(times)
                # What was without a slot is no part of `held`.
                whole = stage.duration if resource.without_slot else stage.held
                columns = zip(stage.held, whole, times, strict=True)
                shorter[number] = array(
                    "f", (max(0.0, min(held, all_ - time)) for held, all_, time in columns)
                )
        if resource.optional and not shorter:
            del waits[resource.name]
            resources.append(Blocked(resource, None, None))
            continue
        gain = replay.gain(shorter) if shorter else Gain(0.0, 0.0)
        resources.append(Blocked(resource, sum(sums), gain))
    return BlockedTime(
        replay.in_short(),
        tuple(resources),
        tuple(_of_stage(replay, number, waits) for number in range(len(replay.stages))),
        sum(one.peak.get("TotalGCTime", 0) for one in application.workers),
        _use(application, replay),
    )


def _of_stage(replay: Replay, number: int, waits: dict[str, list[float]]) -> StageBlocked:
    stage = replay.stages[number]
    return StageBlocked(
        stage.id,
        stage.attempt_numbers,
        stage.name,
        sum(stage.duration),
        {name: times[number] for name, times in waits.items()},
    )


def _use(application: Application, replay: Replay) -> Use:
    def total(*names: str) -> int:
        tables = (one.tasks for stage in replay.stages for one in stage.attempts)
        return sum(table.total(name) for table in tables for name in names)

    disk = total("input_bytes", "output_bytes", "shuffle_write_bytes", "shuffle_local_bytes")
    network = total("shuffle_remote_bytes")
    return Use(
        disk=disk + network + 2 * total("disk_spilled"),
        network=network,
        cpu_time=total("cpu_time", "deserialize_cpu_time") / 1e6,
        task_time=sum(sum(stage.held) for stage in replay.stages) + sum(replay.left_out.time.values()),
        slot_time=replay.slots.time(replay.start, replay.end),
        hosts=len({one.host for one in application.workers}),
        measured=replay.measured,
    )
