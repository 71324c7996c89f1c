"""What to record, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """What to record and how, for `duration` seconds. `events` are at least one, no two alike.

    `frequency` is in Hz of CPU time. None leaves an interval to the agent: `alloc_interval` in bytes,
    `lock_threshold` and `wall_interval` in nanoseconds. `keep_raw` asks for the engine's own recordings too.
    """

    events: tuple[str, ...]
    frequency: int
    duration: float
    engine: str = "auto"
    alloc_interval: int | None = None
    lock_threshold: int | None = None
    wall_interval: int | None = None
    keep_raw: bool = False
