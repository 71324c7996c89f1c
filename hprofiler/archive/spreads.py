"""How methods vary between the processes of archived runs: the sums of `hprofiler.analysis.noise`, by parts.

The table `grouped` (run, part) says which part of the runs each is in, such as those of a day; `gather` makes
the tables `kinds`, `sums` and `owns` of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from hprofiler.analysis.noise import ENOUGH, SIGMAS, Kind, Spread, Sums, limit_of_runs
from hprofiler.archive.reading import Database

BEFORE = 0
"""The part that others are compared with."""

_COLUMNS = [
    f"{which}_{name}" for which in ("own", "all") for name in ("cost", "squared", "weighted", "sampled")
]
_KINDS = """
CREATE TEMP TABLE kinds AS
SELECT part, role, sum(parts)::BIGINT AS parts, bool_and(known) AS known, sum(samples) AS samples,
  sum(whole) AS whole, sum(squared) AS squared, sum(weighted) AS weighted, sum(sampled) AS sampled
FROM spreads JOIN grouped USING (run) WHERE event = $event AND whole > 0 GROUP BY part, role
"""
_METHODS = """
CREATE TEMP TABLE {name} AS SELECT part, role, method, {columns}
FROM methods JOIN grouped USING (run) WHERE event = $event {only} GROUP BY part, role, method
"""
# As Kind.ratios and Spread.pooled do it.
_POOLED = f"""
WITH shares AS (
  SELECT part, role, own_cost / whole AS share, own_sampled * (1 - share) AS chance,
    greatest(own_squared - 2 * share * own_weighted + share * share * squared, 0)
      * parts / (parts - 1) / nullif(chance, 0) AS ratio, parts - 1 AS freedom
  FROM owns JOIN kinds USING (part, role)
  WHERE parts > 1 AND own_cost > 0 AND own_cost >= {ENOUGH} * parts * sampled / whole
)
SELECT part, sum(ratio * freedom), sum(freedom) FROM shares WHERE chance > 0 GROUP BY part
"""
# What a change is at least if it is more than chance: the variance of the part's own samples, nothing else.
_CANDIDATES = f"""
WITH wholes AS (SELECT part, sum(whole) AS whole FROM kinds GROUP BY part),
shares AS (
  SELECT part, method, sum(own_cost) / any_value(whole) AS own, sum(all_cost) / any_value(whole) AS total,
    sum(own_sampled) / any_value(whole) / any_value(whole) * (1 - own) AS own_chance,
    sum(all_sampled) / any_value(whole) / any_value(whole) * (1 - total) AS total_chance
  FROM sums JOIN wholes USING (part) GROUP BY part, method
),
before AS (SELECT method, own, total FROM shares WHERE part = {BEFORE})
SELECT DISTINCT method FROM shares AS after LEFT JOIN before USING (method)
WHERE part <> {BEFORE} AND (
  after.own - coalesce(before.own, 0) > {0.99 * SIGMAS} * sqrt(greatest(own_chance, 0))
  OR after.total - coalesce(before.total, 0) > {0.99 * SIGMAS} * sqrt(greatest(total_chance, 0)))
"""


def gather(duckdb: Database, event: str, names: Sequence[str] | None = None) -> None:
    """Add up the sums of each part: of all methods, or of these; and the own costs of all, in `owns`."""
    duckdb.execute(_KINDS, {"event": event})
    given = {"event": event, **({} if names is None else {"names": names})}
    only = "" if names is None else "AND method IN (SELECT unnest($names))"
    sums = [f"sum({name}) AS {name}" for name in _COLUMNS]
    duckdb.execute(_METHODS.format(name="sums", columns=", ".join(sums), only=only), given)
    if names is None:
        duckdb.execute("CREATE TEMP VIEW owns AS FROM sums")
    else:
        own = _METHODS.format(name="owns", columns=", ".join(sums[:4]), only="")
        duckdb.execute(own, {"event": event})


def spreads_of(duckdb: Database, names: Collection[str] | None = None) -> dict[int, Spread]:
    """The spread of each part: of all methods, or of these and how much all methods vary."""
    spreads: dict[int, Spread] = {}
    for part, role, processes, known, samples, whole, *sums in duckdb.execute(
        "SELECT * FROM kinds ORDER BY part, role"
    ).fetchall():
        kind = Kind(processes, Sums(whole, *sums))
        spreads.setdefault(part, Spread()).add_kind(role, kind, samples, known)
    if names is not None:
        measured = {part: (ratios, freedom) for part, ratios, freedom in duckdb.execute(_POOLED).fetchall()}
        for part, spread in spreads.items():
            spread.measured = measured.get(part, (0.0, 0.0))
    rows = duckdb.execute(
        f"SELECT part, role, method, {', '.join(_COLUMNS)} FROM sums "
        + ("" if names is None else "WHERE method IN (SELECT unnest($names))"),
        None if names is None else {"names": list(names)},
    )
    while block := rows.fetchmany(10_000):
        for part, role, name, *sums in block:
            kind = spreads[part].kinds[role]
            kind.put("all", name, Sums(*sums[4:]))
            if sums[0]:
                kind.put("own", name, Sums(*sums[:4]))
    return spreads


# Shares in each run before; a run without the method has 0. Numbers for names: there are many pairs.
_OF_RUNS = f"""
WITH names AS (SELECT unnest($names) AS method, generate_subscripts($names, 1)::INTEGER AS name),
runs AS (
  SELECT run, sum(whole) AS whole, row_number() OVER ()::INTEGER AS number
  FROM spreads JOIN grouped USING (run) WHERE event = $event AND part = {BEFORE} AND whole > 0 GROUP BY run
),
shares AS (
  SELECT name, sum(own_cost / whole) AS own, sum(all_cost / whole) AS total
  FROM methods JOIN runs USING (run) JOIN names USING (method) WHERE event = $event GROUP BY name, number
)
SELECT name, (SELECT count(*) FROM runs), sum(own), sum(own * own), sum(total), sum(total * total)
FROM shares GROUP BY name
"""
_FEWEST_RUNS = 3
_NAMES_AT_ONCE = 500


def between_runs(duckdb: Database, event: str, names: Collection[str]) -> dict[tuple[str, str], float]:
    """How far the shares of these methods in one more run may be from those of the runs before."""
    found: dict[tuple[str, str], float] = {}
    ordered = sorted(names)  # as compacted files are
    for first in range(0, len(ordered), _NAMES_AT_ONCE):
        some = ordered[first : first + _NAMES_AT_ONCE]
        for number, runs, *sums in duckdb.execute(_OF_RUNS, {"event": event, "names": some}).fetchall():
            if runs < _FEWEST_RUNS:
                return found
            for which, own, squares in (("own", *sums[:2]), ("all", *sums[2:])):
                variance = max(0.0, squares - own * own / runs) / (runs - 1)
                found[which, some[number - 1]] = limit_of_runs(runs, math.sqrt(variance))
    return found


# Of each process the cost of each category; a sample stands for what it does on average in the run.
_WORK = """
CREATE TEMP TABLE costs AS
WITH costs AS (
  SELECT run, process, category, sum(value) AS cost FROM work WHERE event = $event GROUP BY ALL
)
SELECT part, role, run, process, category, cost,
  sum(cost) OVER (PARTITION BY run, process) AS whole, per_sample
FROM costs JOIN grouped USING (run) JOIN processes USING (run, process)
JOIN events ON events.run = costs.run AND events.event = $event WHERE cost > 0
"""
_WORK_KINDS = """
SELECT part, role, count(*), sum(whole / per_sample)::BIGINT,
  sum(whole), sum(whole::DOUBLE * whole), sum(whole::DOUBLE * whole), sum(whole * per_sample)
FROM (SELECT DISTINCT part, role, run, process, whole, per_sample FROM costs) GROUP BY part, role
"""
_WORK_SUMS = """
SELECT part, role, category,
  sum(cost), sum(cost::DOUBLE * cost), sum(cost::DOUBLE * whole), sum(cost * per_sample)
FROM costs GROUP BY part, role, category
"""


def categories_of(duckdb: Database, event: str) -> dict[int, Spread]:
    """The spread of categories of work, by their names in brackets, of each part that has any."""
    spreads: dict[int, Spread] = {}
    duckdb.execute(_WORK, {"event": event})
    for part, role, processes, samples, *sums in duckdb.execute(_WORK_KINDS).fetchall():
        spreads.setdefault(part, Spread()).add_kind(role, Kind(processes, Sums(*sums)), samples, True)
    for part, role, category, *sums in duckdb.execute(_WORK_SUMS).fetchall():
        for which in ("own", "all"):
            spreads[part].kinds[role].put(which, f"[{category}]", Sums(*sums))
    return spreads


def unsure_callers(duckdb: Database, event: str) -> dict[int, int | None]:
    """In how many processes of each part callers may be wrong; None where a run does not know it."""
    query = (
        "SELECT part, CASE WHEN count(callers_unsure) = count(*) THEN sum(callers_unsure)::INTEGER END "
        "FROM events JOIN grouped USING (run) WHERE event = ? GROUP BY part"
    )
    return dict(duckdb.execute(query, [event]).fetchall())


def unknown_totals(duckdb: Database, event: str, names: Collection[str]) -> dict[str, set[int]]:
    """In which parts the totals of these methods are not known: a method that calls, or may call, stubs in
    one part may do it, unseen, in every part whose callers are not sure."""
    parts: set[int] = set()
    unknown: set[str] = set()
    for part, unsure, some in duckdb.execute(
        "SELECT part, coalesce(callers_unsure, 1) > 0, totals_unknown FROM events JOIN grouped USING (run) "
        "WHERE event = ?",
        [event],
    ).fetchall():
        if unsure:
            parts.add(part)
        unknown.update(names if some is None and unsure else some or ())
    return {name: parts for name in names if name in unknown}


def may_have_grown(duckdb: Database) -> set[str]:
    """Methods that may cost more in some part than before: all that did so beyond chance, and others."""
    return {name for (name,) in duckdb.execute(_CANDIDATES).fetchall()}


def largest(duckdb: Database, most: int) -> set[str]:
    """The methods with the highest own cost, at most so many."""
    query = f"SELECT method FROM sums GROUP BY method ORDER BY sum(own_cost) DESC, method LIMIT {most}"
    return {name for (name,) in duckdb.execute(query).fetchall()}
