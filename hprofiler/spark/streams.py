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


_LONGEST_PLACE = 60


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

    @property
    def title(self) -> str:
        """Its name; else what it does, from its sources to its sink, with the begin of its id."""
        if self.name or not self.sink:
            return self.name or self.id
        sources = ", ".join(dict.fromkeys(map(_short, self.sources)))
        return f"{sources} → {_short(self.sink)} ({self.id.partition('-')[0]})"


def _short(place: str) -> str:
    """A source or sink without its class's package, its options and its address in memory."""
    name, bracket, inside = place.partition("[")
    name = name.rpartition(".")[2].partition("@")[0].rstrip("$")
    cut = len(inside) > _LONGEST_PLACE or "=" in inside
    return name if cut else f"{name}{bracket}{inside}"
