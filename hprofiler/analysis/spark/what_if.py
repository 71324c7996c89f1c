"""How long an application would take with more or fewer slots, or with even tasks, by one log.

By the replay of its tasks: what the driver did in between stays. The replay is never exact, so each time is
the application's own, changed by as much as the replay changes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from hprofiler.analysis.spark.account import Account
from hprofiler.spark.replay.schedule import Replay

TWICE, HALF = 2.0, 0.5
_UNBOUNDED = 1e6


@dataclass(frozen=True)
class WhatIf:
    """Milliseconds of the whole application, as it was and by code: `twice-slots`, `half-slots`;
    `even-tasks`, if no task took longer than its stage's median; `ideal`, if all slots had a task from the
    begin of each stage to its end; `critical-path`, with slots for all tasks at once. `error` is how far the
    replay of what happened is off: 0.02 is 2 % too long."""

    as_it_was: int
    slots: int
    times: dict[str, float]
    error: float


def what_if(made: Account, replay: Replay) -> WhatIf | None:
    """None if nothing ran."""
    short = replay.in_short()
    if not short.measured or not short.as_it_was or not made.total:
        return None
    return WhatIf(made.total, replay.slots.most, dict(_times(made, replay)), short.error)


def _times(made: Account, replay: Replay) -> Iterator[tuple[str, float]]:
    besides = max(0, made.total - replay.measured)

    def whole(replayed: float) -> float:
        return besides + replayed * replay.measured / replay.as_it_was

    yield "twice-slots", whole(replay.run(slots=TWICE))
    if replay.slots.most > 1:
        yield "half-slots", whole(replay.run(slots=HALF))
    even = {}
    for number, stage in enumerate(replay.stages):
        if len(stage) > 1:
            usual = median(stage.held)
            even[number] = array("f", (min(time, usual) for time in stage.held))
    yield "even-tasks", whole(replay.run(even))
    stages = sum(made.group(group) for group in ("narrow", "work"))
    busy = sum(sum(stage.held) for stage in replay.stages)
    yield "ideal", made.total - stages + min(stages, busy / replay.slots.most)
    yield "critical-path", whole(replay.run(slots=_UNBOUNDED))
