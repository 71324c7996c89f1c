"""Text from elsewhere, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with everything replaced that could do more than be read, on one line.

    What moves a terminal's cursor, hides or turns around what stands beside it, or fails to encode (lone
    surrogates) becomes U+FFFD; line breaks, tabs and spaces of any width become spaces.
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\ufffd"
