"""The page: the viewer's template filled, and the viewer data copied in, without ever holding the whole."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Callable, Dict, List, Optional, Sequence

from hprofiler._flamegraph import Profile
from hprofiler.report import bundle
from hprofiler.report.html import text
from hprofiler.resources import viewer_file
from hprofiler.store import replacing

_SLOT = re.compile(r"\{\{(\w+)\}\}")
# The picture for readers without JavaScript must not weigh more than the page: narrow frames go first.
_STATIC_MIN_WIDTHS = (1.0, 4.0, 16.0)
_STATIC_BYTES = 300_000
_WIDER = "Wider means more time."


@dataclass(frozen=True)
class Scope:
    """One entry of the viewer's scope chooser; `data` is the id of its data block."""

    id: str
    label: str
    group: str
    data: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """What fills the template: HTML by section, the scopes, and the viewer data as lines of base64."""

    title: str
    sections: Dict[str, str]
    scopes: Sequence[Scope]
    data: Callable[[BinaryIO], None]


def write(page: Page, out: Path) -> None:
    """Write the page at once: a reader sees the old or the new one."""
    script = bundle.script()
    slots = {
        "policy": text(bundle.policy(script)),
        "title": text(page.title),
        "style": viewer_file("style.css") + viewer_file("views.css"),
        "script": script,
        **page.sections,
    }
    with replacing(out) as file:
        for number, part in enumerate(_SLOT.split(viewer_file("page.html"))):
            if number % 2 == 0:
                file.write(part.encode())
            elif part == "data":
                _write_data(page, file)
            else:
                file.write(slots.get(part, "").encode("utf-8", "replace"))


def explorer(profile: Profile, title: str, subtitle: str, wider: str) -> str:
    """The viewer's own section, with a still picture (SVG) for browsers that run no script.

    `wider` is what a wider frame has more of.
    """
    fallback = "<p>The flame graph needs JavaScript; the tables do not.</p>"
    picture = _still_picture(profile, title, subtitle)
    if picture is not None:
        image = base64.b64encode(picture).decode()
        fallback = f'<img src="data:image/svg+xml;base64,{image}" alt="{text(title)}">'
    section = viewer_file("explorer.html").replace(_WIDER, f"Wider means more {text(wider)}.")
    return section.replace("</section>", f"<noscript>{fallback}</noscript>\n</section>")


def _still_picture(profile: Profile, title: str, subtitle: str) -> Optional[bytes]:
    """The finest SVG of a bearable size; None when a very deep profile has none."""
    for min_width in _STATIC_MIN_WIDTHS:
        picture = profile.to_svg(title=title, subtitle=subtitle, min_width=min_width)
        if len(picture) <= _STATIC_BYTES:
            return picture
    return None


def write_block(out: BinaryIO, scope: Scope, line: bytes) -> None:
    """One data block: base64 holds nothing a page could mistake for markup."""
    out.write(f'<script type="application/octet-stream" id="{text(scope.data)}">'.encode())
    out.write(line.strip())
    out.write(b"</script>\n")


def copy_blocks(spool: BinaryIO, out: BinaryIO, scopes: Sequence[Scope]) -> None:
    """The spooled lines as the data blocks of these scopes, in order."""
    spool.seek(0)
    for scope, line in zip(scopes, spool):
        write_block(out, scope, line)


def _write_data(page: Page, out: BinaryIO) -> None:
    described: List[Dict[str, str]] = [asdict(scope) for scope in page.scopes]
    content = json.dumps({"scopes": described}).replace("<", "\\u003c")
    out.write(f'<script type="application/json" id="hprofiler-page">{content}</script>\n'.encode())
    page.data(out)
