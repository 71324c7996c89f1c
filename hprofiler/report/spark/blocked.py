"""Blocked time and stragglers of a Spark application, in parts."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.analysis.spark.findings import ROUGH
from hprofiler.analysis.words import and_list, percent, plain
from hprofiler.base.text import printable
from hprofiler.model.measures import counted, duration, size
from hprofiler.report.blocks import Cell, Column, Lines, Part, Row, Table
from hprofiler.report.spark.words import CAUSES, NEVER_ADD_UP, RESOURCES
from hprofiler.spark.replay.blocked import BlockedTime, Resource
from hprofiler.spark.replay.schedule import Gain
from hprofiler.spark.replay.stragglers import StageStragglers, Stragglers
from hprofiler.spark.windows import stage_name, whole_stage_name

_STAGES_SHOWN = 5
_TASKS_SHOWN = 5
_WORTH = 0.01  # of the job


def blocked_part(blocked: BlockedTime, by_stacks: Sequence[str] | None = None) -> Part:
    """How long tasks waited, and at most what the application would gain without; `by_stacks`: sentences on
    that by wall-clock stacks, None if these were not recorded."""
    replay = blocked.replay
    unknown = and_list([one.resource.name for one in blocked.resources if one.time is None])
    needs = "see them by wall-clock stacks: record the executors with -e wall"
    if by_stacks is not None:
        needs = f"by stacks: {'see below' if by_stacks else 'not known'}"
    unknown = f"not in the log: {unknown}; {needs}"
    by_stacks = [f"{line[:1].upper()}{line[1:]}." for line in by_stacks or ()]
    if not blocked.task_time or not replay.measured:
        return Part("waits by stacks", [Lines(by_stacks)]) if by_stacks else Part()
    nothing = and_list([one.resource.name for one in blocked.resources if one.time == 0])
    rows = [
        _resource_row(one.resource, one.time, one.gain, blocked)
        for one in blocked.resources
        if one.time and one.gain
    ]
    if not rows:
        return Part(f"blocked time: no task waited for {nothing}; {unknown}", [Lines(by_stacks)])
    rough = "; the bounds are rough" if abs(replay.error) > ROUGH else ""
    error = f"{100 * replay.error:+.1f}%{rough}"
    lines = [
        NEVER_ADD_UP,
        f"By a replay on {counted(replay.slots, 'slots')}, which takes {_time(replay.as_it_was)}; "
        f"{_time(replay.measured)} were measured ({error}).",
    ]
    if replay.left_out.count:
        kinds = (
            f"{count:,} {kind} ({_time(replay.left_out.time[kind])})"
            for kind, count in replay.left_out.count.items()
        )
        lines.append(f"Tasks that are not in the replay: {', '.join(kinds)}.")
    lines += [*_pause_lines(blocked), *_use_lines(blocked)]
    if nothing:
        lines.append(f"No task waited for {nothing}.")
    lines += [f"{unknown[:1].upper()}{unknown[1:]}.", *by_stacks]
    columns = (
        Column("blocked", about="task time that waited"),
        Column("task time %", name="of task time"),
        Column("at most", name="saves at most", about="by so much the application would be shorter"),
        Column("job %", name="of elapsed time"),
        Column("blocked on", number=False),
    )
    table = Table("blocked", columns, rows)
    return Part(
        "blocked time; the job would be shorter by at most this if no task waited",
        [table, Lines(lines)],
        "Blocked time",
        "By so much the job would be shorter at most if no task waited.",
    )


def _resource_row(resource: Resource, time: float, gain: Gain, blocked: BlockedTime) -> Row:
    contains, lacks = RESOURCES[resource.name]
    without = f"; without {lacks}" if lacks else ""
    cells: list[Cell] = [
        (_time(time), time),
        (plain(percent(time, blocked.task_time)), time),
        (_time(gain.time), gain.time),
        (plain(percent(gain.share, 1)), gain.share),
        f"{resource.name}: {contains}{without}",
    ]
    return Row(cells)


def _pause_lines(blocked: BlockedTime) -> list[str]:
    by_tasks = next((one.time or 0.0 for one in blocked.resources if one.resource.name == "gc"), 0.0)
    if not 0 < blocked.gc_pauses < by_tasks:
        return []
    return [
        f"Each running task counts the same GC pause: the tasks' {_time(by_tasks)} are at least "
        f"{_time(blocked.gc_pauses)} of real pauses."
    ]


def _use_lines(blocked: BlockedTime) -> list[str]:
    use = blocked.use
    parts = []
    for name, amount in (("disk", use.disk), ("network", use.network)):
        by_cpu, by_host = use.per_cpu_second(amount), use.per_host_second(amount)
        if by_cpu is not None and by_host is not None:
            parts.append(f"{name} {size(by_cpu)} per CPU second, {size(by_host)}/s on each host on average")
    lines = [f"Bytes: {'; '.join(parts)}."] if parts else []
    if use.slots is not None:
        cpu = f", and on a CPU for {plain(percent(use.cpu, 1))}" if use.cpu is not None else ""
        lines.append(f"Slots had a task for {plain(percent(use.slots, 1))} of the time{cpu}.")
    return lines


def straggler_part(found: Stragglers) -> Part:
    """Where stragglers are, why, and at most what the application would gain without."""
    if not found.count:
        return Part()
    most = f"{_time(found.gain.time)} ({plain(percent(found.gain.share, 1))})"
    slow = "tasks over 1.5 x the median time of their stage, by bytes read"
    head = f"{counted(found.count, 'stragglers')} ({slow})"
    if found.gain.share < _WORTH:
        return Part(f"{head} cost the job at most {most}")
    lines = [f"The job would be at most {most} shorter if no task were slower than the median."]
    columns = (
        Column("lost", about="by how much they are longer than with the median rate"),
        Column("of tasks", name="stragglers of tasks"),
        Column("at most", name="saves at most"),
        Column("stage and causes", number=False),
    )
    rows = [_stage_row(one) for one in found.stages]
    table = Table("stragglers", columns, rows[:_STAGES_SHOWN])
    worth = [(task, gain) for task, gain in found.worst if gain and gain.share >= _WORTH][:_TASKS_SHOWN]
    tasks = []
    for task, gain in worth:
        where = f"executor {task.executor}" + (f" on {task.host}" if task.host else "")
        why = ", ".join(CAUSES[cause] for cause in task.causes) or "no known cause"
        cost = _time(gain.time) if gain else ""
        so_far = " so far, still running" if task.running else ""
        took = f"{_time(task.duration)}{so_far}, {task.times:.1f} x the median"
        name = stage_name(task.stage, task.attempt)
        tasks.append(printable(f"task {task.tid} of {name}, {where}: {took}; costs {cost} at most: {why}"))
    return Part(head, [Lines(lines), table, *([Lines(tasks, list=True)] if tasks else [])])


def _stage_row(one: StageStragglers) -> Row:
    causes = ", ".join(f"{CAUSES[cause]} {count:,}" for cause, count in one.causes.items())
    parts = [f"{whole_stage_name(one.stage, one.attempts)}: {causes or 'no known cause'}"]
    if not one.by_bytes:
        parts.append("by duration: most of its tasks read nothing")
    times = one.waves.times
    if times is not None:
        parts.append(f"first tasks of executors are {times:.1f} x as slow as later ones")
    cells: list[Cell] = [
        (_time(one.lost), one.lost),
        (f"{one.stragglers:,} of {one.tasks:,}", one.stragglers),
        (_time(one.gain.time), one.gain.time) if one.gain else "",
        "; ".join(parts),
    ]
    return Row(cells, stage_name(one.stage, one.attempts[0]) if len(one.attempts) == 1 else "")


def _time(milliseconds: float) -> str:
    return duration(round(milliseconds) / 1e3)
