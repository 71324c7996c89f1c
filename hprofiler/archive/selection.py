"""Which runs of an archive a question is about, and names of methods as people write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches

from hprofiler.analysis.waits import shown_row
from hprofiler.archive.place import ArchiveError
from hprofiler.archive.reading import Database, opened
from hprofiler.archive.schema import OLD_RULES
from hprofiler.base.bounded_json import members
from hprofiler.base.errors import UsageError
from hprofiler.base.text import some

_SHOWN = 5
_USUAL_EVENT = "cpu"
# Least similarity of a name that is suggested, from 0 to 1.
_LIKE = 0.85


@dataclass(frozen=True)
class Asked:
    """The archive and the runs of a question: of an application, with an event, started in a time (UTC), with
    an id."""

    place: str
    application: str | None = None
    event: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    run: str | None = None


@contextmanager
def chosen_runs(asked: Asked, one_application: bool, *tables: str) -> Iterator[tuple[Database, Asked]]:
    """The archive with `runs`, `events` and these tables, and the table `chosen`: the runs that are asked
    for, of those columns of `runs` that questions need; and what is asked for, with the application and the
    event that were left out.

    Raises UsageError for an application or an event that there is not, or where the application is left out
    and there are several; ArchiveError where there is no run.
    """
    with opened(asked.place, asked.application, asked.since, ("runs", "events", *tables)) as duckdb:
        duckdb.execute(
            'CREATE TEMP TABLE chosen AS SELECT run, started, seconds, application, "user", hosts, '
            "processes, rules, broken FROM runs WHERE application = coalesce($application, application) "
            "AND started >= coalesce($since, started) AND started < coalesce($until, TIMESTAMP 'infinity') "
            "AND run = coalesce($run, run)",
            members(asked, "application", "since", "until", "run"),
        )
        applications = _column(duckdb, "SELECT DISTINCT application FROM chosen ORDER BY 1")
        if not applications:
            raise _nothing(asked)
        if one_application and len(applications) > 1:
            names = some(applications, _SHOWN, "applications")
            raise UsageError(f"{asked.place} has runs of {names}", "choose one with --app")
        if one_application:
            asked = replace(asked, application=applications[0])
        yield duckdb, asked


def chosen_event(duckdb: Database, asked: Asked, with_samples: bool = True) -> str:
    """The event that is asked for, else CPU time, else the one of most runs; `chosen` keeps only runs that
    recorded it, and have samples of it. Raises UsageError for one that there is not."""
    query = (
        "SELECT event FROM events SEMI JOIN chosen USING (run) GROUP BY event ORDER BY count(*) DESC, event"
    )
    events = _column(duckdb, query)
    event = asked.event or (_USUAL_EVENT if _USUAL_EVENT in events else next(iter(events), _USUAL_EVENT))
    if event not in events:
        there = some(events, _SHOWN) or "none"
        raise UsageError(f"no run {_of(asked)}has the event {event!r}", f"events there: {there}")
    duckdb.execute(
        "CREATE TEMP TABLE broken_runs AS SELECT run FROM chosen WHERE list_contains(broken, ?)", [event]
    )
    least = 1 if with_samples else 0
    duckdb.execute(
        "DELETE FROM chosen WHERE run NOT IN (SELECT run FROM events WHERE event = ? AND total >= ?)",
        [event, least],
    )
    if not _column(duckdb, "SELECT count(*) FROM chosen")[0]:
        raise ArchiveError(f"no run {_of(asked)}has a sample of {event}", "there is nothing to show")
    return event


def broken_runs(duckdb: Database) -> int:
    """How many of the runs that are asked for are left out because their stacks of the event are broken."""
    return int(_column(duckdb, "SELECT count(*) FROM broken_runs")[0])


def rules_of(duckdb: Database) -> list[str]:
    """By which versions of the rules the work of the chosen runs has categories."""
    return _column(duckdb, f"SELECT DISTINCT coalesce(rules, '{OLD_RULES}') FROM chosen ORDER BY 1")


def _of(asked: Asked) -> str:
    """ "of etl since 2026-11-20 00:00 UTC "."""
    words = [f"of {asked.application}"] if asked.application else []
    if asked.run:
        words.append(f"with the id {asked.run}")
    if asked.since:
        words.append(f"{'from' if asked.until else 'since'} {_moment(asked.since)}")
    if asked.until:
        words.append(f"until {_moment(asked.until)}")
    return "".join(f"{word} " for word in words)


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


def _nothing(asked: Asked) -> Exception:
    """What there is instead of the runs that are asked for."""
    with opened(asked.place, tables=["runs"]) as duckdb:
        newest = dict(
            duckdb.execute(
                "SELECT application, max(started) FROM runs GROUP BY ALL ORDER BY max(started) DESC"
            ).fetchall()
        )
    if not newest:
        remedy = f"hprofiler archive add RUN --to {asked.place}"
        return ArchiveError(f"{asked.place} has no run yet", remedy)
    if asked.application is not None and asked.application not in newest:
        near = get_close_matches(asked.application, newest, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        there = some(list(newest), _SHOWN, "applications")
        return UsageError(f"{asked.place} has no run of {asked.application!r}{meant}", f"it has {there}")
    last = newest[asked.application] if asked.application else next(iter(newest.values()))
    reason = f"{asked.place} has no run {_of(asked).strip()}; the newest started {_moment(last)}"
    return ArchiveError(
        reason, "choose another time" if asked.until or asked.run else "choose an earlier --since"
    )


def method_named(duckdb: Database, asked: Asked, event: str, given: str) -> str:
    """The method's name as it is in stacks: `given`, or the only one that ends with it.

    Raises UsageError for a name that no chosen run has, or that may be several.
    """
    found = _exact(duckdb, event, given) or _column(
        duckdb,
        f"{_METHODS} AND ends_with(method, $name) AND regexp_matches("
        "left(method, length(method) - length($name)), '[^\\w]$') ORDER BY method LIMIT 100",
        {"event": event, "name": given},
    )
    if len(found) == 1:
        return found[0]
    if found:
        names = some(list(map(shown_row, found)), _SHOWN, "methods")
        raise UsageError(f"{given!r} may be {names}", "name one of them in full")
    near = _near(duckdb, event, given)
    remedy = f"near names: {', '.join(near)}" if near else "hprofiler where TEXT finds methods by a part"
    raise UsageError(f"no run {_of(asked)}has the method {given!r} in {event}", remedy)


def exact_name(duckdb: Database, event: str | None, text: str) -> str | None:
    """The method of this name, if there is one."""
    return next(iter(_exact(duckdb, event, text)), None)


def no_frame(duckdb: Database, asked: Asked, event: str | None, text: str) -> UsageError:
    """No method has the text in its name."""
    near = _near(duckdb, event, text)
    remedy = f"near names: {', '.join(near)}" if near else "name a part of the method, as reports write it"
    return UsageError(f"no run {_of(asked)}has a frame with {text!r}", remedy)


_METHODS = (
    "SELECT DISTINCT method FROM methods SEMI JOIN chosen USING (run) WHERE event = coalesce($event, event)"
)


def with_slashes(given: str) -> str:
    """A method of Java as stacks have it, which have slashes in packages."""
    package, dot, method = given.rpartition(".")
    return package.replace(".", "/") + dot + method


def _exact(duckdb: Database, event: str | None, given: str) -> list[str]:
    for name in dict.fromkeys([given, with_slashes(given)]):
        query = f"{_METHODS} AND method = $name"
        if found := _column(duckdb, query, {"event": event, "name": name}):
            return found
    return []


def _near(duckdb: Database, event: str | None, given: str) -> list[str]:
    """Names, as reports write them, that contain the given one in other letters, and those that end alike."""
    query = (
        "SELECT method, contains(lower(method), lower($name)) AS has, "
        "jaro_winkler_similarity(right(lower(method), length($name)), lower($name)) AS likeness "
        f"FROM ({_METHODS}) WHERE has OR likeness > {_LIKE} "
        f"ORDER BY has DESC, likeness DESC, method LIMIT {_SHOWN}"
    )
    return [shown_row(one) for one in _column(duckdb, query, {"event": event, "name": given})]


def _column(duckdb: Database, query: str, parameters: object = None) -> list[str]:
    return [first for first, *_ in duckdb.execute(query, parameters).fetchall()]
