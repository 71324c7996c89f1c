"""Streaming queries of an application and their batches, as Spark reports the progress of each.

Times are milliseconds, moments milliseconds since 1970 on the driver's clock.
"""

from __future__ import annotations

import msgspec

PHASES = (
    "latestOffset",
    "getOffset",
    "getEndOffset",
    "getBatch",
    "queryPlanning",
    "walCommit",
    "addBatch",
    "commitOffsets",
)
"""The parts of a batch by Spark's names; `getOffset` and `getEndOffset` are those of Spark 2."""


class Batch(msgspec.Struct, array_like=True):
    """A micro-batch. `phases` are times in the order of PHASES.

    `input_rate` is in rows a second since the batch before began, `processed_rate` in rows a second of the
    batch's own time. `state_rows` and `state_bytes` are those of all stateful operators after it.
    """

    id: int
    start: int
    duration: int
    phases: tuple[int, ...]
    rows: int = 0
    input_rate: float = 0.0
    processed_rate: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0


class StreamQuery(msgspec.Struct):
    """A run of a streaming query. `error` is what ended it, if anything did. `watermark` says whether it has
    one, without which no state is ever dropped."""

    id: str
    run: str
    name: str = ""
    start: int = 0
    error: str = ""
    sources: tuple[str, ...] = ()
    sink: str = ""
    watermark: bool = False
    batches: list[Batch] = []
