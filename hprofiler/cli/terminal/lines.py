"""Lines and tables as wide as the terminal that they go to; in files and pipes nothing is cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, TextIO

from hprofiler.cli.terminal.streams import is_terminal

_USUAL = 80
# What is folded into fewer columns is no easier to read.
_FEWEST = 20
_WIDEST_COLUMN = 40
_WITHOUT_TERMINAL = 1_000_000


def say(head: str, text: str, out: TextIO) -> None:
    """Print a line, which on a terminal breaks at spaces, and goes on below the end of its head."""
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
    """Print columns, those in `right` aligned to the right. On a terminal wide cells wrap, or are cut.

    `styles` are of the first column's words: colours, for a terminal without NO_COLOR.
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    out = out or sys.stdout
    columns = columns_of(out)
    colour = styles and columns and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for number in range(len(rows[0]) - 1):
        widest = None if columns is None else _WIDEST_COLUMN
        side: Literal["left", "right"] = "right" if number in right else "left"
        table.add_column(justify=side, max_width=widest, overflow="fold", no_wrap=columns is None)
    table.add_column()
    overflow: Literal["ellipsis", "fold"] = "ellipsis" if cut_last else "fold"
    for first, *cells, last in rows:
        style = styles.get(first, "") if styles and colour else ""
        table.add_row(Text(first, style), *map(Text, cells), Text(last, no_wrap=cut_last, overflow=overflow))
    # With a height, because on a dumb terminal rich would take 80 columns otherwise.
    console = Console(
        width=columns or _WITHOUT_TERMINAL,
        height=25,
        color_system="standard" if colour else None,
        force_terminal=bool(colour),
    )
    with console.capture() as captured:
        console.print(Padding(table, (0, 0, 0, indent)))
    for line in captured.get().splitlines():
        print(line.rstrip(), file=out)


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
