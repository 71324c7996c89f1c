"""Tables of stages: those that do the same as one row, and each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from hprofiler.analysis.spark.groups import StageGroup, stage_groups
from hprofiler.base.text import printable
from hprofiler.model.measures import duration
from hprofiler.report.blocks import MOST_ROWS, Cell, Column, Part, Row, Table, cell
from hprofiler.report.spark.cells import (
    count_cell,
    filled_heads,
    group_row,
    share,
    share_cell,
    size_cell,
    time_cell,
)
from hprofiler.spark.figures import Figures, StageFigures, Work
from hprofiler.spark.windows import stage_name

_SHOWN = 10
_LONGEST = 110

Belongs = Mapping[str, Sequence[str]]
"""Keys of what belongs to a stage, by its key."""
NOTHING_BELONGS: Belongs = {}
Operations = Mapping[int, str]
"""What stages do, by their ids."""

_FIGURES = (
    Column("CPU/run", about="CPU time as a part of run time"),
    Column("GC", about="garbage collection as a part of task time"),
    Column("fetch wait", about="waits for shuffle blocks as a part of run time"),
    Column("disk spill", about="spilled to disk; in memory, if that is 0"),
)
_DATA = (
    Column("read", about="bytes read from outside", minor=True),
    Column("written", about="bytes written to outside", minor=True),
    Column("shuffle read", minor=True),
    Column("shuffle written", minor=True),
    Column("peak memory", about="highest peak execution memory of a task", minor=True),
)
_SKEWS = (
    Column("skew", about="time of the longest task ÷ median task"),
    Column("of data", name="skew of data", about="largest ÷ median task, by bytes read", minor=True),
)
_COUNTS = (
    Column("tasks", about="tasks that succeeded"),
    Column("failed", about="tasks that failed, or were done and lost with their executor"),
    Column("killed", about="tasks that were killed", minor=True),
)
_GROUP_COLUMNS = (
    Column("share", name="of task time", about="its part of all task time"),
    Column("stages", about="stages of the same operation and call site"),
    Column("took", name="elapsed", about="from submission to end, all stages added up"),
    Column("median", about="elapsed time of the median stage"),
    Column("slowest", about="elapsed time of the slowest stage"),
    *_COUNTS,
    *_SKEWS,
    *_FIGURES,
    Column("stage", name="slowest stage", number=False, longest=_LONGEST),
)
_IN_TERMINAL = (
    "share",
    "stages",
    "took",
    "median",
    "slowest",
    "tasks",
    "failed",
    "killed",
    "CPU/run",
    "GC",
    "fetch wait",
    "skew",
    "of data",
    "disk spill",
    "stage",
)
_STAGE_COLUMNS = (
    Column("stage", number=False),
    Column("task time", about="time of its tasks from launch to end, added up"),
    Column("share", name="of task time", about="its part of all task time"),
    Column("took", name="elapsed", about="from its submission to its end"),
    *_COUNTS,
    Column("median task", about="time of the median task", minor=True),
    Column("longest", name="longest task", about="time of the longest task"),
    *_SKEWS,
    *_FIGURES,
    *_DATA,
    Column("call site", number=False, minor=True),
)


def stage_part(found: Figures, operations: Operations, belongs: Belongs = NOTHING_BELONGS) -> Part:
    """The stages by the time of their tasks, and what belongs to them by their keys."""
    whole = sum(one.task_time for one in found.by_task_time)
    groups = stage_groups(found, operations)
    if not groups:
        return Part()
    several = any(group.count > 1 for group in groups)
    rows = []
    for one in found.by_task_time[:MOST_ROWS]:
        key = stage_name(*one.stage.key)
        rows.append(Row(_stage_cells(one, whole, operations), key, belongs.get(key, ())))
    left_out = len(found.by_task_time) - len(rows)
    title = "stages by the time of their tasks (skew: largest task ÷ median task, by time and by bytes read)"
    if several:
        title = f"{title[:-1]}; those that do the same are one row with the name of the slowest)"
    tables = [
        _group_table(groups, whole, several, {row.key for row in rows}),
        Table("stages", _STAGE_COLUMNS, rows, "stages", left_out=left_out, only="page"),
    ]
    return Part(title, tables, "Stages by task time")


def _group_table(groups: Sequence[StageGroup], whole: int, several: bool, shown: Set[str]) -> Table:
    """The groups, with those of their stages that are `shown` in the other table."""
    rows = []
    for one in groups[:MOST_ROWS]:
        members = [key for member in one.members if (key := stage_name(*member.stage.key)) in shown]
        rows.append(
            group_row(_group_cells(one, whole), "stages", stage_name(*one.slowest.stage.key), members)
        )
    heads = filled_heads(_GROUP_COLUMNS, rows[:_SHOWN], _IN_TERMINAL)
    things = "groups of stages" if several else "stages"
    left_out = len(groups) - len(rows)
    table = Table("operations", _GROUP_COLUMNS, rows, things, _SHOWN, heads, left_out)
    return table if several else replace(table, only="terminal")


def _group_cells(group: StageGroup, whole: int) -> list[Cell]:
    """In the order of _GROUP_COLUMNS; `whole` is the task time of all stages."""
    slowest, many = group.slowest, group.count > 1
    shown = f"{group.operation}, {group.name}" if group.operation else group.name
    return [
        cell(share(group.task_time, whole), group.task_time),
        count_cell(group.count) if many else "",
        time_cell(group.elapsed),
        time_cell(group.median) if many else "",
        time_cell(slowest.duration) if many else "",
        *_count_cells(group.work.tasks, group.failed, group.killed),
        *_skew_cells(slowest),
        *_figure_cells(group.work),
        printable(f"{stage_name(*slowest.stage.key)} {shown}"),
    ]


def _stage_cells(one: StageFigures, whole: int, operations: Operations) -> list[Cell]:
    """In the order of _STAGE_COLUMNS; `whole` is the task time of all stages."""
    good = one.work["succeeded"]
    failed = one.work["failed"].tasks + one.stage.resubmitted
    return [
        printable(f"{stage_name(*one.stage.key)} {operations.get(one.stage.id) or one.stage.name}"),
        (duration(one.task_time / 1e3), one.task_time),
        cell(share(one.task_time, whole), one.task_time),
        time_cell(one.duration),
        *_count_cells(good.tasks, failed, one.work["killed"].tasks),
        time_cell(one.median),
        time_cell(one.longest),
        *_skew_cells(one),
        *_figure_cells(good),
        *_data_cells(good),
        printable(one.stage.name),
    ]


def _count_cells(tasks: int, failed: int, killed: int) -> list[Cell]:
    return [(f"{tasks:,}", tasks), count_cell(failed), count_cell(killed)]


def _skew_cells(one: StageFigures) -> list[Cell]:
    return [(f"{value:.1f}", value) if value else "" for value in (one.skew, one.data_skew)]


def _figure_cells(good: Work) -> list[Cell]:
    """In the order of _FIGURES."""
    sums, run = good.sums, good.sums["executorRunTime"]
    cpu = sums["executorCpuTime"] / 1e6
    return [
        # Of tasks so short that their run time was rounded down to little or nothing, CPU may be more.
        cell(share(min(cpu, run), run), cpu / (run or 1)) if cpu else "",
        share_cell(sums["jvmGCTime"], sums["taskTime"]),
        share_cell(sums["shuffleFetchWaitTime"], run),
        size_cell(sums["diskBytesSpilled"] or sums["memoryBytesSpilled"]),
    ]


def _data_cells(good: Work) -> list[Cell]:
    """In the order of _DATA."""
    sums = good.sums
    return [
        size_cell(sums["bytesRead"]),
        size_cell(sums["bytesWritten"]),
        size_cell(sums["shuffleRemoteBytesRead"] + sums["shuffleLocalBytesRead"]),
        size_cell(sums["shuffleBytesWritten"]),
        size_cell(good.peak_memory),
    ]


def stage_group_records(found: Figures, operations: Operations) -> Iterator[dict[str, Any]]:
    """The section of `--json`. Times are milliseconds."""
    for one in stage_groups(found, operations):
        yield {
            "operation": one.operation,
            "name": one.name,
            "count": one.count,
            "taskTime": one.task_time,
            "elapsed": {"total": one.elapsed, "median": one.median, "slowest": one.slowest.duration},
            "slowest": {"stageId": one.slowest.stage.id, "attemptId": one.slowest.stage.attempt},
        }
