"""Text from elsewhere, made safe to show."""

from __future__ import annotations

from collections.abc import Sequence


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


def short_host(name: str) -> str:
    """A host's name without its domain, in small letters; an address as it is."""
    first = name.lower().partition(".")[0]
    return name.lower() if first.isdecimal() or ":" in name else first


def without_middle(text: str, longest: int) -> str:
    """A text's beginning and end, a line each, if it has more than `longest` characters."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}\n…\n{text[-half:]}"


def some(names: Sequence[str], most: int, what: str = "") -> str:
    """ "a, b and 3 more"; `what` is their noun, as in "3 more hosts"."""
    more = len(names) - most
    shown = ", ".join(names[:most])
    what = f" {what.removesuffix('s') if more == 1 else what}" if what else ""
    return f"{shown} and {more} more{what}" if more > 0 else shown
