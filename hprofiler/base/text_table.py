"""Tables of text, by rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

_WIDEST_COLUMN = 40
_UNLIMITED = 1_000_000
NO_STYLES: Mapping[str, str] = {}


def table_lines(
    rows: Sequence[Sequence[str]],
    right: Sequence[int] = (),
    columns: int | None = None,
    cut_last: bool = False,
    indent: int = 0,
    styles: Mapping[str, str] = NO_STYLES,
) -> list[str]:
    """The lines of a table; its columns `right` are aligned to the right.

    Within `columns`, wide cells wrap, or the last one is cut. None: no limit. `styles` are colours of
    the first column's words.
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for number in range(len(rows[0]) - 1):
        widest = None if columns is None else _WIDEST_COLUMN
        side: Literal["left", "right"] = "right" if number in right else "left"
        table.add_column(justify=side, max_width=widest, overflow="fold", no_wrap=columns is None)
    table.add_column()
    overflow: Literal["ellipsis", "fold"] = "ellipsis" if cut_last else "fold"
    for first, *cells, last in rows:
        style = styles.get(first, "")
        table.add_row(Text(first, style), *map(Text, cells), Text(last, no_wrap=cut_last, overflow=overflow))
    # With a height; otherwise rich assumes 80 columns on a dumb terminal.
    console = Console(
        width=columns or _UNLIMITED,
        height=25,
        color_system="standard" if styles else None,
        force_terminal=bool(styles),
        force_jupyter=False,  # it would show the table in the notebook
    )
    with console.capture() as captured:
        console.print(Padding(table, (0, 0, 0, indent), expand=False))
    return [line.rstrip() for line in captured.get().splitlines()]
