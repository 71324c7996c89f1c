"""Parts of an answer as data: a terminal gets lines of text, a page gets tables and charts.

`Part.record` is what a page has of a part: flamegraph/viewer/FORMAT.md describes it, and
flamegraph/viewer/views/sections.js draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hprofiler.analysis.words import and_more
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines

MOST_ROWS = 2000
"""Rows of a table in a page."""

Cell = str | tuple[str, float]
"""A text, or a text and the number that it stands for."""


@dataclass(frozen=True)
class Column:
    """A column of a table. `name` is its head in a page, where that differs from the terminal's; `about` says
    there what it means. A page hides columns that are `minor` where there is no room for all."""

    head: str
    number: bool = True
    name: str = ""
    about: str = ""
    minor: bool = False
    longest: int = 0
    """Longer texts are cut in a terminal."""


@dataclass(frozen=True)
class Row:
    """A row. `key` names what it is of, such as `stage 3.0`; `belongs` are keys of what belongs to that.
    `members` are the keys of what a row of several is of."""

    cells: Sequence[Cell]
    key: str = ""
    belongs: Sequence[str] = ()
    members: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """A table; `id` is its name in a page, `things` is what its rows are called.

    A terminal shows the columns `in_terminal`, all without them, and the first `shown` rows. `left_out` are
    rows that the table does not have. It is `only` in a page or in a terminal, if it says so.
    """

    id: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    things: str = ""
    shown: int = MOST_ROWS
    in_terminal: Sequence[str] = ()
    left_out: int = 0
    only: Literal["", "page", "terminal"] = ""

    def lines(self) -> list[str]:
        if self.only == "page":
            return []
        heads = [one.head for one in self.columns]
        places = [heads.index(head) for head in self.in_terminal] or list(range(len(heads)))
        columns = [self.columns[place] for place in places]
        rows = [[one.head for one in columns]]
        for row in self.rows[: self.shown]:
            cells = [_text(row.cells[place]) for place in places]
            rows.append([_cut(text, one.longest) for text, one in zip(cells, columns, strict=True)])
        right = [place for place, one in enumerate(columns) if one.number]
        lines = table_lines(rows, right=right, indent=2)
        return [*lines, *and_more(len(self.rows) + self.left_out - self.shown, self.things)]

    def record(self) -> dict[str, object]:
        shown = self.rows[:MOST_ROWS]
        return {
            "kind": "table",
            "id": self.id,
            "things": self.things,
            "columns": [
                {
                    "label": one.name or one.head,
                    "number": one.number,
                    **({"about": one.about} if one.about else {}),
                    **({"minor": True} if one.minor else {}),
                }
                for one in self.columns
            ],
            "rows": [_row_record(row) for row in shown],
            "more": len(self.rows) - len(shown) + self.left_out,
        }


def _row_record(row: Row) -> dict[str, object]:
    cells: list[object] = []
    for one in row.cells:
        text = printable(_text(one))
        cells.append(text if isinstance(one, str) else [text, one[1]])
    key = {"key": printable(row.key)} if row.key else {}
    belongs = {"belongs": [printable(one) for one in row.belongs]} if row.belongs else {}
    members = {"members": [printable(one) for one in row.members]} if row.members else {}
    return {"cells": cells, **key, **belongs, **members}


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]


def _cut(text: str, longest: int) -> str:
    return f"{text[: longest - 1]}…" if 0 < longest < len(text) else text


def cell(text: str, value: float | None) -> Cell:
    """A number's text with the number; nothing where it is not known."""
    return (text, value) if text and value is not None else text


@dataclass(frozen=True)
class Facts:
    """What is known, as pairs of a label and a text."""

    pairs: Sequence[tuple[str, str]]

    def lines(self) -> list[str]:
        return table_lines(self.pairs, indent=2) if self.pairs else []

    def record(self) -> dict[str, object]:
        return {"kind": "facts", "pairs": [[printable(text) for text in pair] for pair in self.pairs]}


@dataclass(frozen=True)
class Lines:
    """Sentences, each on its own line; a page shows them as a list if they are a `list`."""

    texts: Sequence[str]
    indent: int = 2
    list: bool = False

    def lines(self) -> Sequence[str]:
        return [" " * self.indent + text for text in self.texts]

    def record(self) -> dict[str, object]:
        return {"kind": "lines", "list": self.list, "texts": [printable(text) for text in self.texts]}


@dataclass(frozen=True)
class Links:
    """Files beside a page, by what they are called; their paths are relative, and quoted as in a URL."""

    files: Sequence[tuple[str, str]]

    def lines(self) -> list[str]:
        """A terminal has no links."""
        return []

    def record(self) -> dict[str, object]:
        shown = self.files[:MOST_ROWS]
        return {
            "kind": "links",
            "files": [[printable(name), path] for name, path in shown],
            "more": len(self.files) - len(shown),
        }


@dataclass(frozen=True)
class Mark:
    """A point of a chart: where it is, what it says, how far off it may be, and the key of its row."""

    x: float
    y: float
    text: str
    low: float | None = None
    high: float | None = None
    key: str = ""


@dataclass(frozen=True)
class Series:
    """`level` is a value that its marks are compared with, and its text."""

    name: str
    marks: Sequence[Mark]
    style: Literal["line", "curve", "ideal", "points"] = "line"
    level: tuple[float, str] | None = None


@dataclass(frozen=True)
class Chart:
    """Series over moments (milliseconds since 1970), or over numbers of `over`: lines, or `stacked` bars of a
    day each. `levels` are the ticks of the upright axis."""

    label: str
    series: Sequence[Series]
    levels: Sequence[tuple[float, str]]
    over: str = ""
    stacked: bool = False

    def lines(self) -> list[str]:
        """A terminal has no charts."""
        return []

    def record(self) -> dict[str, object]:
        return {
            "kind": "chart",
            "label": printable(self.label),
            "over": self.over,
            "stacked": self.stacked,
            "levels": [list(one) for one in self.levels],
            "series": [
                {
                    "name": printable(one.name),
                    "style": one.style,
                    "level": None if one.level is None else list(one.level),
                    "marks": [
                        [mark.x, mark.y, printable(mark.text), mark.low, mark.high, printable(mark.key)]
                        for mark in one.marks
                    ],
                }
                for one in self.series
            ],
        }


@dataclass(frozen=True)
class Span:
    """In seconds. `state` is "", "failed", "removed" or "idle", or one of the timeline's own. What is before
    the `mark` is drawn apart. `about` is what a reader is told who points at it, if that is not the label."""

    since: float
    until: float
    label: str
    key: str = ""
    state: str = ""
    mark: float = 0.0
    about: str = ""

    def record(self) -> list[object]:
        found = [round(self.since, 3), round(self.until, 3), printable(self.label), printable(self.key)]
        mark = round(max(self.mark, self.since), 3)
        if self.about:
            return [*found, self.state, mark, printable(self.about)]
        return [*found, self.state, *([mark] if self.mark > self.since else [])]


@dataclass(frozen=True)
class SpanLane:
    """Spans that may overlap, by their begin."""

    name: str
    spans: Sequence[Span]


@dataclass(frozen=True)
class Timeline:
    """Curves by buckets of `width` seconds, the first as an area, and lanes below them.

    `states` say what spans of each state are. A page shows the first lines of such lanes, and all on demand.
    """

    label: str
    seconds: float
    width: float
    curves: Sequence[tuple[str, Sequence[float]]]
    lanes: Sequence[SpanLane]
    states: Sequence[tuple[str, str]] = ()

    def lines(self) -> list[str]:
        """A terminal has no charts."""
        return []

    def record(self) -> dict[str, object]:
        return {
            "kind": "timeline",
            "label": self.label,
            "seconds": self.seconds,
            "width": self.width,
            "curves": [
                {"name": name, "values": [round(value, 2) for value in values]}
                for name, values in self.curves
            ],
            **({"states": [list(one) for one in self.states]} if self.states else {}),
            "lanes": [
                {
                    "name": printable(one.name),
                    "spans": [span.record() for span in one.spans],
                }
                for one in self.lanes
            ],
        }


Block = Table | Facts | Lines | Links | Chart | Timeline


@dataclass(frozen=True)
class Part:
    """A part of an answer: its title, and what stands below it. Without a title there is nothing to say.

    `name` is its heading in a page, where that differs, and `about` a sentence below that.
    """

    title: str = ""
    blocks: Sequence[Block] = field(default_factory=list)
    name: str = ""
    about: str = ""

    @property
    def heading(self) -> str:
        return self.name or self.title[:1].upper() + self.title[1:]

    @property
    def text(self) -> str:
        lines = [line for block in self.blocks for line in block.lines()]
        return "\n".join([f"{self.title}:", *lines]) if lines else self.title

    def record(self) -> dict[str, object]:
        shown = (one for one in self.blocks if not (isinstance(one, Table) and one.only == "terminal"))
        blocks = [block.record() for block in shown]
        return {"title": printable(self.heading), "about": printable(self.about), "blocks": blocks}
