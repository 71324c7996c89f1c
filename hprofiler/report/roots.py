"""Roots: the frames at which a job's own stacks begin, as selectors name them."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

# What a thread's own code begins with, where nothing better is known.
ANY_ROOT = ("*.run", "*.main")
_PLAIN = frozenset(string.ascii_letters + string.digits + "_")


def patterns(roots: Sequence[str]) -> list[str]:
    """Regular expressions that find a frame which is one of the roots.

    A root is a whole name, with `*` for any text; slashes and dots are one, as engines write both, and a
    name of native code may have its arguments behind it.
    """
    return [f"^{''.join(map(_part, re.split(r'([*./])', root)))}(?:\\(.*)?$" for root in roots]


def _part(text: str) -> str:
    known = {"*": ".*", ".": "[./]", "/": "[./]"}.get(text)
    return known or "".join(letter if letter in _PLAIN else f"\\x{{{ord(letter):x}}}" for letter in text)
