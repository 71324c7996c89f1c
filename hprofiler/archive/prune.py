"""Removes old runs from an archive."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hprofiler.archive.compact import clean, delete, replace
from hprofiler.archive.place import open_place
from hprofiler.archive.reading import connection


def prune(address: str, older_than: timedelta) -> int:
    """Remove the runs that started so long ago; returns how many. Raises ArchiveError.

    A compacted file that also has newer runs is written anew without the old ones.
    """
    place = open_place(address)
    before = datetime.now(timezone.utc).replace(tzinfo=None) - older_than
    removed = 0
    with place.lock(), connection(place) as duckdb:
        # First, so that no older copy of a run comes back when its file is deleted.
        for one in clean(duckdb, place):
            if one.file.month > f"{before:%Y-%m}":
                continue
            kept = one.runs & {
                run
                for (run,) in duckdb.execute(
                    "SELECT run FROM read_parquet(?, hive_partitioning = false) WHERE started >= ?",
                    [place.path(one.file.path("runs")), before],
                ).fetchall()
            }
            if not kept:
                delete(place, one.file)
            elif kept != one.runs or one.elsewhere:  # or another file would show old runs again
                replace(duckdb, place, [one], kept)
            removed += len(one.runs) - len(kept)
    return removed
