"""Checked access to the members of an event. Each function raises BadEvent naming the member."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hprofiler.agent.wire import BadEvent
from hprofiler.base.text import printable

PID_LIMIT = 1 << 22
TEXT_LIMIT = 4096
LABELS_LIMIT = 64
ITEMS_LIMIT = 10_000
"""Of a list's members: no agent finds more processes, and a list of what is left over has half of that."""
INT64 = (1 << 63) - 1
UINT32 = (1 << 32) - 1

_SHA256 = re.compile(r"[0-9a-f]{64}")


def text(event: Mapping[str, Any], name: str, limit: int = TEXT_LIMIT) -> str:
    """A text cut at `limit` characters, and nothing that a terminal would obey; absent or null is ""."""
    return _text(event.get(name), name, limit)


def _text(value: object, name: str, limit: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadEvent(f"{name} is not text")
    return printable(value[:limit])


def integer(event: Mapping[str, Any], name: str, low: int = 0, high: int = INT64) -> int:
    value = event.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadEvent(f"{name} is not a number from {low} to {high}")
    return value


def pid(event: Mapping[str, Any], name: str = "pid") -> int:
    return integer(event, name, 1, PID_LIMIT)


def optional_pid(event: Mapping[str, Any], name: str = "pid") -> int | None:
    return None if event.get(name) is None else pid(event, name)


def seconds(event: Mapping[str, Any], name: str, most: float = 1e9) -> float:
    value = event.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadEvent(f"{name} is not a number of seconds")
    return float(value)


def optional_seconds(event: Mapping[str, Any], name: str) -> float | None:
    return None if event.get(name) is None else seconds(event, name)


def number(event: Mapping[str, Any], name: str, otherwise: float) -> float:
    """A number that is neither endless nor very large; absent is `otherwise`."""
    value = event.get(name, otherwise)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -1e9 <= value <= 1e9:
        raise BadEvent(f"{name} is not a number from -1e9 to 1e9")
    return float(value)


def optional_integer(event: Mapping[str, Any], name: str) -> int | None:
    return None if event.get(name) is None else integer(event, name)


def sha256(event: Mapping[str, Any], name: str = "sha256") -> str:
    value = event.get(name)
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise BadEvent(f"{name} is not a SHA-256 in hexadecimal digits")
    return value


def choice(event: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    value = event.get(name)
    if value not in choices or not isinstance(value, str):
        raise BadEvent(f"{name} is not one of {', '.join(choices)}")
    return value


def items(event: Mapping[str, Any], name: str, most: int = ITEMS_LIMIT) -> list[Any]:
    """A list of at most `most`."""
    value = event.get(name)
    if not isinstance(value, list):
        raise BadEvent(f"{name} is not a list")
    if len(value) > most:
        raise BadEvent(f"{name} has more than {most} members")
    return value


def integers(event: Mapping[str, Any], name: str, most: int) -> tuple[int, ...]:
    """At most `most` numbers that are not below zero."""
    found = items(event, name, most)
    if not all(type(item) is int and 0 <= item <= INT64 for item in found):
        raise BadEvent(f"{name} has a member that is not a number from 0 to {INT64}")
    return tuple(found)


def objects(event: Mapping[str, Any], name: str, most: int = ITEMS_LIMIT) -> list[dict[str, Any]]:
    found = items(event, name, most)
    if not all(isinstance(item, dict) for item in found):
        raise BadEvent(f"{name} has a member that is not an object")
    return found


def texts(event: Mapping[str, Any], name: str) -> list[str]:
    found = items(event, name)
    if not all(isinstance(item, str) for item in found):
        raise BadEvent(f"{name} has a member that is not text")
    return [printable(item[:TEXT_LIMIT]) for item in found]


def member(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = event.get(name)
    if not isinstance(value, dict):
        raise BadEvent(f"{name} is not an object")
    return value


def labels(event: Mapping[str, Any], name: str = "labels") -> dict[str, str]:
    value = event.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > LABELS_LIMIT:
        raise BadEvent(f"{name} is not an object of at most {LABELS_LIMIT} members")
    return named(value, 256, 1024)


def parameters(event: Mapping[str, Any], name: str = "parameters") -> dict[str, str | int | float]:
    """Texts and numbers by name; absent is none."""
    value = {} if event.get(name) is None else member(event, name)
    if len(value) > LABELS_LIMIT:
        raise BadEvent(f"{name} is not an object of at most {LABELS_LIMIT} members")
    return {
        printable(key[:256]): _text(one, name, 1024) if isinstance(one, str) else number(value, key, 0.0)
        for key, one in value.items()
    }


def named(value: Mapping[str, Any], longest_name: int, limit: int) -> dict[str, str]:
    """Texts by names that are the host's words as well."""
    names = {key: printable(key[:longest_name]) for key in value}
    return {name: _text(value[key], name, limit) for key, name in names.items()}
