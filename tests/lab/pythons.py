"""Python interpreters of other releases than the one that runs the tests."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.lab import cache
from tests.needed import lacking

FETCHED = {"3.14": "org.bytedeco:cpython:3.14.3-1.5.13:jar:linux-x86_64"}
"""Releases that no distribution of today has: the coordinates of an archive."""


def interpreter(release: str) -> str:
    """The program of a release, as pyenv or the distribution installs it, else by Maven."""
    places = Path.home().joinpath(".pyenv/versions").glob(f"{release}.*/bin/python{release}")
    for python in [*places, Path(f"/usr/bin/python{release}")]:
        if python.is_file() and subprocess.run([python, "-c", ""], check=False).returncode == 0:
            return str(python)
    if release not in FETCHED or not shutil.which("mvn"):
        lacking(f"no Python {release} on this machine")
    (program,) = _fetched(FETCHED[release]).glob(f"**/bin/python{release}")
    return str(program)


def _fetched(coordinates: str) -> Path:
    def fetch(folder: Path) -> None:
        copy = ["dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "--batch-mode", "--quiet", *copy], check=True, stdin=subprocess.DEVNULL)
        (jar,) = folder.glob("*.jar")
        with zipfile.ZipFile(jar) as content:
            content.extractall(folder)
        jar.unlink()
        for program in folder.glob("**/bin/python*"):
            program.chmod(0o755)

    return cache.made(cache.folder("python"), "cpython", coordinates.encode(), fetch)
