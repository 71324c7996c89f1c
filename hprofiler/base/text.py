"""Text from elsewhere, made safe to show."""

from __future__ import annotations

import re

_PROCESS = re.compile(r"\bprocess [0-9]+")


def printable(text: str) -> str:
    """`text` on one line, without control characters.

    Control, invisible and bidirectional characters and lone surrogates become U+FFFD; all white space
    becomes spaces.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def without_pids(reason: str) -> str:
    """A reason without pids, to group equal reasons."""
    return _PROCESS.sub("the process", reason)


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\ufffd"
