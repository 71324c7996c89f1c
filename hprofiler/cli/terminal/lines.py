"""Lines and tables as wide as the terminal; in files and pipes nothing is cut."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.cli.terminal.streams import is_terminal

_USUAL = 80
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
# Fewer columns are hard to read.
_FEWEST = 20


def say(head: str, text: str, out: TextIO) -> None:
    """Print a line. On a terminal it wraps at spaces, indented by the width of its head."""
    columns = columns_of(out)
    if columns is not None:
        from rich.cells import cell_len
        from rich.console import Console
        from rich.text import Text

        indent = cell_len(head)
        if columns - indent >= _FEWEST:
            lines = Text(text).wrap(Console(width=columns), columns - indent)
            text = f"\n{'':{indent}}".join(line.plain.rstrip() for line in lines)
    print(f"{head}{text}", file=out)


def print_table(
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    cut_last: bool = False,
    out: TextIO | None = None,
    indent: int = 0,
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print columns; those in `right` are right-aligned. On a terminal wide cells wrap or are cut.

    `styles` are of the first column's words: colours, for a terminal without NO_COLOR.
    """
    out = out or sys.stdout
    columns = columns_of(out)
    dull = not columns or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    for line in table_lines(rows, right, columns, cut_last, indent, {} if dull else styles or {}):
        print(line, file=out)


def age(seconds: float) -> str:
    """In the largest unit that fits: "3 d", "2 h"."""
    length, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{int(seconds) // length} {unit}"


def print_json(value: object) -> None:
    """Print a value of any size: iterators in it are lists, printed item by item."""
    for piece in _json(value, "\n"):
        print(piece, end="")
    print()


def _json(value: object, newline: str) -> Iterator[str]:
    items: Iterator[tuple[str, object]]
    if isinstance(value, Mapping):
        opening, closing = "{", "}"
        items = ((f"{json.dumps(str(name))}: ", item) for name, item in value.items())
    elif isinstance(value, Iterator):
        opening, closing = "[", "]"
        items = (("", item) for item in value)
    else:
        yield json.dumps(value, indent=2).replace("\n", newline)
        return
    before = opening
    for head, item in items:
        yield f"{before}{newline}  {head}"
        yield from _json(item, newline + "  ")
        before = ","
    yield f"{newline}{closing}" if before == "," else opening + closing


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


def warn(text: str) -> None:
    print(f"hprofiler: {text}", file=sys.stderr)


def warn_of_stubs(file: str = "") -> None:
    """Warns about CPU samples of a JDK that leaves out stubs."""
    of = f"{file}: " if file else ""
    missing = "array copies, hashes and other stubs are missing in CPU samples of a JDK up to 24"
    warn(f"{of}{missing}: all else has too large a share")


def warn_of_throttled(points: int) -> None:
    """Warns about allocations of a JDK that dropped most samples."""
    warn(f"shares may be off by {points} points: the JDK dropped most allocation samples")


def warn_of(malformed_lines: int, warnings: Sequence[str] = (), file: str = "") -> None:
    """Warns about parts of the input, or of this file of several, that were left out."""
    of = f"{file}: " if file else ""
    if malformed_lines:
        one = malformed_lines == 1
        records = "malformed line or record was" if one else "malformed lines or records were"
        warn(f"{of}{malformed_lines} {records} left out")
    for warning in warnings:
        warn(f"{of}{printable(warning)}")
