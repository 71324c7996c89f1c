"""A whole application in the run folder of its recording, for tables of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from hprofiler.base.paths import is_file
from hprofiler.runfolder import APPLICATION_FILE, replacing
from hprofiler.spark.application import KILLED, LOCALITIES, Application, Stage, TaskTable
from hprofiler.spark.facts import SparkError
from hprofiler.spark.log.sql import SqlExecution

FORMAT = 1
MOST_BYTES = 256 << 20


class _Saved(msgspec.Struct, array_like=True):
    format: int
    application: Application
    sql: dict[int, SqlExecution]


def save_application(application: Application, folder: Path) -> None:
    """Write it into a run folder, if it is not too large for one. Raises OSError."""
    sql = {id_: one for id_, one in application.sql.items() if isinstance(one, SqlExecution)}
    without = msgspec.structs.replace(application, sql={})
    content = msgspec.msgpack.encode(_Saved(FORMAT, without, sql), enc_hook=_encoded)
    if len(content) <= MOST_BYTES:
        with replacing(folder / APPLICATION_FILE) as file:
            file.write(content)


def saved_application(folder: Path) -> Application | None:
    """The application of a run folder, None if it has none. Raises SparkError for a damaged file."""
    path = folder / APPLICATION_FILE
    if not is_file(path):
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
        saved = msgspec.msgpack.decode(path.read_bytes(), type=_Saved, dec_hook=_decoded)
        if saved.format != FORMAT:
            raise ValueError(f"format {saved.format}")
        for stage in saved.application.stages.values():
            _check(stage, len(saved.application.executor_ids))
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise SparkError(f"{path} cannot be read: {error}", "run again, or remove it") from error
    saved.application.sql = dict(saved.sql)
    return saved.application


def _check(stage: Stage, executors: int) -> None:
    """Raises ValueError if it names what there is not."""
    for executor, locality, status in stage.tasks.columns("executor", "locality", "status"):
        if not (0 <= executor < executors and 0 <= locality < len(LOCALITIES) and 0 <= status <= KILLED):
            raise ValueError(f"a task of stage {stage.id} is damaged")
    _ = stage.peaks


def _encoded(table: Any) -> Any:
    if isinstance(table, TaskTable):
        return table.packed()
    raise NotImplementedError(type(table))


def _decoded(type_: type, value: Any) -> Any:
    if type_ is TaskTable:
        return TaskTable.unpacked(msgspec.convert(value, list[bytes]))
    raise NotImplementedError(type_)
