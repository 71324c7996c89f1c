"""Joins the files of each month and application to one, and removes what nobody reads.

New files are written whole before old ones are deleted, `runs` first. So a kill at any moment leaves a right
answer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from secrets import token_hex
from typing import TYPE_CHECKING

from hprofiler.archive.place import COMPACT, PART, ArchiveError, File, Place, open_place
from hprofiler.archive.reading import LiveFile, candidates, connection, live_files, quoted
from hprofiler.archive.schema import TABLES, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What has no run yet may be of a run that is being added.
_LEFT_OVER_SECONDS = 3600.0
_ROW_GROUP = 100_000


@dataclass(frozen=True)
class Compacted:
    """A month of an application, whose runs are in one file now."""

    month: str
    application: str
    runs: int
    files: int


def compact(address: str) -> Iterator[Compacted]:
    """Compact an archive; yields what was joined. Raises ArchiveError, also if another process does it."""
    place = open_place(address)
    with place.lock(), connection(place) as duckdb:
        live = clean(duckdb, place)
        for month, group in groupby(live, lambda one: (one.file.month, one.file.application)):
            files = list(group)
            runs = frozenset(run for one in files for run in one.runs)
            if len(files) > 1:
                replace(duckdb, place, files, runs)
            if len(files) > 1 or not files[0].file.is_compact:
                yield Compacted(month[0], files[0].file.name, len(runs), len(files))


def replace(
    duckdb: DuckDBPyConnection, place: Place, files: Sequence[LiveFile], runs: Collection[str]
) -> None:
    """Write these runs of files of one month and application as one file a table, and delete the files."""
    first = files[0].file
    digest = hashlib.sha256(" ".join(sorted(runs)).encode()).hexdigest()[:12]
    # Where there is no lock, two processes may do the same at once: each deletes only what it wrote itself.
    new = File(first.month, first.application, f"{COMPACT}{digest}{token_hex(3)}")
    tables = {name for one in files for name in one.tables}
    whole = runs == {run for one in files for run in one.runs}
    try:
        for table in sorted(TABLES.values(), key=lambda table: table.name == "runs"):
            if table.name in tables:
                _join(duckdb, place, files, table, new, None if whole else runs)
    except BaseException as error:
        delete(place, new)  # it has no file of `runs` yet
        if isinstance(error, OSError):
            raise ArchiveError(f"cannot write to {place.address}: {error.strerror or error}") from error
        raise
    for one in files:
        delete(place, one.file)


def _join(
    duckdb: DuckDBPyConnection,
    place: Place,
    files: Sequence[LiveFile],
    table: Table,
    new: File,
    runs: Collection[str] | None,
) -> None:
    columns = ", ".join(f'"{name}"' for name in table.columns)
    query = f"SELECT {columns} FROM {_source(place, files, table)}"
    only = "" if runs is None else f" WHERE run IN ({', '.join(map(quoted, sorted(runs)))})"
    if table.name == "stacks":
        if runs is not None:
            samples = _source(place, files, TABLES["samples"])
            query += f" SEMI JOIN (FROM {samples}{only}) USING (stack_high, stack_low)"
        query = f"SELECT DISTINCT ON (stack_high, stack_low) * FROM ({query})"
    else:
        query += only
    with place.writing(new.path(table.name)) as path:
        duckdb.execute(
            f"COPY ({query} ORDER BY {', '.join(table.order)}) TO {quoted(str(path))} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP})"
        )
        if table.name != "stacks":
            written = _count(duckdb, f"read_parquet({quoted(str(path))})")
            if written != _count(duckdb, f"{_source(place, files, table)}{only}"):
                raise ArchiveError(f"{place.path(new.path(table.name))} would lack rows; nothing is replaced")


def _source(place: Place, files: Iterable[LiveFile], table: Table) -> str:
    paths = [quoted(place.path(one.file.path(table.name))) for one in files if table.name in one.tables]
    return f"read_parquet([{', '.join(paths)}], hive_partitioning = false)"


def _count(duckdb: DuckDBPyConnection, source: str) -> int:
    (rows,) = duckdb.execute(f"SELECT count(*) FROM {source}").fetchall()[0]
    return int(rows)


def delete(place: Place, file: File) -> None:
    """Delete all files of a stem; that of `runs` first."""
    for name in sorted(TABLES, key=lambda name: name != "runs"):
        place.delete(file.path(name))


def clean(duckdb: DuckDBPyConnection, place: Place) -> list[LiveFile]:
    """Delete what nobody reads; returns the live files."""
    files = candidates(place)
    live = live_files(duckdb, place, files)
    for file in set(files) - {one.file for one in live}:
        delete(place, file)
    for name in left_over(place, live):
        place.delete(name)
    return live


def _is_ours(name: str) -> bool:
    return name.partition("/")[0] in TABLES and (name.endswith(PART) or File.parse(name) is not None)


def left_over(place: Place, live: Iterable[LiveFile]) -> list[str]:
    """Files of no run, which a killed or failed process left: older than an hour."""
    known = {one.file.path(name) for one in live for name in one.tables}
    before = time.time() - _LEFT_OVER_SECONDS
    return [
        name for name, written in place.files("") if written < before and name not in known and _is_ours(name)
    ]
