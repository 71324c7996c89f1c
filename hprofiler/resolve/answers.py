"""Members of JSON answers, of the type that was expected or nothing: servers are not believed."""

from __future__ import annotations

from typing import Any

from hprofiler.base.text import printable

LARGEST = 2**53


def member(value: object, *path: str) -> Any:
    """What lies below these keys; None where something on the way is missing or no object."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text(value: object, *path: str, limit: int = 1000) -> str:
    """Printable text below these keys, cut at `limit` characters; "" where there is none."""
    found = member(value, *path)
    return printable(found[:limit]) if isinstance(found, str) else ""


def number(value: object, *path: str) -> int:
    """A whole number not below zero that JavaScript would count by as well, else 0."""
    found = member(value, *path)
    whole = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST
    return found if whole else 0


def objects(value: object, *path: str) -> list[dict[str, Any]]:
    """The objects of a list, or the one object that old versions write in place of a list of one."""
    found = member(value, *path)
    if isinstance(found, dict):
        found = [found]
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
