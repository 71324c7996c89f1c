"""Reads untrusted JSON within bounds that are checked before parsing; builds JSON from attributes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hprofiler.base.text import printable

MOST_VALUES = 4_000_000
_MOST_DIGITS = 20


def members(one: object, *names: str) -> dict[str, Any]:
    """The attributes of these names."""
    return {name: getattr(one, name) for name in names}


def printable_value(value: Any) -> Any:
    """A JSON value without control characters; columns of numbers stay as they are."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(name): printable_value(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)) and not (value and type(value[0]) in (int, float)):
        return [printable_value(one) for one in value]
    return value


def read(text: bytes, most: int = MOST_VALUES, constant: Callable[[str], object] = float) -> Any:
    """Parse `text`, at most `most` values. ValueError if it is not JSON, or beyond a bound.

    `constant` replaces NaN and infinities, which are not JSON but which Java writes.
    """
    # An empty list has two bytes of text and eighty of memory.
    if sum(map(text.count, (b"{", b"[", b","))) > most:
        raise ValueError(f"more than {most} values")
    try:
        return json.loads(text, parse_int=_integer, parse_constant=constant)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None


def _integer(digits: str) -> float:
    """A whole number. Parsing a number of many digits can take minutes, so it becomes infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
