"""What to record, and how."""

from __future__ import annotations

from dataclasses import dataclass

from hprofiler.model.recording import Seconds


@dataclass(frozen=True)
class Sampling:
    """What to record and how, for `duration` seconds. `events` has at least one, without duplicates.

    `frequency` is in Hz of CPU time. If an interval is None, the agent chooses it: `alloc_interval` in bytes,
    `lock_threshold` and `wall_interval` in nanoseconds. `keep_raw` also requests the engine's own files.
    """

    events: tuple[str, ...]
    frequency: int
    duration: Seconds
    engine: str = "auto"
    alloc_interval: int | None = None
    lock_threshold: int | None = None
    wall_interval: int | None = None
    keep_raw: bool = False
