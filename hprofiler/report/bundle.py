"""The viewer's ES modules as one script, so that a page needs no second file.

Modules are joined in the order of their imports and share one scope: a name that is defined at the top
of two of them is refused, and imports never rename.
"""

from __future__ import annotations

import base64
import hashlib
import re

from hprofiler.base.resources import viewer_file

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |function |async function |const )", re.MULTILINE)
_DEFINED = re.compile(r"^(?:async )?(?:function\*?|class|const|let|var) (\w+|[\[{][^=]*)", re.MULTILINE)
ENTRY = "main.js"


def script(entry: str = ENTRY) -> str:
    """The whole viewer as the text of one `<script type="module">`."""
    modules: dict[str, str] = {}
    _collect(entry, modules, [])
    _refuse_twins(modules)
    text = "\n".join(modules.values())
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("the viewer's script would end its own element")
    return text


def policy(script_text: str) -> str:
    """The page's Content-Security-Policy: this one script, no network, no plugin, no form."""
    digest = base64.b64encode(hashlib.sha256(script_text.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _collect(name: str, modules: dict[str, str], above: list[str]) -> None:
    if name in above:
        raise ValueError(f"viewer modules import each other in a circle: {' -> '.join([*above, name])}")
    if name in modules:
        return
    source = viewer_file(name)
    for needed in _IMPORT.findall(source):
        _collect(needed, modules, [*above, name])
    modules[name] = _EXPORT.sub("", _IMPORT.sub("", source)).replace("// @ts-check\n", "")


def _refuse_twins(modules: dict[str, str]) -> None:
    """Neither the type check nor an editor sees them: there each module has a scope of its own."""
    homes: dict[str, str] = {}
    for module, source in modules.items():
        for name in re.findall(r"\w+", " ".join(_DEFINED.findall(source))):
            if name in homes:
                raise ValueError(f"viewer modules share a scope: {name} is in {homes[name]} and in {module}")
            homes[name] = module
