"""The tables of an archive and their columns, once: for writing, reading, checking and the docs.

Types are those that DuckDB, Spark, pandas and Polars all read: no enums, unions, maps, 128-bit integers.
A change that old files do not have raises VERSION, but for a column that LATER has: there it is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = 1
FORM = 1
"""Version of the canonical form of names, after which stacks are hashed."""
OLD_RULES = "1"
"""The `rules` of runs that were added before there was this column."""
MARKER = "hprofiler-archive.json"
"""The file of a place that says which version its tables have."""

TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "TIMESTAMP", "VARCHAR[]")


@dataclass(frozen=True)
class Table:
    """A table: its columns' types by name, and by which columns a compacted file is sorted, if any."""

    name: str
    columns: Mapping[str, str]
    order: tuple[str, ...]


def _of_type(type_: str, names: str) -> str:
    """Columns of one type, in the form of `_COLUMNS`."""
    return ", ".join(f"{name} {type_}" for name in names.split())


_STAGE_COUNTS = (
    "numTasks numActiveTasks numCompleteTasks numFailedTasks numKilledTasks numCompletedIndices "
    "executorDeserializeTime executorDeserializeCpuTime executorRunTime executorCpuTime resultSize "
    "jvmGcTime resultSerializationTime memoryBytesSpilled diskBytesSpilled peakExecutionMemory "
    "inputBytes inputRecords outputBytes outputRecords shuffleRemoteBlocksFetched "
    "shuffleLocalBlocksFetched shuffleFetchWaitTime shuffleRemoteBytesRead shuffleRemoteBytesReadToDisk "
    "shuffleLocalBytesRead shuffleReadBytes shuffleReadRecords shuffleRemoteReqsDuration "
    "shuffleWriteBytes shuffleWriteTime shuffleWriteRecords"
)
_TASK_COUNTS = (
    "run_time cpu_time deserialize_time deserialize_cpu_time gc_time serialize_time fetch_wait "
    "shuffle_write_time remote_requests result_size peak_memory memory_spilled disk_spilled input_bytes "
    "input_records output_bytes output_records shuffle_remote_bytes shuffle_local_bytes "
    "shuffle_remote_bytes_to_disk shuffle_remote_blocks shuffle_local_blocks shuffle_read_records "
    "shuffle_write_bytes shuffle_write_records python_time duration getting scheduler_delay"
)
_SUMS = "{0}_cost BIGINT, {0}_squared DOUBLE, {0}_weighted DOUBLE, {0}_sampled DOUBLE"
_COLUMNS = {
    "runs": (
        "run VARCHAR, started TIMESTAMP, seconds DOUBLE, kind VARCHAR, target VARCHAR, application VARCHAR, "
        "user VARCHAR, command VARCHAR, hprofiler VARCHAR, hosts INTEGER, processes INTEGER, form INTEGER, "
        "tables VARCHAR[], rules VARCHAR, broken VARCHAR[]"
    ),
    "events": (
        "run VARCHAR, event VARCHAR, unit VARCHAR, per_sample DOUBLE, samples BIGINT, total BIGINT, "
        "seconds DOUBLE, callers_unsure INTEGER, totals_unknown VARCHAR[]"
    ),
    "processes": (
        "run VARCHAR, process INTEGER, host VARCHAR, pid INTEGER, role VARCHAR, executor VARCHAR, "
        "container VARCHAR, user VARCHAR, engine VARCHAR, main VARCHAR, seconds DOUBLE"
    ),
    "stacks": (
        "stack_high BIGINT, stack_low BIGINT, frames VARCHAR[], category VARCHAR, phase VARCHAR, form INTEGER"
    ),
    "samples": (
        "run VARCHAR, process INTEGER, event VARCHAR, thread_group VARCHAR, stage VARCHAR, second INTEGER, "
        "stack_high BIGINT, stack_low BIGINT, value BIGINT"
    ),
    "spreads": (
        "run VARCHAR, event VARCHAR, role VARCHAR, parts INTEGER, known BOOLEAN, samples BIGINT, "
        "whole BIGINT, squared DOUBLE, weighted DOUBLE, sampled DOUBLE"
    ),
    "methods": (
        "run VARCHAR, event VARCHAR, role VARCHAR, method VARCHAR, "
        f"{_SUMS.format('own')}, {_SUMS.format('all')}"
    ),
    "work": (
        "run VARCHAR, event VARCHAR, process INTEGER, category VARCHAR, phase VARCHAR, value BIGINT, "
        "seconds DOUBLE"
    ),
    "stages": (
        "run VARCHAR, stageId BIGINT, attemptId BIGINT, status VARCHAR, name VARCHAR, description VARCHAR, "
        "failureReason VARCHAR, submissionTime VARCHAR, firstTaskLaunchedTime VARCHAR, "
        "completionTime VARCHAR, "
        f"{_of_type('BIGINT', _STAGE_COUNTS)}"
    ),
    "tasks": (
        "run VARCHAR, stageId BIGINT, attemptId BIGINT, tid BIGINT, index BIGINT, attempt BIGINT, "
        "partition BIGINT, executor VARCHAR, launch BIGINT, finish BIGINT, getting_result BIGINT, "
        "status VARCHAR, speculative BOOLEAN, locality VARCHAR, "
        f"{_of_type('BIGINT', _TASK_COUNTS)}"
    ),
    "counters": "run VARCHAR, host VARCHAR, pid INTEGER, name VARCHAR, value DOUBLE, counted DOUBLE",
    "metrics": (
        "run VARCHAR, host VARCHAR, of VARCHAR, id VARCHAR, metric VARCHAR, unit VARCHAR, mean DOUBLE, "
        "most DOUBLE"
    ),
}
"""`name TYPE, name TYPE` of each table."""
_ORDER: Mapping[str, tuple[str, ...]] = {
    "runs": ("started", "run"),
    "stacks": (),  # frames take too much memory; and alike stacks, which follow each other, compress well
    "samples": ("stack_high", "stack_low", "run"),
    "methods": ("method", "event", "run"),
    "work": ("event", "run"),
    "counters": ("name", "run"),
    "metrics": ("metric", "run"),
}
"""Of tables that are not sorted by run."""
LATER: Mapping[str, frozenset[str]] = {
    "runs": frozenset({"rules", "broken"}),
    "events": frozenset({"callers_unsure", "totals_unknown"}),
}
"""Columns of tables that files of the first writers of this version lack."""
TABLES: Mapping[str, Table] = {
    name: Table(name, dict(column.split(" ") for column in columns.split(", ")), _ORDER.get(name, ("run",)))
    for name, columns in _COLUMNS.items()
}
