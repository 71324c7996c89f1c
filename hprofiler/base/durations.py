"""Lengths of time as users write them: `10s`, `500us`, `1.5m`, `7d`. All options read them here."""

from __future__ import annotations

import re
from fractions import Fraction

SECOND = 1_000_000_000
"""Nanoseconds."""
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 7 * 86_400 * SECOND,
}
_LENGTH = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*([a-zµ]*)")


def nanoseconds(text: str, usual: str = "") -> int:
    """Nanoseconds of a length of time; a number without a unit is in the `usual` one. Raises ValueError."""
    found = _LENGTH.fullmatch(text.strip().lower())
    unit = _UNITS.get((found[2] or usual) if found else "")
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a time")
    return round(Fraction(found[1]) * unit)


def seconds(text: str) -> float:
    """Seconds of a length of time, also without a unit. Raises ValueError."""
    return nanoseconds(text, "s") / SECOND
