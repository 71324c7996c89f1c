"""Lines and tables as wide as the terminal; in files and pipes nothing is cut."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, TextIO

from hprofiler.cli.terminal.streams import is_terminal

_USUAL = 80
# Fewer columns are hard to read.
_FEWEST = 20
_WIDEST_COLUMN = 40
_WITHOUT_TERMINAL = 1_000_000


def say(head: str, text: str, out: TextIO, indent: int | None = None) -> None:
    """Print a line. On a terminal it wraps at spaces and continues below the end of its head.

    `indent` is the width of the head if it contains more than letters.
    """
    columns = columns_of(out)
    wide = width(head) if indent is None else indent
    if columns is not None and columns - wide >= _FEWEST:
        text = f"\n{'':{wide}}".join(_folded(text, columns - wide))
    print(f"{head}{text}", file=out)


def print_table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), cut_last: bool = False) -> None:
    """Print columns; those in `right` are right-aligned. On a terminal wide cells wrap or are cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = columns_of(sys.stdout)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for number in range(len(rows[0]) - 1):
        widest = None if columns is None else _WIDEST_COLUMN
        side: Literal["left", "right"] = "right" if number in right else "left"
        table.add_column(justify=side, max_width=widest, overflow="fold", no_wrap=columns is None)
    table.add_column()
    overflow: Literal["ellipsis", "fold"] = "ellipsis" if cut_last else "fold"
    for *cells, last in rows:
        table.add_row(*map(Text, cells), Text(last, no_wrap=cut_last, overflow=overflow))
    # With a height; otherwise rich assumes 80 columns on a dumb terminal.
    console = Console(width=columns or _WITHOUT_TERMINAL, height=25, color_system=None)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def columns_of(out: TextIO) -> int | None:
    """Width of the terminal; None if the stream is not a terminal."""
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
    """Wrapped lines; a word that is too long has its own line."""
    line, *words = text.split(" ")
    for word in words:
        if width(line) + 1 + width(word) > columns:
            yield line
            line = word
        else:
            line += f" {word}"
    yield line


def width(text: str) -> int:
    """Width on a terminal: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
