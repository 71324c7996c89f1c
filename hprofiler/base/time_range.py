"""A range of time, such as 12.4-13.1, in seconds from the start of a run or a recording."""

from __future__ import annotations

import math
from typing import NamedTuple

from hprofiler.base.durations import seconds

_SECOND = 1_000_000
_FOREVER = 1 << 62


class TimeRange(NamedTuple):
    """Half-open: `end` is not part of it, and may be infinite."""

    begin: float
    end: float

    @classmethod
    def of(cls, text: str) -> TimeRange:
        """The range of `5-12.5`, `10-` or `1m-90s`. Raises ValueError."""
        first, dash, last = text.partition("-")
        given = cls(seconds(first), seconds(last) if last else math.inf)
        if not dash or not 0 <= given.begin < given.end or first.strip() != first:
            raise ValueError(text)
        return given

    def __str__(self) -> str:
        """ "12.4-13.1 s", "from 10 s on"."""
        if math.isinf(self.end):
            return f"from {self.begin:.12g} s on"
        return f"{self.begin:.12g}-{self.end:.12g} s"

    def microseconds(self, start: int) -> tuple[int, int]:
        """First and end in microseconds since 1970, where `start` is when second 0 begins."""
        end = _FOREVER if math.isinf(self.end) else start + round(self.end * _SECOND)
        return min(start + round(self.begin * _SECOND), _FOREVER), min(end, _FOREVER)
