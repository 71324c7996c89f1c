"""Who may import whom: the rooms of docs/internals/architecture.md, checked in every import statement."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.command import ROOT

# room -> (rooms it may import besides itself, third-party libraries it may import), lowest first: a room
# imports only those above it in this table, so there is no circle.
BASE = {"base", "model"}
ALLOWED = {
    "_flamegraph": (set(), set()),
    "base": (set(), {"pyarrow", "rich"}),
    "model": ({"base"}, {"msgspec"}),
    "selectors": (BASE | {"_flamegraph"}, {"yaml"}),
    "kubernetes": (
        BASE,
        {"lightkube", "httpx2", "httpcore2", "httpx", "httpcore", "wsproto", "yaml"},
    ),
    "resolve": (BASE | {"kubernetes"}, {"requests", "requests_gssapi"}),
    "transport": (BASE | {"kubernetes"}, {"paramiko"}),
    "agent": (BASE | {"transport"}, {"msgspec"}),
    "runfolder": (BASE | {"_flamegraph"}, {"msgspec"}),
    "collect": (BASE | {"transport", "agent"}, set()),
    "spark": (BASE | {"runfolder"}, {"msgspec", "zstandard", "cramjam"}),
    "analysis": (BASE | {"runfolder", "spark", "_flamegraph"}, set()),
    "archive": (BASE | {"analysis", "spark", "runfolder", "_flamegraph"}, {"duckdb", "fsspec", "pyarrow"}),
    "report": (BASE | {"analysis", "archive", "spark", "runfolder", "_flamegraph"}, set()),
    "spark_jobs": ({"model", "archive", "_flamegraph"}, {"pyarrow", "pyspark"}),
    "app": (
        BASE | {"resolve", "collect", "spark", "runfolder", "analysis", "report", "archive", "_flamegraph"},
        {"msgspec", "fsspec"},
    ),
}
ALLOWED["cli"] = ({*ALLOWED}, {"argcomplete", "rich"})
ALLOWED["notebook"] = ({*ALLOWED}, {"pandas"})
ALLOWED["__init__"] = ({"_flamegraph", "base", "notebook"}, set())
ALLOWED["__main__"] = ({"cli"}, set())


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "hprofiler").parts[0].removesuffix(".py")


def imports(path: Path):
    """(room or library, whether it is ours, line) of every import, lazy ones included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "hprofiler"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "hprofiler":
                yield rest.split(".")[0], True, node.lineno
            elif is_third_party(top):
                yield top, False, node.lineno


def is_third_party(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    return spec is None or "site-packages" in (spec.origin or "")


MODULES = sorted(p for p in (ROOT / "hprofiler").rglob("*.py") if "_data" not in p.parts)


def test_imports_stay_in_their_rooms():
    """Of a room that is not in the table, docs/internals/architecture.md does not know either."""
    wrong = [
        f"{path}:{line}: may not import {name}"
        for path in MODULES
        for name, ours, line in imports(path)
        if name not in ALLOWED[room_of(path)][0 if ours else 1] and not (ours and name == room_of(path))
    ]
    assert wrong == []


def test_rooms_import_only_those_above_them():
    rooms = list(ALLOWED)
    for at, (room, (used, _)) in enumerate(ALLOWED.items()):
        assert used <= {*rooms[:at]}, room


def test_every_room_is_a_package():
    """A folder without __init__.py is imported in a checkout, and missing in a wheel."""
    folders = {path.parent for path in MODULES}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_model_does_no_io():
    allowed = {"__future__", "collections", "dataclasses", "difflib", "enum", "msgspec", "re", "typing"}
    allowed |= {"array", "bisect", "itertools"}
    for path in sorted((ROOT / "hprofiler" / "model").glob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        used = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        used |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        ours = {name for name in used if name.startswith("hprofiler.")}
        assert all(name.startswith("hprofiler.model.") or name == "hprofiler.base.text" for name in ours), (
            path
        )
        assert {name.partition(".")[0] for name in used - ours} <= allowed, path


def test_help_imports_nothing_heavy():
    """The promise of `--help` in an instant, held without a clock."""
    code = "import sys, hprofiler.cli\n"
    code += "try: hprofiler.cli.main(['--help'])\nexcept SystemExit: pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"paramiko", "requests", "lightkube", "rich", "yaml", "cryptography", "ssl", "asyncio", "duckdb"}
    assert not loaded & {*heavy, "hprofiler._flamegraph", "hprofiler.collect"}


def test_the_package_loads_its_names_when_they_are_asked_for():
    code = "import sys, hprofiler; print(*[one for one in sys.modules if one.startswith('hprofiler')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["hprofiler"]


# The Rust crates' rooms, lowest first. A room uses only those below it: so there is no circle between rooms,
# nor between files of different rooms. Rooms on one line do not use each other.
RUST_ROOMS = {
    "agents/host/src": [
        {"wire"},
        {"os"},
        {"staging"},
        {"jvm"},
        {"discovery", "resources"},
        {"engine", "metrics"},
        {"recording"},
        {"commands"},
        {"session"},
    ],
    "flamegraph/src": [{"profile"}, {"ops"}, {"symbols", "source"}, {"formats"}, {"render"}],
}


@pytest.mark.parametrize("crate", RUST_ROOMS)
def test_rust_rooms_use_only_the_rooms_below(crate):
    level = {room: n for n, rooms in enumerate(RUST_ROOMS[crate]) for room in rooms}
    rooms = [path for path in (ROOT / crate).iterdir() if path.is_dir() and path.name != "fuzz"]
    assert rooms
    for room in rooms:
        assert room.name in level, f"{room}: a room that docs/internals/architecture.md does not know"
        for path in room.rglob("*.rs"):
            code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            assert "super::super::" not in code, f"{path}: name other rooms by crate::"
            above = r"\bcrate::(\w+|\{)" if path != room / "mod.rs" else r"\b(?:crate|super)::(\w+|\{)"
            for other in re.findall(above, code):
                assert other in level, f"{path}: {other} is not a room"
                assert other == room.name or level[other] < level[room.name], (
                    f"{path}: {room.name} may not use {other}"
                )
