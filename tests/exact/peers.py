"""The reference tools for our results. They are built or fetched once, into the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.lab.cache import root
from tests.needed import lacking

INFERNO = "0.12.8"
SPEEDSCOPE = "1.25.0"


def inferno(program: str) -> Path:
    """A program of the inferno crate, built on the first call."""
    kept = root() / "inferno"
    path = kept / "bin" / program
    if not path.exists():
        command = ["cargo", "install", "--quiet", "--root", str(kept), "--version", INFERNO, "inferno"]
        subprocess.run(command, check=True)
    return path


def of_npm(package: str, version: str, member: str, name: str) -> Path:
    """A file of a package of npm, kept under this name."""
    folder = root() / f"{package}-{version}"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        partial.mkdir()
        command = [needs("npm"), "pack", "--silent", f"{package}@{version}"]
        packed = subprocess.run(command, check=True, cwd=partial, stdout=subprocess.PIPE, text=True)
        with tarfile.open(partial / packed.stdout.split()[-1]) as archive:
            content = archive.extractfile(f"package/{member}")
            assert content is not None
            (partial / name).write_bytes(content.read())
        partial.rename(folder)
    return folder / name


def speedscope_schema() -> dict[str, Any]:
    """The schema that speedscope publishes with its package."""
    path = of_npm("speedscope", SPEEDSCOPE, "dist/release/file-format-schema.json", "schema.json")
    schema: dict[str, Any] = json.loads(path.read_text())
    return schema


def needs(program: str) -> str:
    """The program's path. Without it the test is skipped with a reason, or fails in CI."""
    found = shutil.which(program)
    if found is None:
        lacking(f"{program} is not on this machine")
    return found
