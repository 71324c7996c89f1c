"""Rows of the bench's table, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured promise. `holds` is None where nothing was promised ("") and where nobody can tell."""

    what: str
    measured: str
    promised: str
    holds: bool | None


VERDICT = {True: "yes", False: "**no**", None: ""}


def under(limit: float, what: str, seconds: float, more: str = "") -> Row:
    """So many seconds at most."""
    return Row(what, f"{seconds:.2f} s {more}".strip(), f"under {limit:g} s", seconds < limit)


def markdown(rows: Sequence[Row], machine: str) -> str:
    """The table, aligned so that it reads as plain text too."""
    cells = [["what", "measured", "promised", "holds"], ["---"] * 4]
    cells += [[row.what, row.measured, row.promised, VERDICT[row.holds]] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    ]
    return f"{machine}\n\n" + "".join(f"| {line} |\n" for line in lines)
