"""Reads all of an archive, and reports what is damaged, missing or left over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hprofiler.archive.compact import left_over
from hprofiler.archive.place import ArchiveError, File, Place, open_place
from hprofiler.archive.reading import (
    Database,
    LiveFile,
    candidates,
    connection,
    contents,
    errors_of,
    live_of,
    make_view,
    quoted,
)
from hprofiler.archive.schema import LATER, TABLES, VERSION

# Rows that show a fault, by what it is. Every table is whole, so a file is missing or is of another run.
_CONTRADICTIONS = {
    "samples do not add up to the total of their event": (
        "SELECT run FROM (SELECT run, event, sum(value) AS value FROM samples GROUP BY ALL) "
        "FULL JOIN events USING (run, event) WHERE value IS DISTINCT FROM total"
    ),
    "samples have no stack": "SELECT run FROM samples ANTI JOIN stacks USING (stack_high, stack_low)",
    "samples have no process": "SELECT run FROM samples ANTI JOIN processes USING (run, process)",
}


@dataclass(frozen=True)
class Checked:
    """How many runs there are, what is wrong, and files that `compact` will remove."""

    runs: int
    problems: tuple[str, ...]
    left_over: tuple[str, ...]


def check(address: str) -> Checked:
    """Check an archive. Raises UsageError and ArchiveError for what is none."""
    place = open_place(address)
    with connection(place) as duckdb:
        return _check(duckdb, place)


def _check(duckdb: Database, place: Place) -> Checked:
    problems: list[str] = []
    known: list[LiveFile] = []
    damaged: list[LiveFile] = []
    for file in candidates(place):
        if problem := _unreadable(duckdb, place, file, "runs"):
            problems.append(problem)
            damaged.append(LiveFile(file, frozenset(), frozenset()))
        else:
            known += contents(duckdb, place, [file])
    live = live_of(known)
    whole = []
    for one in live:
        found = [
            problem
            for name in sorted(one.tables - {"runs"})
            if (problem := _unreadable(duckdb, place, one.file, name))
        ]
        problems += found
        if not found:
            whole.append(one)
    problems += _contradictions(duckdb, place, whole)
    replaced = {one.file for one in known} - {one.file for one in live}
    of_replaced = [file.path(name) for file in sorted(replaced) for name in TABLES]
    there = {name for name, _ in place.files("")}
    left = sorted({*(name for name in of_replaced if name in there), *left_over(place, known + damaged)})
    return Checked(sum(len(one.runs) for one in live), tuple(problems), tuple(left))


def _unreadable(duckdb: Database, place: Place, file: File, table: str) -> str:
    """What is wrong with a file: all of it is read."""
    path = place.path(file.path(table))
    columns = TABLES[table].columns
    source = f"read_parquet({quoted(path)}, hive_partitioning = false)"
    try:
        with errors_of(place):
            found = duckdb.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            there = {name: type_ for name, type_, *_ in found}
            lacks = LATER.get(table, frozenset()) - there.keys()
            if there != {name: type_ for name, type_ in columns.items() if name not in lacks}:
                return f"{path} has other columns than version {VERSION}"
            names = ", ".join(f'"{name}"' for name in there)
            duckdb.execute(f"SELECT bit_xor(hash({names})) FROM {source}").fetchall()
    except ArchiveError as error:
        return f"{path}: {error.reason}"
    return ""


def _contradictions(duckdb: Database, place: Place, live: list[LiveFile]) -> Iterator[str]:
    for table in TABLES.values():
        make_view(duckdb, place, table, live)
    for what, query in _CONTRADICTIONS.items():
        for (run,) in duckdb.execute(f"SELECT DISTINCT run FROM ({query}) ORDER BY run").fetchall():
            yield f"run {run}: {what}"
