"""HTML made of escaped text: every name goes through `text` or `method` on its way to the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest
from urllib.parse import urlencode

from hprofiler.analysis.words import package_length, percent

_LONGEST_NAME = 400
_LONGEST_LINK = 300


def text(value: object) -> str:
    """Any text as HTML text or attribute value."""
    return escape(str(value), quote=True)


def method(name: str) -> str:
    """A method's name, its package set back, isolated from the direction of the text around it."""
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
    cut = package_length(shown)
    package = f'<span class="package">{text(shown[:cut])}</span>' if cut else ""
    return f'<bdi class="method">{package}{text(shown[cut:])}</bdi>'


def view_link(event: str, scope: str = "", name: str = "") -> str:
    """The address of a scope ("" is all) in the viewer; a method named with it is searched there."""
    state = {"event": event, **({"scope": scope} if scope else {})}
    if name and len(name) <= _LONGEST_LINK:
        state["q"] = f'"{name}"'
    return text(f"#{urlencode(state)}")


def method_link(event: str, name: str) -> str:
    """The address of a method's callers and callees, in the scope that the viewer shows then."""
    return text(f"#{urlencode({'event': event, 'view': 'sandwich', 'method': name})}")


def share_cell(part: float, whole: float, kind: str, longest: float) -> str:
    """A table cell with a percentage and a bar, full for `longest`; `kind` is `self` or `total`."""
    fraction = part / longest if longest else 0.0
    bar = f'<span class="bar" style="--share:{fraction:.4f}"></span>'
    return f'<td class="share {kind}" data-sort="{part}"><span>{percent(part, whole)}</span>{bar}</td>'


def number_cell(shown: str, value: float) -> str:
    """A table cell with an amount, which the viewer sorts by its value."""
    return f'<td class="number" data-sort="{value}">{text(shown)}</td>'


def table(heads: Sequence[str], rows: Iterable[str], kind: str = "", marks: Sequence[str] = ()) -> str:
    """A table from header texts (`>` first for numbers, `%` for shares) and the HTML of each row's cells.

    `marks` are the rows' own attributes.
    """
    head = "".join(f'<th scope="col"{_alignment(one)}>{one.lstrip(">%")}</th>' for one in heads)
    lines = zip_longest(rows, marks, fillvalue="")
    body = "\n".join(f"<tr{mark and ' '}{mark}>{row}</tr>" for row, mark in lines)
    inside = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{inside}</table></div>'


def _alignment(head: str) -> str:
    return {">": ' class="number"', "%": ' class="share"'}.get(head[:1], "")
