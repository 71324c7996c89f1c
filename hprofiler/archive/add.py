"""Adds runs to an archive: one file for each table, that of `runs` last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import cpu_count
from pathlib import Path

from hprofiler.archive.place import ArchiveError, File, Place, open_place
from hprofiler.archive.reading import connection, runs_of
from hprofiler.archive.rows import Pseudonyms, library, run_id, run_rows
from hprofiler.base.errors import HprofilerError
from hprofiler.model import Outcome
from hprofiler.runfolder import RunFolder

_MOST_WORKERS = 8


@dataclass(frozen=True)
class Added:
    """A run that was added, or was there already (`known`), or could not be (`failure`)."""

    folder: Path
    run: str = ""
    application: str = ""
    known: bool = False
    problems: tuple[Outcome, ...] = ()
    failure: HprofilerError | None = None


def add(
    folders: Sequence[Path], address: str, pseudonymise: bool = False, application: str | None = None
) -> Iterator[Added]:
    """Add run folders, several at the same time; `application` is what they are of, if the user says so. What
    is added when is there at once.

    Raises UsageError and ArchiveError for the archive; what is wrong with a run is in its result.
    """
    place, pseudonyms = ready(address, pseudonymise)
    known = _known(place)
    one = partial(_add_one, address, known, pseudonyms, application)
    # The core does most of the work, without the interpreter's lock.
    with ThreadPoolExecutor(min(cpu_count() or 1, _MOST_WORKERS)) as pool:
        yield from pool.map(one, dict.fromkeys(folders))


def _known(place: Place) -> frozenset[str]:
    """The runs that are there. Files may be replaced by `compact` while they are listed: then they are listed
    again."""
    for last in (False, True):
        try:
            with connection(place) as duckdb:
                return runs_of(duckdb, place)
        except ArchiveError:
            if last:
                raise
    raise AssertionError("one of two ways returns or raises")


def ready(address: str, pseudonymise: bool = False) -> tuple[Place, Pseudonyms]:
    """The archive, which is made if it is not there. Raises UsageError and ArchiveError."""
    library()
    pseudonyms = Pseudonyms.asked_for() if pseudonymise else Pseudonyms()
    return open_place(address, create=True), pseudonyms


def _add_one(
    address: str, known: frozenset[str], pseudonyms: Pseudonyms, application: str | None, folder: Path
) -> Added:
    try:
        run = run_id(RunFolder.open(folder).record)
        if run in known:
            return Added(folder, run, known=True)
        rows = run_rows(folder, pseudonyms, application)
        place = open_place(address)
        write(place, File.of(rows.started, rows.application, rows.run), rows.tables)
        return Added(folder, rows.run, rows.application, problems=tuple(rows.problems))
    except HprofilerError as error:
        return Added(folder, failure=error)


def write(place: Place, file: File, tables: dict[str, object]) -> None:
    """Write the files of a stem; that of `runs` last. Raises ArchiveError if one cannot be written."""
    arrow = library()
    try:
        for name in sorted(tables, key=lambda name: name == "runs"):
            with place.writing(file.path(name)) as path:
                arrow.parquet.write_table(tables[name], path, compression="zstd", store_schema=False)
    except OSError as error:
        # What was written is of no run, unless another process added the same run.
        if place.read(file.path("runs")) is None:
            for name in tables:
                place.delete(file.path(name))
        raise ArchiveError(f"cannot write to {place.address}: {error.strerror or error}") from error
