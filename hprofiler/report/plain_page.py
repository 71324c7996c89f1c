"""Pages of tables and pictures, without scripts."""

from __future__ import annotations

from html import escape
from pathlib import Path

from hprofiler.runfolder import replacing

_STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --back: #fff; --faint: #6a7178; --line: #d8dce0;
  --active: #c9d7ea; --cpu: #2563a8; --gc: #b3261e; --shuffle-read: #8a5a00; --shuffle-write: #7a3b9a;
  --deserialize: #2f6f3a; --bar: #7ea3cf; --failed: #c94a42; --s0: #2563a8; --s1: #c4560a; --s2: #2f6f3a;
  --s3: #b3261e; --s4: #7a3b9a; --s5: #8a5a00; --s6: #b03a78; --s7: #0b7285; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e6e8; --back: #16181b; --faint: #9aa2aa;
  --line: #34393f; --active: #2b3f57; --cpu: #6aa8ee; --gc: #f2857c; --shuffle-read: #e0b050;
  --shuffle-write: #c793e6; --deserialize: #7cc58a; --bar: #41638c; --failed: #b8453d; --s0: #6aa8ee;
  --s1: #f09a55; --s2: #7cc58a; --s3: #f2857c; --s4: #c793e6; --s5: #e0b050; --s6: #ee8fbd; --s7: #56c2d6; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 1200px; margin: 1.5em auto; padding: 0 1em; }
h1 { font-size: 1.25em; } h2 { font-size: 1.05em; margin-top: 1.8em; }
pre { overflow-x: auto; font-size: 12.5px; }
svg { width: 100%; height: auto; } svg.sample { width: 1.6em; height: .7em; }
svg text { font-size: 11px; fill: var(--faint); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 12.5px; }
th, td { padding: 2px 10px 2px 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 16em; }
tr { border-bottom: 1px solid var(--line); }
.faint { color: var(--faint); } .line { fill: none; stroke-width: 1.5; } .axis { stroke: var(--line); }
.area { fill: var(--active); } .point { fill: var(--cpu); }
.bar { fill: var(--bar); } .bar.failed { fill: var(--failed); }
.cpu { stroke: var(--cpu); } .gc { stroke: var(--gc); } .shuffle-read { stroke: var(--shuffle-read); }
.shuffle-write { stroke: var(--shuffle-write); } .deserialize { stroke: var(--deserialize); }
.s0 { --own: var(--s0); } .s1 { --own: var(--s1); } .s2 { --own: var(--s2); } .s3 { --own: var(--s3); }
.s4 { --own: var(--s4); } .s5 { --own: var(--s5); } .s6 { --own: var(--s6); } .s7 { --own: var(--s7); }
.others { --own: var(--faint); } .own { stroke: var(--own); } .dot { fill: var(--own); }
.band { fill: var(--own); opacity: .18; } .stack { fill: var(--own); opacity: .8; }
"""


def write_html(title: str, body: str, out: Path) -> None:
    """Write a page without scripts. Raises OSError."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )
    with replacing(out) as file:
        file.write(page.encode("utf-8", "replace"))
