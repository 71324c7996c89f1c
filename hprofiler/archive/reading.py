"""The live files of an archive as views of an embedded DuckDB: `runs`, `samples` and the others.

DuckDB opens no file by itself and loads no extension. Its memory is limited, so that a question to a large
archive takes no more than one to a small one; what does not fit goes to temporary files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hprofiler.archive.place import ArchiveError, File, Place, open_place
from hprofiler.archive.schema import LATER, TABLES, Table
from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable

if TYPE_CHECKING:
    import duckdb

    Database = duckdb.DuckDBPyConnection
else:
    Database = object  # the library is optional

_MEMORY = "1GB"
_OF_QUERIES = ("Binder Error", "Catalog Error", "Conversion Error", "Parser Error")


@dataclass(frozen=True)
class LiveFile:
    """The files of one stem: its runs, and the tables that it has.

    Runs that are `elsewhere` are in these files, too, but are read from another one.
    """

    file: File
    runs: frozenset[str]
    tables: frozenset[str]
    elsewhere: frozenset[str] = frozenset()


@contextmanager
def opened(
    address: str,
    application: str | None = None,
    since: datetime | None = None,
    tables: Collection[str] = tuple(TABLES),
) -> Iterator[Database]:
    """A connection with a view for each of the tables. Raises ArchiveError: a damaged file, a wrong query.

    With `application` or `since` only files that may have runs of it, or from that month on, are looked at:
    the views may still have others.
    """
    place = open_place(address)
    with connection(place) as duckdb:
        files = live_files(duckdb, place, candidates(place, application, since))
        for table in tables:
            make_view(duckdb, place, TABLES[table], files)
        yield duckdb


def ask(address: str, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns and the rows that a query of the user gives."""
    with opened(address) as duckdb:
        found = duckdb.execute(query)
        if found is None:
            raise UsageError("the query is empty", "hprofiler archive sql without a query shows the tables")
        return [name for name, *_ in found.description or ()], found.fetchall()


@contextmanager
def connection(place: Place) -> Iterator[Database]:
    """An empty database in memory that can read the place. Its errors become ArchiveError."""
    try:
        import duckdb
    except ImportError as error:
        remedy = "pip install 'hprofiler[archive]'"
        raise UsageError("an archive needs the libraries duckdb and pyarrow", remedy) from error
    temporary = tempfile.mkdtemp(prefix="hprofiler-duckdb-")
    config: dict[str, Any] = {
        "memory_limit": _MEMORY,
        "temp_directory": temporary,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
    }
    try:
        with errors_of(place), duckdb.connect(config=config) as opened_connection:
            if place.filesystem is not None:
                opened_connection.register_filesystem(place.filesystem)
            yield opened_connection
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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


def runs_of(duckdb: Database, place: Place) -> frozenset[str]:
    """All runs of the archive, but for those of damaged files: they can be added again."""
    files = candidates(place)
    try:
        with errors_of(place):
            found = contents(duckdb, place, files)
    except ArchiveError:
        found = [one for file in files for one in _undamaged(duckdb, place, file)]
    return frozenset(run for one in found for run in one.runs)


def _undamaged(duckdb: Database, place: Place, file: File) -> list[LiveFile]:
    try:
        with errors_of(place):
            return contents(duckdb, place, [file])
    except ArchiveError:
        if place.read(file.path("runs")) is None:  # it was replaced meanwhile
            raise
        return []


def live_files(duckdb: Database, place: Place, files: Iterable[File]) -> list[LiveFile]:
    """The files that readers look at."""
    return live_of(contents(duckdb, place, list(files)))


def live_of(known: Iterable[LiveFile]) -> list[LiveFile]:
    """Those of these files that are read: not one whose runs are all in larger ones, which replaced it.

    Compacted files have some runs in common after the files of two archives were copied to one place.
    """
    live: list[LiveFile] = []
    seen: set[str] = set()
    for one in sorted(known, key=lambda one: (not one.file.is_compact, -len(one.runs), one.file)):
        if not one.runs <= seen:
            live.append(replace(one, runs=one.runs - seen, elsewhere=one.runs & seen))
            seen |= one.runs
    return sorted(live, key=lambda one: one.file)


def contents(duckdb: Database, place: Place, files: list[File]) -> list[LiveFile]:
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


def make_view(duckdb: Database, place: Place, table: Table, files: Iterable[LiveFile]) -> None:
    """A view of the rows in these files."""
    query = rows_of(place, table, files)
    if not query:
        nulls = ", ".join(f'NULL::{type_} AS "{name}"' for name, type_ in table.columns.items())
        query = f"SELECT {nulls} WHERE false"
    duckdb.execute(f'CREATE VIEW "{table.name}" AS {query}')


def rows_of(place: Place, table: Table, files: Iterable[LiveFile]) -> str:
    """The query for all rows of a table in these files; each stack once. Empty without files."""
    there = [one for one in files if table.name in one.tables]
    if table.name == "stacks":
        return _stacks(place, table, there) if there else ""
    partly = [one for one in there if one.elsewhere]
    wholly = [one for one in there if not one.elsewhere]
    queries = [f"{_columns(table)} {_rows(place, table, wholly)}"] if wholly else []
    for one in partly:
        queries.append(f"{_columns(table)} {_rows(place, table, [one])} WHERE run IN {listed(one.runs)}")
    return " UNION ALL ".join(queries)


def _stacks(place: Place, table: Table, files: list[LiveFile]) -> str:
    """Each file has the stacks of its own runs. One row of each is chosen by numbers: frames take memory."""
    if len(files) == 1:
        return f"{_columns(table)} {_rows(place, table, files)}"
    rows = _rows(place, table, files, ", filename = true, file_row_number = true")
    key = "stack_high, stack_low"
    row = "hash(filename, file_row_number)"
    chosen = f"SELECT {key}, min({row}) AS row {rows} GROUP BY ALL"
    return f"{_columns(table)} FROM (SELECT *, {row} AS row {rows}) SEMI JOIN ({chosen}) USING ({key}, row)"


def _columns(table: Table) -> str:
    columns = ", ".join(f'"{name}"' for name in table.columns)
    return f"SELECT {columns}"


def _rows(place: Place, table: Table, files: Iterable[LiveFile], more: str = "") -> str:
    paths = ", ".join(quoted(place.path(one.file.path(table.name))) for one in files)
    later = LATER.get(table.name)
    if not later:
        return f"FROM read_parquet([{paths}], hive_partitioning = false{more})"
    nulls = ", ".join(f'NULL::{table.columns[name]} AS "{name}"' for name in sorted(later))
    read = f"SELECT * FROM read_parquet([{paths}], hive_partitioning = false, union_by_name = true{more})"
    return f"FROM (SELECT {nulls} WHERE false UNION ALL BY NAME {read})"


def listed(texts: Iterable[str]) -> str:
    return f"({', '.join(map(quoted, sorted(texts)))})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
