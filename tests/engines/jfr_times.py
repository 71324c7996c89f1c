"""When async-profiler sampled, by its own recording: read here once more, independently of the product."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

TYPES: dict[str, frozenset[int]] = {
    "cpu": frozenset({101}),
    "page-faults": frozenset({101}),
    "alloc": frozenset({102, 103}),
    "lock": frozenset({104, 105}),
}
"""The numbers that async-profiler gives the events of its recordings."""
HEADER = 68


def jfr_times(recording: bytes, event: str | None = None) -> tuple[float, float]:
    """The times of the first and the last sample of an event, as `time.monotonic` has them.

    Without an event those at which the recording was begun, which is before the profiler samples, and ended.
    """
    epoch = time.time() - time.monotonic()
    if event is None:
        chunks = [(begin, begin + lasted) for _, _, begin, lasted, _, _ in _chunks(recording)]
        return chunks[0][0] / 1e9 - epoch, chunks[-1][1] / 1e9 - epoch
    times = [moment for kind, moment in _events(recording) if kind in TYPES[event]]
    return min(times) - epoch, max(times) - epoch


def _events(recording: bytes) -> Iterator[tuple[int, float]]:
    """The type of each event, and when it began, in seconds since the epoch."""
    for at, size, begin, _, ticks, rate in _chunks(recording):
        place = at + HEADER
        while place < at + size:
            length, after = _number(recording, place)
            kind, after = _number(recording, after)
            moment, _ = _number(recording, after)
            yield kind, begin / 1e9 + (moment - ticks) / rate
            place += length


def _chunks(recording: bytes) -> Iterator[tuple[int, ...]]:
    """Of each its place and size, its begin and how long it lasted (ns), its first tick, ticks a second."""
    at = 0
    while at < len(recording):
        size, _, _, *times = struct.unpack_from(">7Q", recording, at + 8)
        yield (at, size, *times)
        at += size


def _number(recording: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, and the place behind it."""
    number = shift = 0
    while True:
        byte = recording[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
