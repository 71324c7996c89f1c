"""The live files of an archive as views of an embedded DuckDB: `runs`, `samples` and the others.

DuckDB opens no file by itself and loads no extension. Its memory is limited, so that a question to a large
archive takes no more than one to a small one; what does not fit goes to temporary files.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hprofiler.archive.place import ArchiveError, File, Place, open_place
from hprofiler.archive.schema import TABLES, Table
from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = "1GB"
_OF_QUERIES = ("Binder Error", "Catalog Error", "Conversion Error", "Parser Error")


@dataclass(frozen=True)
class LiveFile:
    """The files of one stem: its runs, and the tables that it has."""

    file: File
    runs: frozenset[str]
    tables: frozenset[str]


@contextmanager
def opened(
    address: str, application: str | None = None, since: datetime | None = None
) -> Iterator[DuckDBPyConnection]:
    """A connection with a view for each table. Raises ArchiveError for a damaged file or a wrong query.

    With `application` or `since` only files that may have runs of it, or from that month on, are looked at:
    the views may still have others.
    """
    place = open_place(address)
    with connection(place) as duckdb:
        files = live_files(duckdb, place, candidates(place, application, since))
        for table in TABLES.values():
            make_view(duckdb, place, table, (one.file for one in files if table.name in one.tables))
        yield duckdb


def ask(address: str, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns and the rows that a query of the user gives."""
    with opened(address) as duckdb:
        found = duckdb.execute(query)
        if found is None:
            raise UsageError("the query is empty", "hprofiler archive sql without a query shows the tables")
        return [name for name, *_ in found.description or ()], found.fetchall()


@contextmanager
def connection(place: Place) -> Iterator[DuckDBPyConnection]:
    """An empty database in memory that can read the place. Its errors become ArchiveError."""
    try:
        import duckdb
    except ImportError as error:
        remedy = "pip install 'hprofiler[archive]'"
        raise UsageError("an archive needs the libraries duckdb and pyarrow", remedy) from error
    temporary = Path(tempfile.gettempdir(), f"hprofiler-duckdb-{os.getpid()}")
    config: dict[str, Any] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(temporary),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
    }
    with errors_of(place), duckdb.connect(config=config) as opened_connection:
        if place.filesystem is not None:
            opened_connection.register_filesystem(place.filesystem)
        yield opened_connection


@contextmanager
def errors_of(place: Place) -> Iterator[None]:
    """DuckDB's errors become ArchiveError."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise ArchiveError(*_reason(place, str(error))) from error


def _reason(place: Place, text: str) -> tuple[str, str]:
    first = printable(text.strip().partition("\n")[0])
    if text.startswith(_OF_QUERIES):
        return first, ""
    if "No files found" in text or "Cannot open file" in text or "FileNotFound" in text:
        remedy = f"run the command again; if that does not help: hprofiler archive check {place.address}"
        return f"{place.address} lacks a file, or was compacted meanwhile: {first}", remedy
    if "IO Error" in text or "Invalid Input Error" in text or "Parquet" in text:
        return f"{place.address} cannot be read: {first}", f"hprofiler archive check {place.address}"
    return first, ""


def candidates(place: Place, application: str | None = None, since: datetime | None = None) -> list[File]:
    """Files of `runs`, of this application and from this month on."""
    found = [file for name, _ in place.files("runs") if (file := File.parse(name))]
    if application is not None:
        part = File.of(datetime.min, application, "").application
        found = [file for file in found if file.application == part]
    if since is not None:
        found = [file for file in found if file.month >= f"{since:%Y-%m}"]
    return found


def runs_of(duckdb: DuckDBPyConnection, place: Place) -> frozenset[str]:
    """All runs of the archive."""
    found = live_files(duckdb, place, candidates(place))
    return frozenset(run for one in found for run in one.runs)


def live_files(duckdb: DuckDBPyConnection, place: Place, files: Iterable[File]) -> list[LiveFile]:
    """The files that readers look at."""
    return live_of(place, contents(duckdb, place, list(files)))


def live_of(place: Place, known: Iterable[LiveFile]) -> list[LiveFile]:
    """Those of these files that are read: not one whose runs are all in a larger one, which replaced it.

    Raises ArchiveError where files have some runs in common, which no process writes.
    """
    live: list[LiveFile] = []
    seen: set[str] = set()
    for one in sorted(known, key=lambda one: (not one.file.is_compact, -len(one.runs), one.file)):
        if one.runs <= seen:
            continue
        if not seen.isdisjoint(one.runs):
            raise ArchiveError(
                f"{place.path(one.file.path('runs'))} has some runs of another compacted file",
                f"hprofiler archive check {place.address}",
            )
        seen |= one.runs
        live.append(one)
    return sorted(live, key=lambda one: one.file)


def contents(duckdb: DuckDBPyConnection, place: Place, files: list[File]) -> list[LiveFile]:
    """What files of `runs` say of their stems."""
    if not files:
        return []
    paths = {place.path(file.path("runs")): file for file in files}
    rows = duckdb.execute(
        "SELECT filename, list(run), list_distinct(flatten(list(tables))) "
        "FROM read_parquet(?, filename = true, hive_partitioning = false) GROUP BY filename",
        [list(paths)],
    ).fetchall()
    return [LiveFile(paths[path], frozenset(runs), frozenset(tables)) for path, runs, tables in rows]


def make_view(duckdb: DuckDBPyConnection, place: Place, table: Table, files: Iterable[File]) -> None:
    paths = [place.path(file.path(table.name)) for file in files]
    if paths:
        columns = ", ".join(f'"{name}"' for name in table.columns)
        listed = ", ".join(quoted(path) for path in paths)
        # Each file has the stacks of its own runs.
        once = "DISTINCT ON (stack_high, stack_low) " if table.name == "stacks" and len(paths) > 1 else ""
        source = f"{once}{columns} FROM read_parquet([{listed}], hive_partitioning = false)"
    else:
        source = ", ".join(f'NULL::{type_} AS "{name}"' for name, type_ in table.columns.items())
        source += " WHERE false"
    duckdb.execute(f'CREATE VIEW "{table.name}" AS SELECT {source}')


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
