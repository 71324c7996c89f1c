"""How long the batches of streaming queries take, and whether they keep up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, median_low

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.spark.application import Application
from hprofiler.spark.streams import PHASES, Batch, StreamQuery

_FEWEST = 5
"""Batches, below which nothing is said."""
_WAITED = 20  # milliseconds
_WAITED_SHARE = 0.02
"""A batch that begins later after the one before, as a part of that one's time, has waited: for its time, or
for data."""
_ALIKE = 0.05
_LATE = 0.2
_BUSY = 0.8
_BEHIND = 1.1
_MOSTLY = 0.5
_GROWS = 1.05
_KINDS = {
    "source": ("latestOffset", "getOffset", "getEndOffset", "getBatch"),
    "planning": ("queryPlanning",),
    "checkpoint": ("walCommit", "commitOffsets"),
    "run": ("addBatch",),
}
"""What a batch does in its phases."""
_SLOWER = 1.3
_LEAST_TIME = 1000  # milliseconds
_RISES = 0.7
_FEWEST_ROWS = 1000


@dataclass(frozen=True)
class StreamFigures:
    """A run of a streaming query. Times are milliseconds, rates rows a second.

    `interval` is how often batches begin when they are on time, by the moments at which those that waited
    began; 0 if that is not known. `late` are batches that took longer; `busy` is the part of batches that
    began as soon as the one before had ended.
    """

    query: StreamQuery
    phases: dict[str, int]
    whole: int
    median: float
    longest: Batch
    interval: int
    late: int
    busy: float
    rows: int
    input_rate: float
    processed_rate: float
    behind: float
    """The part of batches in which more rows came than were processed."""

    @property
    def batches(self) -> Sequence[Batch]:
        return self.query.batches

    @property
    def ran(self) -> int:
        """From the begin of its first batch to the end of the last."""
        first, last = self.batches[0], self.batches[-1]
        return last.start + last.duration - first.start


def stream_figures(application: Application) -> list[StreamFigures]:
    """Of each streaming query that ran a batch, those with most batch time first."""
    made = [_figures(one) for one in application.streams.values() if one.batches]
    return sorted(made, key=lambda one: -one.whole)


def _figures(query: StreamQuery) -> StreamFigures:
    batches = query.batches
    interval = _interval(batches)
    with_rows = [one for one in batches if one.rows]
    whole = sum(one.duration for one in batches)
    phases = {name: sum(one.phases[at] for one in batches) for at, name in enumerate(PHASES)}
    waited = [_waited(one, after) for one, after in pairwise(batches)]
    behind = [one for one in with_rows if one.input_rate > _BEHIND * one.processed_rate]
    return StreamFigures(
        query,
        {name: time for name, time in phases.items() if time},
        whole,
        median(one.duration for one in batches),
        max(batches, key=lambda one: one.duration),
        interval,
        sum(one.duration > interval for one in batches) if interval else 0,
        1 - sum(waited) / len(waited) if waited else 0.0,
        sum(one.rows for one in batches),
        median([one.input_rate for one in with_rows] or [0.0]),
        median([one.processed_rate for one in with_rows] or [0.0]),
        len(behind) / len(with_rows) if with_rows else 0.0,
    )


def _interval(batches: Sequence[Batch]) -> int:
    """The usual time between the begins of batches that waited."""
    waited = [after.start for one, after in pairwise(batches) if _waited(one, after)]
    spaces = [after - one for one, after in pairwise(waited)]
    if len(spaces) < _FEWEST:
        return 0
    usual = median_low(spaces)
    alike = sum(abs(space - usual) <= _ALIKE * usual for space in spaces)
    return usual if alike >= len(spaces) / 3 else 0


def _has_trigger(batches: Sequence[Batch]) -> bool:
    """Whether batches wait for a trigger. Spark begins them at multiples of its interval since 1970, usually
    at whole seconds; batches that wait for data begin at any time."""
    waited = [after.start for one, after in pairwise(batches) if _waited(one, after)]
    return bool(waited) and all(start % 1000 <= _WAITED for start in waited)


def _waited(one: Batch, after: Batch) -> bool:
    return after.start - one.start - one.duration > max(_WAITED, _WAITED_SHARE * one.duration)


def stream_findings(found: Sequence[StreamFigures]) -> list[SparkFinding]:
    """What is wrong with streaming queries, with the evidence, or that one keeps up."""
    return [
        finding
        for one in found
        if len(one.batches) >= _FEWEST
        for finding in (
            *(_late(one) + _behind(one) or _slower(one) or _keeps_up(one)),
            *_grown(one),
        )
    ]


def _keeps_up(one: StreamFigures) -> list[SparkFinding]:
    """Or how its batches take as long as they may."""
    if one.busy >= _BUSY:
        return [SparkFinding("batches-without-pause", {**_stream(one), **_time(one)})]
    barely = bool(one.interval) and one.median >= _BUSY * one.interval
    code = "barely-keeps-up" if barely else "keeps-up"
    return [SparkFinding(code, {**_stream(one), **_time(one), "interval": one.interval / 1000})]


def _stream(one: StreamFigures) -> dict[str, object]:
    return {"stream": one.query.title, "id": one.query.id, "batches": len(one.batches)}


def _time(one: StreamFigures) -> dict[str, object]:
    """How long a batch takes, and which part of it takes most."""
    times = {name: sum(one.phases.get(phase, 0) for phase in phases) for name, phases in _KINDS.items()}
    kind = max(times, key=times.__getitem__)
    return {"median": one.median / 1000, "kind": kind, "kindShare": times[kind] / max(1, one.whole)}


def _slower(one: StreamFigures) -> list[SparkFinding]:
    """Batches that take longer from third to third of them."""
    times = [batch.duration for batch in one.batches]
    third = len(times) // 3
    if third < _FEWEST:
        return []
    first, middle, last = (median(part) for part in (times[:third], times[third:-third], times[-third:]))
    if not (middle >= _SLOWER * first and last >= _SLOWER * middle and last >= _LEAST_TIME):
        return []
    parameters = {**_stream(one), **_time(one), "first": first / 1000, "last": last / 1000}
    return [SparkFinding("batches-slow-down", parameters)]


def _late(one: StreamFigures) -> list[SparkFinding]:
    count = len(one.batches)
    stream = {**_stream(one), **_time(one)}
    if one.interval and one.late >= _LATE * count:
        lost = sum(max(0, batch.duration - one.interval) for batch in one.batches)
        parameters = {**stream, "late": one.late, "interval": one.interval / 1000, "threshold": _LATE}
        return [SparkFinding("batches-late", parameters, lost / 1000)]
    if not one.interval and one.busy >= _BUSY and _has_trigger(one.batches):
        return [SparkFinding("batches-back-to-back", {**stream, "busy": one.busy, "threshold": _BUSY})]
    return []


def _behind(one: StreamFigures) -> list[SparkFinding]:
    """More comes than is processed. Where batches wait that cannot be: the rate of the input is then that
    since the last look at the source."""
    if one.behind < _MOSTLY or not (one.busy >= _BUSY or one.late >= _LATE * len(one.batches)):
        return []
    parameters = {
        **_stream(one),
        **_time(one),
        "behind": one.behind,
        "input": one.input_rate,
        "processed": one.processed_rate,
        "threshold": _BEHIND,
    }
    return [SparkFinding("input-exceeds-processing", parameters)]


def _grown(one: StreamFigures) -> list[SparkFinding]:
    """State that has grown from third to third of the batches."""
    rows = [batch.state_rows for batch in one.batches]
    third = len(rows) // 3
    if third < 2 or rows[-1] < _FEWEST_ROWS:
        return []
    first, middle, last = (median(part) for part in (rows[:third], rows[third:-third], rows[-third:]))
    rises = sum(after > before for before, after in pairwise(rows)) / (len(rows) - 1)
    if not (middle > _GROWS * first and last > _GROWS * middle and rises >= _RISES):
        return []
    parameters = {
        **_stream(one),
        "first": rows[0],
        "last": rows[-1],
        "bytes": one.batches[-1].state_bytes,
        "watermark": one.query.watermark,
        "threshold": _GROWS,
    }
    return [SparkFinding("state-grows", parameters)]
