"""Lines as wide as the terminal that they go to; into files and pipes they go as they are."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from itertools import accumulate
from typing import TextIO

from hprofiler.cli.terminal.streams import is_terminal

_USUAL = 80
# What is folded into fewer columns is no easier to read.
_FEWEST = 20


def say(head: str, text: str, out: TextIO, indent: int | None = None) -> None:
    """Print a line, which on a terminal breaks at spaces, and goes on below the end of its head.

    `indent` is how wide the head is where it has more than letters.
    """
    columns = columns_of(out)
    wide = width(head) if indent is None else indent
    if columns is not None and columns - wide >= _FEWEST:
        text = f"\n{'':{wide}}".join(_folded(text, columns - wide))
    print(f"{head}{text}", file=out)


def columns_of(out: TextIO) -> int | None:
    """How wide the terminal is; None for what is none."""
    if not is_terminal(out):
        return None
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(out.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL


def _folded(text: str, columns: int) -> Iterator[str]:
    """Lines of whole words; one that is too long for any has its own."""
    line, *words = text.split(" ")
    for word in words:
        if width(line) + 1 + width(word) > columns:
            yield line
            line = word
        else:
            line += f" {word}"
    yield line


def ended(line: str, columns: int) -> str:
    """The line, or what fits of it with a mark that it goes on."""
    return line if width(line) <= columns else f"{cut(line, columns - 1).rstrip()}…"


def cut(text: str, columns: int) -> str:
    """What of the text fits in there."""
    ends = accumulate(map(width, text))
    return text[: sum(end <= columns for end in ends)]


def width(text: str) -> int:
    """The columns that a terminal needs: two for a wide character, none for one that joins the one before."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
