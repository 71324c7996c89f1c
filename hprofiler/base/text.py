"""Text from elsewhere, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` on one line, without control characters.

    Control, invisible and bidirectional characters and lone surrogates become U+FFFD; all white space
    becomes spaces.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\ufffd"
