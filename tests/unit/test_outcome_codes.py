"""docs/reference/outcomes.md lists every code that the agent or the coordinator can give an outcome."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STAGES = ("connect", "push", "find", "prepare", "start", "record", "fetch")


def agent_codes() -> set[str]:
    source = (ROOT / "agents/host/src/wire/outcome.rs").read_text()
    body = re.search(r"pub enum Code \{(.*?)\n\}", source, re.DOTALL)
    assert body
    names = re.findall(r"^    (\w+),", body[1], re.MULTILINE)
    return {re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() for name in names}


def coordinator_codes() -> set[str]:
    sources = [path.read_text() for path in (ROOT / "hprofiler").rglob("*.py")]
    given = {
        code for source in sources for code in re.findall(r'\b(?:usual_)?code ?= ?"([a-z0-9-]+)"', source)
    }
    return given | {f"{stage}-failed" for stage in STAGES} | {"unknown", "profile-unusable"}


def test_the_reference_page_has_every_code_once() -> None:
    page = (ROOT / "docs/reference/outcomes.md").read_text()
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == agent_codes() | coordinator_codes()
