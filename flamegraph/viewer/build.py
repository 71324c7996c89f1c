"""Build the templates of pages: one HTML file each with the viewer's styles, and its modules as one script.

Run when the package is built, and by the tests. A report fills in `{{title}}` and `{{data}}`. Modules are
joined in the order of their imports and share one scope. Two modules may not define the same name at the top,
and imports never rename. See
docs/internals/decisions/024-viewer-built-with-the-package.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent
RULES = ROOT.parent / "rules" / "frames.yaml"
PAGES = {
    "page.html": ("main.js", ("style.css", "views.css", "sections.css")),
    "plain.html": ("plain.js", ("style.css", "sections.css")),
}
"""Templates, with the module where the script begins and the styles: of profiles; of tables and charts."""
_WAITS = ("doing", "doing_kinds")
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |function |async function |const )", re.MULTILINE)
_DEFINED = re.compile(r"^(?:async )?(?:function\*?|class|const|let|var) (\w+|[\[{][^=]*)", re.MULTILINE)
_MODULE_SYNTAX = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def build(out: Path, root: Path = ROOT) -> None:
    """Write the templates into the folder of `out`. Raises ValueError for modules that cannot be joined."""
    for name in PAGES:
        _build_page(name, out.with_name(name), root)


def _build_page(name: str, out: Path, root: Path) -> None:
    entry, styles = PAGES[name]
    script = join_modules(root / entry)
    slots = {
        "policy": content_policy(script),
        "style": "".join((root / one).read_text(encoding="utf-8") for one in styles),
        "script": script,
        "rules": json.dumps(frame_rules(), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
    }
    template = (root / name).read_text(encoding="utf-8")
    for slot, content in slots.items():
        template = template.replace(f"{{{{{slot}}}}}", content, 1)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f"{out.name}.{os.getpid()}")  # two test runs may build it at once
    temporary.write_text(template, encoding="utf-8")
    temporary.replace(out)


def frame_rules() -> dict[str, object]:
    """What colours by category need of rules/frames.yaml, written out as the core does it."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    tables = {
        name: [[rule, _written_out(patterns)] for one in rules[name] for rule, patterns in one.items()]
        for name in ("categories", "kernel")
    }
    frameworks = [["", _written_out(rules["frameworks"])]]
    labels = {rule: text for one in rules["labels"] for rule, (text,) in one.items()}
    return {
        **tables,
        "frameworks": frameworks,
        "weak": rules["weak"],
        "transparent": rules["transparent"],
        "whole": rules["whole"],
        "labels": labels,
        **{name: [[code, *words] for one in rules[name] for code, words in one.items()] for name in _WAITS},
    }


def _written_out(patterns: list[str]) -> list[str]:
    """Each choice of {a,b} as a pattern of its own, with `/` for every dot."""
    return [one.replace(".", "/") for pattern in patterns for one in _choices(pattern)]


def _choices(pattern: str) -> list[str]:
    before, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    choices, _, after = rest.partition("}")
    return [f"{before}{choice}{end}" for choice in choices.split(",") for end in _choices(after)]


def join_modules(entry: Path) -> str:
    """The entry and all that it imports as one script; each module stands behind those that it imports."""
    joined: dict[Path, str] = {}

    def add(module: Path, importers: tuple[Path, ...]) -> None:
        if module in importers:
            circle = " -> ".join(one.name for one in (*importers, module))
            raise ValueError(f"viewer modules import each other in a circle: {circle}")
        if module in joined:
            return
        source = module.read_text(encoding="utf-8")
        for imported in _IMPORT.findall(source):
            add((module.parent / imported).resolve(), (*importers, module))
        joined[module] = _EXPORT.sub("", _IMPORT.sub("", source)).replace("// @ts-check\n", "")

    add(entry.resolve(), ())
    homes: dict[str, str] = {}
    for module, source in joined.items():
        left = _MODULE_SYNTAX.search(source)
        if left:
            raise ValueError(
                f"{module.name} has an import or export of a form that cannot be joined: {left[0]}"
            )
        for name in re.findall(r"\w+", " ".join(_DEFINED.findall(source))):
            if name in homes:
                raise ValueError(
                    f"viewer modules share one scope: {name} is in {homes[name]} and in {module.name}"
                )
            homes[name] = module.name
    script = "\n".join(joined.values())
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the viewer's script would end its own element")
    return script


def content_policy(script: str) -> str:
    """The page's Content-Security-Policy: this one script, no network, no plugin, no form."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
