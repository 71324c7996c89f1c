"""Streaming queries of an event log, from the events of Spark's StreamingQueryListener."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import MethodType
from typing import Any

import msgspec
from msgspec import field

from hprofiler.base.text import printable
from hprofiler.spark.log.texts import Texts
from hprofiler.spark.streams import PHASES, Batch, StreamQuery

MOST_QUERIES = 10_000
"""Runs of streaming queries that are kept, the first ones."""
MOST_BATCHES = 200_000
"""Batches of all queries that are kept, the first ones."""
_LONGEST_TEXT = 200
_MOST_SOURCES = 20
_PREFIX = b"org.apache.spark.sql.streaming.StreamingQueryListener$"
_LARGEST = 1 << 53


class _Started(msgspec.Struct):
    id: str = ""
    run: str = field(default="", name="runId")
    name: str | None = None
    timestamp: str = ""


class _Source(msgspec.Struct):
    description: str = ""
    rows: Any = field(default=0, name="numInputRows")
    input_rate: Any = field(default=0, name="inputRowsPerSecond")
    processed_rate: Any = field(default=0, name="processedRowsPerSecond")


class _Sink(msgspec.Struct):
    description: str = ""


class _State(msgspec.Struct):
    rows: Any = field(default=0, name="numRowsTotal")
    size: Any = field(default=0, name="memoryUsedBytes")


class _Of(msgspec.Struct):
    """A batch's progress."""

    id: str = ""
    run: str = field(default="", name="runId")
    name: str | None = None
    timestamp: str = ""
    batch: int = field(default=0, name="batchId")
    durations: dict[str, Any] = field(default_factory=dict, name="durationMs")
    event_time: dict[str, Any] = field(default_factory=dict, name="eventTime")
    sources: list[_Source] = []
    state: list[_State] = field(default_factory=list, name="stateOperators")
    sink: _Sink = field(default_factory=_Sink)


class _Progress(msgspec.Struct):
    progress: _Of = field(default_factory=_Of)


class _Terminated(msgspec.Struct):
    id: str = ""
    run: str = field(default="", name="runId")
    exception: str | None = None


class StreamLog:
    """Streaming queries in the making, event by event. `left_out` are batches that are not kept."""

    def __init__(self) -> None:
        self.queries: dict[str, StreamQuery] = {}
        self.left_out = 0
        self._batches = 0
        self._errors = Texts()

    def takers(self) -> dict[bytes, tuple[Callable[[bytes], Any], Callable[[Any], None]]]:
        """What decodes and what takes each event of streaming, by the name that stands in the log."""
        return {_PREFIX + name: (decode, MethodType(take, self)) for name, (decode, take) in _TAKERS.items()}

    def _query(self, id_: str, run: str, name: str | None) -> StreamQuery | None:
        key = run[:_LONGEST_TEXT]
        query = self.queries.get(key)
        if query is None and len(self.queries) < MOST_QUERIES:
            shown = printable((name or "")[:_LONGEST_TEXT])
            query = self.queries[key] = StreamQuery(id_[:_LONGEST_TEXT], key, shown)
        return query

    def _started(self, event: _Started) -> None:
        query = self._query(event.id, event.run, event.name)
        if query is not None:
            query.start = _moment(event.timestamp)

    def _progressed(self, event: _Progress) -> None:
        one = event.progress
        if "addBatch" not in one.durations and not any(_whole(source.rows) for source in one.sources):
            return  # no batch ran: there was no new data
        query = self._query(one.id, one.run, one.name)
        if query is None or self._batches >= MOST_BATCHES:
            self.left_out += 1
            return
        if not query.batches:
            query.sources = tuple(
                printable(source.description[:_LONGEST_TEXT]) for source in one.sources[:_MOST_SOURCES]
            )
            query.sink = printable(one.sink.description[:_LONGEST_TEXT])
        query.watermark = query.watermark or "watermark" in one.event_time
        self._batches += 1
        query.batches.append(
            Batch(
                one.batch,
                _moment(one.timestamp),
                _whole(one.durations.get("triggerExecution")),
                tuple(_whole(one.durations.get(name)) for name in PHASES),
                sum(_whole(source.rows) for source in one.sources),
                sum(_rate(source.input_rate) for source in one.sources),
                sum(_rate(source.processed_rate) for source in one.sources),
                sum(_whole(state.rows) for state in one.state),
                sum(_whole(state.size) for state in one.state),
            )
        )

    def _terminated(self, event: _Terminated) -> None:
        query = self._query(event.id, event.run, None)
        if query is not None:
            query.error = self._errors.keep(event.exception)


def _whole(value: object) -> int:
    known = isinstance(value, int) and not isinstance(value, bool)
    return min(max(0, value), _LARGEST) if known and isinstance(value, int) else 0


def _rate(value: object) -> float:
    """Spark writes NaN and infinite rates as texts."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value < _LARGEST else 0.0


def _moment(text: str) -> int:
    """Milliseconds since 1970 of `2015-02-03T16:42:59.720Z`, 0 if it is none."""
    try:
        read = datetime.strptime(text[:40], "%Y-%m-%dT%H:%M:%S.%fZ")
        return round(read.replace(tzinfo=timezone.utc).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


_TAKERS: dict[bytes, tuple[Callable[[bytes], Any], Callable[[StreamLog, Any], None]]] = {
    b"QueryStartedEvent": (msgspec.json.Decoder(_Started).decode, StreamLog._started),
    b"QueryProgressEvent": (msgspec.json.Decoder(_Progress).decode, StreamLog._progressed),
    b"QueryTerminatedEvent": (msgspec.json.Decoder(_Terminated).decode, StreamLog._terminated),
}
