"""Which methods cost more than before on some day, by the same test as `hprofiler diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hprofiler.analysis.diff import Changes, MethodChange, compare
from hprofiler.analysis.diff_sides import Side
from hprofiler.archive.place import ArchiveError
from hprofiler.archive.questions import Point, points_of
from hprofiler.archive.reading import Database
from hprofiler.archive.selection import Asked, broken_runs, chosen_event, chosen_runs
from hprofiler.archive.spreads import (
    BEFORE,
    between_runs,
    gather,
    largest,
    may_have_grown,
    spreads_of,
    unsure_callers,
)

# By so many of the largest methods it is known how shares of methods changed whose cost did not.
_USUAL = 1000


@dataclass(frozen=True)
class Day:
    """A day since the moment, and how many runs started on it."""

    day: datetime
    runs: int


@dataclass(frozen=True)
class Grown:
    """A method as it changed on the last of the `days` on which it cost more than chance explains."""

    change: MethodChange
    days: Sequence[datetime]


@dataclass(frozen=True)
class Grew:
    """Runs since a moment, day by day, against those before.

    `newest` compares the last day's runs with those before. `own` and `total` are methods whose own cost, or
    total, grew on some day, the most first; `points` are theirs, by day. `broken` runs are left out because
    of their stacks.
    """

    application: str
    event: str
    since: datetime
    runs_before: int
    days: Sequence[Day]
    newest: Changes
    own: Sequence[Grown]
    total: Sequence[Grown]
    points: dict[str, list[Point]]
    broken: int = 0


def grew(asked: Asked, since: datetime) -> Grew:
    """Which methods cost more since a moment. Raises ArchiveError where there is no run before, or since."""
    with chosen_runs(replace(asked, since=None), True, "spreads", "methods") as (duckdb, found):
        event = chosen_event(duckdb, found)
        application = found.application or ""
        runs_before, days = _group(duckdb, replace(found, since=since), since)
        gather(duckdb, event)
        names, usual = may_have_grown(duckdb), largest(duckdb, _USUAL)
        spreads = spreads_of(duckdb, names | usual)
        spreads[BEFORE].between_runs = between_runs(duckdb, event, names | usual)
        unsure = unsure_callers(duckdb, event)
        name = f"{application} before {since:%Y-%m-%d %H:%M}"
        before = Side(name, spread=spreads.pop(BEFORE), unsure=unsure[BEFORE], compiled_known=False)
        sides = [
            Side(f"{day.day:%Y-%m-%d}", spread=spreads[part], unsure=unsure[part], compiled_known=False)
            for part, day in enumerate(days, 1)
        ]
        newest = compare(event, before, sides[-1], names=names | usual)
        changes = [*(compare(event, before, side, names=names) for side in sides[:-1]), newest]
        by_day = [(day.day, of_day) for day, of_day in zip(days, changes, strict=True)]
        own, total = (_grown(by_day, kind) for kind in ("own", "total"))
        shown = list(dict.fromkeys(one.change.name for one in (*own, *total)))
        points = points_of(duckdb, event, spreads, shown)
        return Grew(
            application, event, since, runs_before, days, newest, own, total, points, broken_runs(duckdb)
        )


def _group(duckdb: Database, asked: Asked, since: datetime) -> tuple[int, list[Day]]:
    """Makes the table `grouped`: the runs before, and those of each day since. How many there are."""
    duckdb.execute(
        "CREATE TEMP TABLE grouped AS SELECT run, CASE WHEN started < $since THEN 0 ELSE "
        "dense_rank() OVER (PARTITION BY started < $since ORDER BY date_trunc('day', started)) END::INTEGER "
        "AS part FROM chosen",
        {"since": since},
    )
    rows = duckdb.execute(
        "SELECT part, date_trunc('day', max(started)), count(*), max(started) FROM grouped "
        "JOIN chosen USING (run) GROUP BY part ORDER BY part"
    ).fetchall()
    moment = f"{since:%Y-%m-%d %H:%M} UTC"
    if rows[-1][0] == BEFORE:
        reason = f"{asked.place} has no run of {asked.application} since {moment}"
        newest = f"the newest started {rows[-1][3]:%Y-%m-%d %H:%M}"
        raise ArchiveError(f"{reason}: {newest}", "choose an earlier --since")
    if rows[0][0] != BEFORE:
        reason = f"{asked.place} has no run of {asked.application} before {moment} to compare with"
        raise ArchiveError(reason, "choose a later --since")
    return rows[0][2], [Day(day, runs) for _, day, runs, _ in rows[1:]]


def _grown(by_day: Sequence[tuple[datetime, Changes]], kind: str) -> list[Grown]:
    """Each method on the last day on which it grew; the largest change first."""
    found: dict[str, tuple[MethodChange, list[datetime]]] = {}
    for day, changes in by_day:
        for one in changes.grew(kind):
            days = found[one.name][1] if one.name in found else []
            found[one.name] = (one, [*days, day])
    grown = [Grown(change, days) for change, days in found.values()]
    return sorted(grown, key=lambda one: (-one.change.of(kind).change, one.change.name))
