"""Joins files of the same month and application, and removes what nobody reads.

New files are written whole before old ones are deleted, `runs` first. So a kill at any moment leaves a right
answer. Files with many runs stay as they are: what is written at a time, and the memory for it, has a limit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from secrets import token_hex

from hprofiler.archive.place import COMPACT, PART, ArchiveError, File, Place, open_place
from hprofiler.archive.reading import (
    Database,
    LiveFile,
    candidates,
    connection,
    listed,
    live_files,
    quoted,
    rows_of,
)
from hprofiler.archive.schema import TABLES, Table

# What has no run yet may be of a run that is being added.
_LEFT_OVER_SECONDS = 3600.0
_MOST_RUNS = 100
"""A file that has so many is not joined with others."""
_MEMORY = "400MB"
# Each thread has its own buffers.
_THREADS = 2
_ROW_GROUP = 100_000
# Stacks are long: a group has to fit into memory several times.
_STACKS_GROUP = 10_000


@dataclass(frozen=True)
class Compacted:
    """Runs of a month and application that are in one file now, and in how many they were."""

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
            for files in _batches(group):
                runs = frozenset(run for one in files for run in one.runs)
                replace(duckdb, place, files, runs)
                yield Compacted(month[0], files[0].file.name, len(runs), len(files))


def _batches(files: Iterable[LiveFile]) -> Iterator[list[LiveFile]]:
    """What to join: files with few runs, and those that share runs with others."""
    few = [one for one in files if len(one.runs) < _MOST_RUNS or one.elsewhere]
    batch: list[LiveFile] = []
    for one in sorted(few, key=lambda one: -len(one.runs)):
        batch.append(one)
        if sum(len(one.runs) for one in batch) >= _MOST_RUNS:
            yield batch
            batch = []
    if len(batch) > 1 or any(one.elsewhere for one in batch):
        yield batch


def replace(duckdb: Database, place: Place, files: Sequence[LiveFile], runs: Collection[str]) -> None:
    """Write these runs of files of one month and application as one file a table, and delete the files."""
    duckdb.execute(f"SET memory_limit = '{_MEMORY}'; SET threads = {_THREADS}")
    first = files[0].file
    digest = hashlib.sha256(" ".join(sorted(runs)).encode()).hexdigest()[:12]
    # Where there is no lock, two processes may do the same at once: each deletes only what it wrote itself.
    new = File(first.month, first.application, f"{COMPACT}{digest}{token_hex(3)}")
    tables = {name for one in files for name in one.tables}
    whole = runs == {run for one in files for run in one.runs | one.elsewhere}
    try:
        for table in sorted(TABLES.values(), key=lambda table: table.name == "runs"):
            if table.name in tables:
                _join(duckdb, place, files, table, new, None if whole else runs)
    except BaseException:
        delete(place, new)  # it has no file of `runs` yet
        raise
    for one in files:
        delete(place, one.file)


def _join(
    duckdb: Database,
    place: Place,
    files: Sequence[LiveFile],
    table: Table,
    new: File,
    runs: Collection[str] | None,
) -> None:
    rows = rows_of(place, table, files)
    is_stacks = table.name == "stacks"
    if runs is not None and is_stacks:
        samples = rows_of(place, TABLES["samples"], files)
        used = f"SELECT stack_high, stack_low FROM ({samples}) WHERE run IN {listed(runs)}"
        rows = f"FROM ({rows}) SEMI JOIN ({used}) USING (stack_high, stack_low)"
    elif runs is not None:
        rows = f"FROM ({rows}) WHERE run IN {listed(runs)}"
    group = _STACKS_GROUP if is_stacks else _ROW_GROUP
    order = f"ORDER BY {', '.join(table.order)}" if table.order else ""
    with place.writing(new.path(table.name)) as path:
        duckdb.execute(
            f"COPY (FROM ({rows}) {order}) TO {quoted(str(path))} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group})"
        )
        written = _count(duckdb, f"FROM read_parquet({quoted(str(path))})")
        if not is_stacks and written != _count(duckdb, rows):
            raise ArchiveError(f"{place.path(new.path(table.name))} would lack rows; nothing is replaced")


def _count(duckdb: Database, rows: str) -> int:
    (found,) = duckdb.execute(f"SELECT count(*) FROM ({rows})").fetchall()[0]
    return int(found)


def delete(place: Place, file: File) -> None:
    """Delete all files of a stem; that of `runs` first."""
    for name in sorted(TABLES, key=lambda name: name != "runs"):
        place.delete(file.path(name))


def clean(duckdb: Database, place: Place) -> list[LiveFile]:
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
