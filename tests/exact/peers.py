"""The reference tools for our results. They are built or fetched once, into the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.needed import lacking

INFERNO = "0.12.8"
SPEEDSCOPE = "1.25.0"


def cache(name: str) -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/hprofiler/NAME`."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "hprofiler" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def inferno(program: str) -> Path:
    """A program of the inferno crate, built on the first call."""
    root = cache("inferno")
    path = root / "bin" / program
    if not path.exists():
        command = ["cargo", "install", "--quiet", "--root", str(root), "--version", INFERNO, "inferno"]
        subprocess.run(command, check=True)
    return path


def speedscope_schema() -> dict[str, Any]:
    """The schema that speedscope publishes with its package."""
    folder = cache(f"speedscope-{SPEEDSCOPE}")
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        partial.mkdir()
        command = ["npm", "pack", "--silent", f"speedscope@{SPEEDSCOPE}"]
        packed = subprocess.run(command, check=True, cwd=partial, stdout=subprocess.PIPE, text=True)
        with tarfile.open(partial / packed.stdout.split()[-1]) as package:
            member = package.extractfile("package/dist/release/file-format-schema.json")
            assert member is not None
            (partial / "schema.json").write_bytes(member.read())
        partial.rename(folder)
    schema: dict[str, Any] = json.loads((folder / "schema.json").read_text())
    return schema


def needs(program: str) -> str:
    """The program's path. Without it the test is skipped with a reason, or fails in CI."""
    found = shutil.which(program)
    if found is None:
        lacking(f"{program} is not on this machine")
    return found
