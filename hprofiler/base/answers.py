"""Members of JSON answers, with a type check: servers are not trusted."""

from __future__ import annotations

from typing import Any

from hprofiler.base.text import printable

LARGEST = 2**53


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


def number(value: object, *path: str) -> int:
    """A whole number from 0 to 2^53, else 0."""
    found = member(value, *path)
    whole = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= LARGEST
    return found if whole else 0


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
