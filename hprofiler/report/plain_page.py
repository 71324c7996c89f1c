"""Pages of tables and charts without a profile: the plain template, filled with an answer's parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from hprofiler.base.resources import plain_template
from hprofiler.base.text import printable
from hprofiler.report.blocks import Part
from hprofiler.runfolder import replacing


def write_plain_page(
    title: str, headline: Sequence[str], parts: Sequence[Part], out: Path, findings: Sequence[str] = ()
) -> None:
    """Write a page; the first line of `headline` is its heading, `findings` are a list. Raises OSError."""
    content = {
        "title": printable(title),
        "headline": [printable(line) for line in headline],
        "findings": [printable(line) for line in findings],
        "sections": [part.record() for part in parts if part.title],
    }
    # JSON without `<` holds nothing to be mistaken for markup.
    description = json.dumps(content, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    head, _, rest = plain_template().partition("{{title}}")
    body, _, tail = rest.partition("{{data}}")
    shown = escape(f"{printable(title)} · hprofiler")
    data = f'<script type="application/json" id="hprofiler-page">{description}</script>'
    with replacing(out) as file:
        file.write(f"{head}{shown}{body}{data}{tail}".encode("utf-8", "replace"))
