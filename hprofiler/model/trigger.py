"""Triggers: conditions that a recording waits for, and what made them true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from hprofiler.model.recording import Count, Seconds

Kind = Literal["stage", "task", "gc", "cpu"]
MOST_VALUE = 1e12
_MOST_DIGITS = 6
SECONDS = 5.0
"""Shares of time and cores are those of the last seconds."""
CONDITIONS = "'stage 14', 'task > 3 x median', 'gc > 20%' or 'cpu > 3'"
_NUMBER = r"(\d{1,6}(?:\.\d{1,3})?)"
_GRAMMAR: dict[Kind, re.Pattern[str]] = {
    "stage": re.compile(r"stage\s+(\d{1,9})"),
    "task": re.compile(rf"task\s*>\s*{_NUMBER}\s*[x*×]\s*median"),
    "gc": re.compile(rf"gc\s*>\s*{_NUMBER}\s*%"),
    "cpu": re.compile(rf"cpu\s*>\s*{_NUMBER}"),
}
_Text = Annotated[str, Meta(max_length=1000)]


@dataclass(frozen=True)
class Trigger:
    """A condition. What `limit` is depends on the `kind`:

    `stage`: the number of a Spark stage, which is active. `task`: a running task of Spark has taken more than
    so many times the median of the finished tasks of its stage. `gc`: a JVM has spent more than so many
    percent of the last seconds in garbage collections. `cpu`: a process has used more than so many cores.
    """

    kind: Kind
    limit: float

    @classmethod
    def of(cls, text: str) -> Trigger:
        """The condition of `gc > 20%`. Raises ValueError, which says what there is."""
        for kind, pattern in _GRAMMAR.items():
            if found := pattern.fullmatch(text.strip().lower()):
                trigger = cls(kind, float(found[1]))
                if kind == "task" and trigger.limit < 1:
                    raise ValueError(f"{text!r} would be true of most tasks; name at least 1 x median")
                if kind == "gc" and trigger.limit >= 100:
                    raise ValueError(f"{text!r} is never true")
                return trigger
        raise ValueError(f"{text!r} is not a condition: {CONDITIONS}")

    def __str__(self) -> str:
        limit = f"{self.limit:g}"
        if self.kind == "stage":
            return f"stage {limit}"
        unit = {"task": " x median", "gc": "%", "cpu": ""}[self.kind]
        return f"{self.kind} > {limit}{unit}"

    @property
    def of_spark(self) -> bool:
        """Whether the Spark driver knows when it is true; else the hosts do."""
        return self.kind in ("stage", "task")


def beside(value: float, limit: float, digits: int) -> str:
    """A value with at least so many digits, and enough to see on which side of the limit it is."""
    shown = (f"{value:.{more}f}" for more in range(digits, _MOST_DIGITS))
    true = (one for one in shown if (float(one) > limit) == (value > limit))
    return next(true, f"{value:.{_MOST_DIGITS}f}")


@dataclass(frozen=True)
class SparkTask:
    """A running task: how many seconds it has taken, and the median of its stage's finished tasks."""

    id: Count
    index: Count
    executor: _Text
    seconds: Seconds
    median: Seconds


@dataclass(frozen=True)
class Fired:
    """What made a condition true: when (seconds since 1970), and what its `value` was, which is beyond the
    `limit`.

    Of a process that is its host, pid and label; of Spark the stage, its attempt and its task, whose host is
    known by the driver's name for it.
    """

    condition: _Text
    kind: Kind
    limit: Annotated[float, Meta(ge=0, le=MOST_VALUE)]
    time: Seconds
    value: Annotated[float, Meta(ge=0, le=MOST_VALUE)]
    host: _Text = ""
    pid: Count | None = None
    process: _Text = ""
    stage: Count | None = None
    attempt: Count = 0
    task: SparkTask | None = None
