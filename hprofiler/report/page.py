"""The page: the viewer's template filled, with one description and one block of data for all it shows."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hprofiler._flamegraph import Profile
from hprofiler.base.resources import page_template
from hprofiler.report.description import DATA_ID, PageData
from hprofiler.report.html import text
from hprofiler.runfolder import replacing

_SLOT = re.compile(r"\{\{(\w+)\}\}")
# The pictures for readers without JavaScript must not weigh more than the page: narrow frames go first.
_STILL_MIN_WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
STILL_BYTES = 160_000
_FEWEST_STILL_BYTES = 40_000
_BLOCK = 3 << 16


@dataclass(frozen=True)
class Page:
    """What fills the template: HTML by section, and what the viewer shows."""

    title: str
    sections: dict[str, str]
    data: PageData


def write(page: Page, out: Path) -> None:
    """Write the page at once: a reader sees the old or the new one."""
    slots = {"title": text(page.title), **page.sections}
    with replacing(out) as file:
        for number, part in enumerate(_SLOT.split(page_template())):
            if number % 2 == 0:
                file.write(part.encode())
            elif part == "data":
                _write_data(page.data, file)
            else:
                file.write(slots.get(part, "").encode("utf-8", "replace"))


def event_section(number: int, *parts: str) -> str:
    """What the page says of an event by itself; the viewer shows that of its event only."""
    inside = "\n".join(filter(None, parts))
    return f'<section class="of-event" data-event="{number}">\n{inside}\n</section>'


def still_picture(profile: Profile, title: str, subtitle: str, events: int = 1) -> str:
    """The flame graph as a picture (SVG) for browsers that run no script; of each event one.

    It is the finest of a bearable size; a very deep profile has none. Others do not even look at it, which
    would take as long as all the rest of the page; the viewer takes it out where it cannot show its own.
    """
    picture = _finest(profile, title, subtitle, max(_FEWEST_STILL_BYTES, STILL_BYTES // events))
    if picture is None:
        return ""
    image = base64.b64encode(picture).decode()
    source = f"data:image/svg+xml;base64,{image}"
    image = f'<img src="{source}" alt="{text(title)}">'
    return f'<noscript class="still-picture"><figure class="still">{image}</figure></noscript>'


def _finest(profile: Profile, title: str, subtitle: str, most_bytes: int) -> bytes | None:
    for min_width in _STILL_MIN_WIDTHS:
        picture = profile.to_svg(title=title, subtitle=subtitle, min_width=min_width)
        if len(picture) <= most_bytes:
            return picture
    return None


def _write_data(data: PageData, out: BinaryIO) -> None:
    """The description and the block: JSON without `<`, and base64, hold nothing to be mistaken for markup."""
    content = json.dumps(data.described(), separators=(",", ":")).replace("<", "\\u003c")
    out.write(f'<script type="application/json" id="hprofiler-page">{content}</script>\n'.encode())
    if data.empty:
        return
    out.write(f'<script type="application/octet-stream" id="{DATA_ID}">'.encode())
    block = data.block()
    for start in range(0, len(block), _BLOCK):
        out.write(base64.b64encode(block[start : start + _BLOCK]))
    out.write(b"</script>\n")
