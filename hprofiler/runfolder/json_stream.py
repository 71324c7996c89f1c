"""A run's record as JSON text, piece by piece: a day of many processes has millions of values."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

_AT_ONCE = 4096
"""Numbers that become text together."""


def pieces(value: object, indent: str = "\n") -> Iterator[str]:
    """JSON text with a line for each value, and one for a list of numbers however long it is."""
    value = _plain(value)
    inner = indent + "  "
    if isinstance(value, Mapping) and value:
        before = "{"
        for key, member in value.items():
            yield f"{before}{inner}{json.dumps(str(key))}: "
            yield from pieces(member, inner)
            before = ","
        yield indent + "}"
    elif isinstance(value, (list, tuple, array)) and value and not _are_numbers(value):
        before = "["
        for member in value:
            yield before + inner
            yield from pieces(member, inner)
            before = ","
        yield indent + "]"
    elif isinstance(value, (list, tuple, array)):
        yield from _on_one_line(value)
    else:
        yield json.dumps(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    return isinstance(values, array) or all(type(value) in (int, float) for value in values)


def _on_one_line(numbers: Sequence[float]) -> Iterator[str]:
    before = "["
    for begin in range(0, len(numbers), _AT_ONCE):
        yield before + json.dumps(list(numbers[begin : begin + _AT_ONCE]))[1:-1]
        before = ", "
    yield "]" if numbers else "[]"


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return str(value) if isinstance(value, Path) else value
