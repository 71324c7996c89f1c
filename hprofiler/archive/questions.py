"""Questions to an archive: a method over time, what work costs, which runs contain a frame.

`hprofiler.archive.grown` has one more. DuckDB computes answers; what comes back is as small as what is shown.
Days and times are UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hprofiler.analysis.noise import Noise, Spread
from hprofiler.analysis.work import is_work
from hprofiler.archive.reading import Database
from hprofiler.archive.selection import (
    Asked,
    broken_runs,
    chosen_event,
    chosen_runs,
    exact_name,
    method_named,
    no_frame,
    rules_of,
    with_slashes,
)
from hprofiler.archive.spreads import gather, spreads_of, unknown_totals
from hprofiler.base.errors import UsageError

MOST_POINTS = 100
_STEPS = ("day", "week", "month")
_MOST_NAMES = 100
CORE_HOURS, HOURS = "core hours", "hours"


@dataclass(frozen=True)
class Part:
    """A share from 0 to 1; `noise` is how far off it may be by chance, None where that is not known."""

    share: float
    noise: float | None


@dataclass(frozen=True)
class Point:
    """A method in one run, or in all runs of a day, a week or a month. `run` is the id of one run alone.
    There is no total where stubs may be below wrong callers."""

    started: datetime
    runs: int
    run: str | None
    processes: int
    own: Part
    total: Part | None


@dataclass(frozen=True)
class History:
    """A method's share over time. A point is a run, or all of a day, week or month (`by`); `broken` runs are
    left out because of their stacks."""

    application: str
    event: str
    method: str
    by: str
    points: Sequence[Point]
    broken: int = 0


def history(asked: Asked, method: str) -> History:
    """How a method's share changed over time. Raises UsageError for a method that there is not."""
    with chosen_runs(asked, True, "spreads", "methods") as (duckdb, found):
        event = chosen_event(duckdb, found)
        name = method_named(duckdb, found, event, method)
        by = _group(duckdb)
        gather(duckdb, event, [name])
        points = points_of(duckdb, event, spreads_of(duckdb, [name]), [name])[name]
        return History(found.application or "", event, name, by, points, broken_runs(duckdb))


def _group(duckdb: Database) -> str:
    """Makes the table `grouped`: each run by itself, or as few steps of time as can be shown."""
    counts = ", ".join(f"count(DISTINCT date_trunc('{step}', started))" for step in _STEPS[:-1])
    sizes = duckdb.execute(f"SELECT count(*), {counts} FROM chosen").fetchall()[0]
    steps = ("run", *_STEPS)
    by = next((step for step, size in zip(steps, sizes, strict=False) if size <= MOST_POINTS), steps[-1])
    order = "started, run" if by == "run" else f"date_trunc('{by}', started)"
    duckdb.execute(
        "CREATE TEMP TABLE grouped AS "
        f"SELECT run, dense_rank() OVER (ORDER BY {order})::INTEGER AS part FROM chosen"
    )
    return by


def points_of(
    duckdb: Database, event: str, spreads: Mapping[int, Spread], names: Sequence[str]
) -> dict[str, list[Point]]:
    """The points of these methods, one for each part of `grouped` that is in `spreads`, oldest first."""
    noises = {part: Noise(spread) for part, spread in spreads.items()}
    unknown = unknown_totals(duckdb, event, names)

    def part_of(part: int, which: str, name: str) -> Part:
        return _part(spreads[part], noises[part], which, name)

    parts = duckdb.execute(
        "SELECT part, min(started), count(*), min(run) FROM grouped JOIN chosen USING (run) "
        "GROUP BY part ORDER BY part"
    ).fetchall()
    return {
        name: [
            Point(
                started,
                runs,
                run if runs == 1 else None,
                spreads[part].parts,
                part_of(part, "own", name),
                None if part in unknown.get(name, ()) else part_of(part, "all", name),
            )
            for part, started, runs, run in parts
            if part in spreads
        ]
        for name in names
    }


def _part(spread: Spread, noise: Noise, which: str, name: str) -> Part:
    """A method without a sample says nothing of how much it varies."""
    cost = spread.cost(which, name)
    return Part(cost / spread.total, noise.of(which, name) if cost else None)


@dataclass(frozen=True)
class CostDay:
    """What was recorded on a day: of so many runs, for so many seconds."""

    day: datetime
    runs: int
    seconds: float


@dataclass(frozen=True)
class CostRow:
    """A category, an application, a user or a method: its amount in all runs, and on each of the days.

    `cores` is the CPU time divided by the recorded time of all runs; None of other events than cpu.
    """

    name: str
    amount: float
    cores: float | None
    days: Sequence[float]


@dataclass(frozen=True)
class Cost:
    """What recorded runs used, the most expensive row first. `unit` is core hours, hours, bytes …

    `rows` are at most 100; `total` is of all. `rules` are the versions of the rules that made categories.
    """

    by: str
    event: str
    unit: str
    days: Sequence[CostDay]
    rows: Sequence[CostRow]
    total: float
    cores: float | None
    rules: Sequence[str]


# What a run adds to its day: its total, and how much a unit of it is in hours, if it is a time.
_WEIGHTS = """
CREATE TEMP TABLE weights AS
SELECT run, event, application, "user", date_trunc('day', started) AS day, total,
  coalesce(events.seconds / 3600 / nullif(total, 0), 1) AS scale
FROM chosen JOIN events USING (run) WHERE event = $event
"""
# Each way to divide a cost: amounts by key.
_AMOUNTS = {
    "category": """
SELECT category AS key, day, coalesce(seconds / 3600, value) AS amount
FROM work JOIN weights USING (run, event)
""",
    "application": """
SELECT application AS key, day, total * scale AS amount FROM weights
""",
    "user": """
SELECT processes."user" AS key, day, coalesce(work.seconds / 3600, value) AS amount
FROM work JOIN weights USING (run, event) JOIN processes USING (run, process)
""",
    "method": """
SELECT method AS key, day, own_cost * scale AS amount
FROM methods JOIN weights USING (run, event) WHERE own_cost > 0
""",
}
_TABLES = {"category": ["work"], "application": [], "user": ["work", "processes"], "method": ["methods"]}
_DAYS = """
SELECT date_trunc('day', started) AS day, count(*), sum(seconds) FROM chosen GROUP BY day ORDER BY day
"""
_COSTS = """
CREATE TEMP TABLE amounts AS
SELECT key, day, sum(amount) AS amount FROM ({amounts}) GROUP BY key, day
"""
_ROWS = f"""
SELECT key, sum(amount) AS amount, map(list(day), list(amount))
FROM amounts GROUP BY key ORDER BY amount DESC, key LIMIT {_MOST_NAMES}
"""


def cost(asked: Asked, by: str | None) -> Cost:
    """What recorded runs used on each day, by category of work, application, user or method.

    Without `by` it is by category, and by method of events whose stacks have none.
    """
    with chosen_runs(asked, False, *(_TABLES[by] if by else ("work", "methods"))) as (duckdb, found):
        event = chosen_event(duckdb, found, with_samples=False)  # idle runs were recorded, too
        by = by or ("category" if is_work(event) else "method")
        if by in ("category", "user") and not is_work(event):
            raise UsageError(f"the stacks of {event} are not divided by {by}", "choose another --by")
        unit, in_time = duckdb.execute(
            "SELECT any_value(unit), bool_and(seconds IS NOT NULL) FROM events SEMI JOIN chosen USING (run) "
            "WHERE event = $event",
            {"event": event},
        ).fetchall()[0]
        duckdb.execute(_WEIGHTS, {"event": event})
        duckdb.execute(_COSTS.format(amounts=_AMOUNTS[by]))
        days = [CostDay(*day) for day in duckdb.execute(_DAYS).fetchall()]
        rows = duckdb.execute(_ROWS).fetchall()
        total = duckdb.execute("SELECT sum(amount) FROM amounts").fetchall()[0][0] or 0.0
        rules = rules_of(duckdb) if by == "category" else []
    of_cpu = in_time and event == "cpu"
    hours = sum(day.seconds for day in days) / 3600

    def cores(amount: float) -> float | None:
        return amount / hours if of_cpu and hours else None

    return Cost(
        by,
        event,
        CORE_HOURS if of_cpu else HOURS if in_time else unit,
        days,
        [
            CostRow(key or "", amount, cores(amount), [of_days.get(one.day, 0.0) for one in days])
            for key, amount, of_days in rows
        ],
        total,
        cores(total),
        rules,
    )


@dataclass(frozen=True)
class Found:
    """A run with a frame: the event and the shares of that method which has the largest total share in it."""

    run: str
    started: datetime
    application: str
    event: str
    own: float
    total: float | None


@dataclass(frozen=True)
class FoundMethod:
    """A method that was found: in how many runs, in which of them first and last, and its largest share.

    Totals are None where stubs may be below wrong callers.
    """

    method: str
    runs: int
    first: datetime
    last: datetime
    total: float | None


@dataclass(frozen=True)
class Where:
    """Runs whose stacks have a frame, the newest first, of `of_runs` that were looked at.

    `methods` are at most 100, those in most runs first.
    """

    frame: str
    of_runs: int
    methods: Sequence[FoundMethod]
    runs: Sequence[Found]


_FOUND = """
CREATE TEMP TABLE found AS
WITH wholes AS (SELECT run, event, sum(whole) AS whole FROM spreads GROUP BY run, event)
SELECT run, event, method, sum(own_cost) / any_value(whole) AS own,
  CASE WHEN coalesce(any_value(callers_unsure) > 0, true)
    AND coalesce(list_contains(any_value(totals_unknown), method), true)
    THEN NULL ELSE sum(all_cost) / any_value(whole) END AS total
FROM methods SEMI JOIN chosen USING (run) JOIN wholes USING (run, event) JOIN events USING (run, event)
WHERE (method = $exact OR $exact IS NULL AND (contains(method, $text) OR contains(method, $part)
       OR contains(method, $package)))
  AND event = coalesce($event, event) AND whole > 0
GROUP BY run, event, method
"""
_FOUND_METHODS = f"""
SELECT method, count(DISTINCT run) AS runs, min(started), max(started),
  CASE WHEN count(total) = count(*) THEN max(total) END AS total
FROM found JOIN chosen USING (run) GROUP BY method ORDER BY runs DESC, total DESC, method LIMIT {_MOST_NAMES}
"""
_FOUND_RUNS = """
SELECT DISTINCT ON (started, run) run, started, application, event, own, total
FROM found JOIN chosen USING (run) ORDER BY started DESC, run, total DESC, event, method
"""


def where(asked: Asked, frame: str) -> Where:
    """Which runs contain a frame: the method of this name, else all whose name contains the text, also with
    dots for the slashes of packages."""
    with chosen_runs(asked, False, "spreads", "methods") as (duckdb, found):
        if asked.event:
            chosen_event(duckdb, found)
        exact = exact_name(duckdb, asked.event, frame)
        texts = {"text": frame, "part": with_slashes(frame), "package": frame.replace(".", "/")}
        duckdb.execute(_FOUND, {"exact": exact, **texts, "event": asked.event})
        methods = duckdb.execute(_FOUND_METHODS).fetchall()
        if not methods:
            raise no_frame(duckdb, found, asked.event, frame)
        runs = duckdb.execute(_FOUND_RUNS).fetchall()
        of_runs = duckdb.execute("SELECT count(*) FROM chosen").fetchall()[0][0]
    return Where(frame, of_runs, [FoundMethod(*row) for row in methods], [Found(*row) for row in runs])
