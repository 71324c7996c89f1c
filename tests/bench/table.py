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


def markdown(rows: Sequence[Row], machine: str) -> str:
    """The table, aligned so that it reads as plain text too."""
    cells = [["what", "measured", "promised", "holds"], ["---"] * 4]
    cells += [[row.what, row.measured, row.promised, VERDICT[row.holds]] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    return f"{machine}\n\n" + "".join(_line(line, widths) for line in cells)


def without_verdict(rows: Sequence[Row]) -> list[str]:
    """Promises of which this run does not tell whether they hold: not measured, or too noisy."""
    return [row.what for row in rows if row.promised and row.holds is None]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded: list[str] = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    return f"| {' | '.join(padded)} |\n"
