"""The tables of an archive and their columns, once: for writing, reading, checking and the docs.

Types are those that DuckDB, Spark, pandas and Polars all read: no enums, unions, maps, 128-bit integers.
A change that old files do not have raises VERSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = 1
FORM = 1
"""Version of the canonical form of names, after which stacks are hashed."""
MARKER = "hprofiler-archive.json"
"""The file of a place that says which version its tables have."""

BIGINT, INTEGER, DOUBLE = "BIGINT", "INTEGER", "DOUBLE"
VARCHAR, BOOLEAN, TIMESTAMP, NAMES = "VARCHAR", "BOOLEAN", "TIMESTAMP", "VARCHAR[]"
TYPES = (BIGINT, INTEGER, DOUBLE, VARCHAR, BOOLEAN, TIMESTAMP, NAMES)


@dataclass(frozen=True)
class Table:
    """A table: its columns' types by name, and by which columns a compacted file is sorted, if any."""

    name: str
    columns: Mapping[str, str]
    order: tuple[str, ...] = ("run",)


_RUN = {"run": VARCHAR}
_STACK = {"stack_high": BIGINT, "stack_low": BIGINT}
_SUMS = {"cost": BIGINT, "squared": DOUBLE, "weighted": DOUBLE, "sampled": DOUBLE}
# fmt: off
_STAGE_COUNTS = (
    "numTasks", "numActiveTasks", "numCompleteTasks", "numFailedTasks", "numKilledTasks",
    "numCompletedIndices", "executorDeserializeTime", "executorDeserializeCpuTime", "executorRunTime",
    "executorCpuTime", "resultSize", "jvmGcTime", "resultSerializationTime", "memoryBytesSpilled",
    "diskBytesSpilled", "peakExecutionMemory", "inputBytes", "inputRecords", "outputBytes",
    "outputRecords", "shuffleRemoteBlocksFetched", "shuffleLocalBlocksFetched", "shuffleFetchWaitTime",
    "shuffleRemoteBytesRead", "shuffleRemoteBytesReadToDisk", "shuffleLocalBytesRead",
    "shuffleReadBytes", "shuffleReadRecords", "shuffleRemoteReqsDuration", "shuffleWriteBytes",
    "shuffleWriteTime", "shuffleWriteRecords",
)
_TASK_COUNTS = (
    "run_time", "cpu_time", "deserialize_time", "deserialize_cpu_time", "gc_time", "serialize_time",
    "fetch_wait", "shuffle_write_time", "remote_requests", "result_size", "peak_memory",
    "memory_spilled", "disk_spilled", "input_bytes", "input_records", "output_bytes", "output_records",
    "shuffle_remote_bytes", "shuffle_local_bytes", "shuffle_remote_bytes_to_disk",
    "shuffle_remote_blocks", "shuffle_local_blocks", "shuffle_read_records", "shuffle_write_bytes",
    "shuffle_write_records", "python_time", "duration", "getting", "scheduler_delay",
)
# fmt: on

_TABLES = (
    Table(
        "runs",
        {
            **_RUN,
            "started": TIMESTAMP,
            "seconds": DOUBLE,
            "kind": VARCHAR,
            "target": VARCHAR,
            "application": VARCHAR,
            "user": VARCHAR,
            "command": VARCHAR,
            "hprofiler": VARCHAR,
            "hosts": INTEGER,
            "processes": INTEGER,
            "form": INTEGER,
            "tables": NAMES,
        },
        ("started", "run"),
    ),
    Table(
        "events",
        {
            **_RUN,
            "event": VARCHAR,
            "unit": VARCHAR,
            "per_sample": DOUBLE,
            "samples": BIGINT,
            "total": BIGINT,
            "seconds": DOUBLE,
        },
    ),
    Table(
        "processes",
        {
            **_RUN,
            "process": INTEGER,
            "host": VARCHAR,
            "pid": INTEGER,
            "role": VARCHAR,
            "executor": VARCHAR,
            "container": VARCHAR,
            "user": VARCHAR,
            "engine": VARCHAR,
            "main": VARCHAR,
            "seconds": DOUBLE,
        },
    ),
    Table(
        "stacks",
        {**_STACK, "frames": NAMES, "category": VARCHAR, "phase": VARCHAR, "form": INTEGER},
        (),  # frames take too much memory; and alike stacks, which follow each other, compress well
    ),
    Table(
        "samples",
        {
            **_RUN,
            "process": INTEGER,
            "event": VARCHAR,
            "thread_group": VARCHAR,
            "stage": VARCHAR,
            "second": INTEGER,
            **_STACK,
            "value": BIGINT,
        },
        ("stack_high", "stack_low", "run"),
    ),
    Table(
        "spreads",
        {
            **_RUN,
            "event": VARCHAR,
            "role": VARCHAR,
            "parts": INTEGER,
            "known": BOOLEAN,
            "samples": BIGINT,
            "whole": BIGINT,
            "squared": DOUBLE,
            "weighted": DOUBLE,
            "sampled": DOUBLE,
        },
    ),
    Table(
        "methods",
        {
            **_RUN,
            "event": VARCHAR,
            "role": VARCHAR,
            "method": VARCHAR,
            **{f"own_{name}": type_ for name, type_ in _SUMS.items()},
            **{f"all_{name}": type_ for name, type_ in _SUMS.items()},
        },
        ("method", "event", "run"),
    ),
    Table(
        "work",
        {
            **_RUN,
            "event": VARCHAR,
            "process": INTEGER,
            "category": VARCHAR,
            "phase": VARCHAR,
            "value": BIGINT,
            "seconds": DOUBLE,
        },
        ("event", "run"),
    ),
    Table(
        "stages",
        {
            **_RUN,
            "stageId": BIGINT,
            "attemptId": BIGINT,
            "status": VARCHAR,
            "name": VARCHAR,
            "description": VARCHAR,
            "failureReason": VARCHAR,
            "submissionTime": VARCHAR,
            "firstTaskLaunchedTime": VARCHAR,
            "completionTime": VARCHAR,
            **dict.fromkeys(_STAGE_COUNTS, BIGINT),
        },
    ),
    Table(
        "tasks",
        {
            **_RUN,
            "stageId": BIGINT,
            "attemptId": BIGINT,
            "tid": BIGINT,
            "index": BIGINT,
            "attempt": BIGINT,
            "partition": BIGINT,
            "executor": VARCHAR,
            "launch": BIGINT,
            "finish": BIGINT,
            "getting_result": BIGINT,
            "status": VARCHAR,
            "speculative": BOOLEAN,
            "locality": VARCHAR,
            **dict.fromkeys(_TASK_COUNTS, BIGINT),
        },
    ),
    Table(
        "counters",
        {
            **_RUN,
            "host": VARCHAR,
            "pid": INTEGER,
            "name": VARCHAR,
            "value": DOUBLE,
            "counted": DOUBLE,
        },
        ("name", "run"),
    ),
    Table(
        "metrics",
        {
            **_RUN,
            "host": VARCHAR,
            "of": VARCHAR,
            "id": VARCHAR,
            "metric": VARCHAR,
            "unit": VARCHAR,
            "mean": DOUBLE,
            "most": DOUBLE,
        },
        ("metric", "run"),
    ),
)
TABLES: Mapping[str, Table] = {table.name: table for table in _TABLES}
