"""Members of JSON answers, with a type check: servers are not trusted."""

from __future__ import annotations

from typing import Any

from hprofiler.base.text import printable

LARGEST = 2**53
MOST_MILLISECONDS = 10**14
"""The latest moment, and the longest time, that run.json takes: in the year 5138, since 1970."""


def member(value: object, *path: str) -> Any:
    """The value below these keys; None if one is missing or not an object."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(value: object, *path: str, limit: int = 1000) -> str:
    """Printable text below these keys, cut at `limit` characters, or ""."""
    found = member(value, *path)
    return printable(found[:limit]) if isinstance(found, str) else ""


def number(value: object, *path: str, most: int = LARGEST) -> int:
    """A whole number from 0 to `most`, else 0."""
    found = member(value, *path)
    whole = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= most
    return found if whole else 0


def milliseconds(value: object, *path: str) -> int:
    """A moment since 1970, or a time, in milliseconds; 0 if it is impossible."""
    return number(value, *path, most=MOST_MILLISECONDS)


def mapping(value: object, *path: str) -> dict[str, Any]:
    """An object below these keys, else an empty one."""
    found = member(value, *path)
    return found if isinstance(found, dict) else {}


def objects(value: object, *path: str) -> list[dict[str, Any]]:
    """The objects of a list; old versions write a single object instead of a list of one."""
    found = member(value, *path)
    if isinstance(found, dict):
        found = [found]
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
