"""`archive:APP@WHEN` as a side of `hprofiler diff`: an application's runs of a day, or one run."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import datetime, timedelta

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff_sides import LeftOut, Listener, Side, Taker
from hprofiler.analysis.waits import LOCKS
from hprofiler.archive.place import VARIABLE
from hprofiler.archive.reading import Database
from hprofiler.archive.selection import Asked, chosen_event, chosen_runs, rules_of
from hprofiler.archive.spreads import categories_of, gather, spreads_of, unsure_callers
from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable
from hprofiler.model.measures import Column, measure_of

_DAY = timedelta(days=1)
# How a frame is marked that is the class of a lock.
_CLASS = "_[i]"
_GROUPED = "CREATE TEMP TABLE grouped AS SELECT run, 1 AS part FROM chosen"
_TABLES = ("processes", "stacks", "samples", "spreads", "methods", "work")
_SAMPLES = """
SELECT thread_group, stack_high, stack_low, sum(value) FROM samples SEMI JOIN chosen USING (run)
WHERE event = $event GROUP BY ALL HAVING sum(value) > 0
"""
_STACKS = """
SELECT stack_high, stack_low, frames FROM stacks
SEMI JOIN (SELECT stack_high, stack_low FROM samples SEMI JOIN chosen USING (run) WHERE event = $event)
USING (stack_high, stack_low)
"""


class ArchiveSide:
    """Archived runs as a side. Raises UsageError, or ArchiveError where there is no such run."""

    start: int | None = None
    """Several runs have no common time."""

    def __init__(self, text: str, now: datetime) -> None:
        self.name = printable(text)
        self._asked = _asked(text, now)
        with chosen_runs(self._asked, True) as (duckdb, _):
            query = (
                "SELECT DISTINCT event FROM events SEMI JOIN chosen USING (run) ORDER BY event <> 'cpu', 1"
            )
            events = [event for (event,) in duckdb.execute(query).fetchall()]
            duckdb.execute(_GROUPED)
            self._unsure = {event: unsure_callers(duckdb, event)[1] for event in events}
        self.events: dict[str, Column] = {event: measure_of(event).column for event in events}

    def has(self, event: str) -> bool:
        return event in self.events

    def column(self, event: str, in_time: bool) -> Column | None:
        """The archive has one value of each event."""
        column = self.events[event]
        return None if in_time and event == "cpu" else column

    def unsure_callers(self, event: str) -> int | None:
        return self._unsure[event]

    def read(
        self, event: str, column: Column, listener: Listener, taker: Taker | None, left_out: LeftOut
    ) -> Side:
        listener(self.name, 0, 1)
        with chosen_runs(replace(self._asked, event=event), True, *_TABLES) as (duckdb, found):
            chosen_event(duckdb, found)
            duckdb.execute(_GROUPED)
            gather(duckdb, event)
            rules, unsure = tuple(rules_of(duckdb)), self._unsure[event]
            side = Side(
                self.name,
                spread=spreads_of(duckdb)[1],
                rules=rules,
                unsure=unsure,
                compiled_known=False,
            )
            side.categories = categories_of(duckdb, event).get(1, side.categories)
            profile = _profile(duckdb, event, column)
        side.merged = side.reduced(event, profile.without_threads(), left_out)
        if taker is not None:
            taker(profile, None, None)
        listener(self.name, 1, 1)
        return side


def _profile(duckdb: Database, event: str, column: Column) -> Profile:
    """All samples, below groups of threads, as a file of speedscope: it names the value, and any frame."""
    frames: dict[str, int] = {}
    mark = _CLASS if event in LOCKS else ""
    stacks = {}
    for high, low, names in duckdb.execute(_STACKS, {"event": event}).fetchall():
        marked = [*names[:-1], *(one + mark for one in names[-1:])]
        stacks[high, low] = [frames.setdefault(name, len(frames)) for name in marked]
    samples, weights = [], []
    for group, high, low, value in duckdb.execute(_SAMPLES, {"event": event}).fetchall():
        thread = [frames.setdefault(f"[{group}]", len(frames))] if group else []
        samples.append(thread + stacks[high, low])
        weights.append(value)
    name, unit = column
    profile = {
        "type": "sampled",
        "name": name,
        "unit": "none",
        "value": {"name": name, "unit": unit},
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    file = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": [profile],
    }
    return Profile.from_bytes(json.dumps(file).encode(), "speedscope")


def _asked(text: str, now: datetime) -> Asked:
    """The runs of `archive:APP@yesterday`, @today, @2026-11-26, @-7d (a day), or @RUN-ID."""
    application, at, when = text.partition(":")[2].rpartition("@")
    if not at or not application or not when:
        raise UsageError(f"{text} names no run", "write archive:APP@yesterday, @DATE, @-7d or @RUN-ID")
    place = os.environ.get(VARIABLE)
    if not place:
        raise UsageError(f"{text}: ${VARIABLE} is not set", "set it to the archive's folder or address")
    asked = Asked(place, application)
    if ago := re.fullmatch(r"-(\d{1,5})d", {"today": "-0d", "yesterday": "-1d"}.get(when, when)):
        day = datetime(now.year, now.month, now.day) - _DAY * int(ago[1])
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", when):
        try:
            day = datetime.fromisoformat(when)
        except ValueError as error:
            raise UsageError(f"{text}: {when} is not a date") from error
    else:
        return replace(asked, run=when)
    return replace(asked, since=day, until=day + _DAY)
