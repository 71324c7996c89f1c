"""Texts of an event log: messages, descriptions, call stacks."""

from __future__ import annotations

from hprofiler.base.text import without_middle

_MOST = 10 << 20
_LONGEST = 20_000
_SHORT = 2000
"""Characters of all texts, of each, and of each of those that come when there are too many."""


class Texts:
    """Texts with their line breaks, equal ones kept once. Long ones lose their middle: the first cause of an
    exception stands at its end."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._size = 0

    def keep(self, text: object) -> str:
        """Of what is not a text, an empty one."""
        if not isinstance(text, str):
            return ""
        kept = without_middle(text, _LONGEST)
        if kept in self._kept:
            return self._kept[kept]
        if self._size >= _MOST:
            return without_middle(text, _SHORT)
        self._size += len(kept)
        self._kept[kept] = kept
        return kept
