"""JSON that others wrote: bounded before a thing is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_VALUES = 4_000_000
_MOST_DIGITS = 20


def read(text: bytes, most: int = MOST_VALUES, constant: Callable[[str], object] = float) -> Any:
    """What `text` says, of at most `most` values. ValueError for what is not JSON, or is beyond a bound.

    `constant` makes a value of NaN and the infinities, which JSON has not and Java's writers write.
    """
    # An empty list takes two bytes of text, and eighty of memory.
    if sum(map(text.count, (b"{", b"[", b","))) > most:
        raise ValueError(f"more than {most} values")
    try:
        return json.loads(text, parse_int=_integer, parse_constant=constant)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None


def _integer(digits: str) -> float:
    """A whole number; nobody counts to one of many digits, and to read it exactly takes minutes."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
