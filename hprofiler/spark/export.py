"""Tables of an application as CSV or Parquet files: application, jobs, stages, executors, tasks.

Names and units are those of Spark's REST interface, with `.` between the names of members inside members;
tasks have the names of TASK_COLUMNS and of the derived columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hprofiler.base import row_files
from hprofiler.base.errors import writing
from hprofiler.base.row_files import Row, Table, check_parquet
from hprofiler.runfolder import replacing
from hprofiler.spark.application import DERIVED_COLUMNS, LOCALITIES, TASK_COLUMNS, Application, Stage
from hprofiler.spark.figures import Figures, executor_records, job_records, stage_records

_OPEN = ("killedTasksSummary", "attributes")
_STATUSES = ("RUNNING", "SUCCESS", "FAILED", "KILLED")


def write_csv(application: Application, found: Figures, folder: Path) -> list[Path]:
    """Write NAME.csv for every table. Raises UsageError if the folder cannot be written."""
    return [
        _write(folder / f"{name}.csv", table, row_files.write_csv)
        for name, table in _tables(application, found).items()
    ]


def write_parquet(application: Application, found: Figures, folder: Path) -> list[Path]:
    """Write NAME.parquet for every table. Raises UsageError if the folder cannot be written, or the library
    for it is not installed."""
    check_parquet("--parquet", "install hprofiler[parquet], or use --csv")
    return [
        _write(folder / f"{name}.parquet", table, row_files.write_parquet)
        for name, table in _tables(application, found).items()
    ]


def _tables(application: Application, found: Figures) -> dict[str, Table]:
    return {
        "application": Table(lambda: [_flat(found.record())]),
        "jobs": Table(lambda: map(_flat, job_records(application, found))),
        "stages": Table(lambda: stage_rows(found)),
        "executors": Table(lambda: map(_flat, executor_records(application))),
        "tasks": Table(lambda: task_rows(application), alike=True),
    }


def stage_rows(found: Figures) -> Iterator[Row]:
    return map(_flat, stage_records(found))


def task_rows(application: Application) -> Iterator[Row]:
    for stage in application.stages.values():
        yield from _stage_tasks(application, stage)


def _stage_tasks(application: Application, stage: Stage) -> Iterator[Row]:
    names = (*TASK_COLUMNS, *DERIVED_COLUMNS)
    for values in stage.tasks.columns(*names):
        row: dict[str, Any] = {
            "stageId": stage.id,
            "attemptId": stage.attempt,
            **dict(zip(names, values, strict=True)),
        }
        row["executor"] = application.executor_ids[row["executor"]]
        row["status"] = _STATUSES[row["status"]]
        row["locality"] = LOCALITIES[row["locality"]]
        row["speculative"] = bool(row["speculative"])
        yield row


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Members inside members by one name; lists, and objects with any names, as JSON."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping) and name not in _OPEN:
            found.update(_flat(value, f"{before}{name}."))
        else:
            found[before + name] = json.dumps(value) if isinstance(value, (Mapping, list)) else value
    return found


def _write(path: Path, table: Table, write: Any) -> Path:
    with writing(path, "choose another folder"), replacing(path) as file:
        write(file, table)
    return path
