"""Compiles the burners once into the lab's cache: the Java ones for JDK 8 and later, the native ones."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cache

SOURCES = sorted(Path(__file__).parent.rglob("*.java"))
NATIVE = Path(__file__).parent / "native"
COMPILERS: dict[str, list[str]] = {
    "c": ["gcc", "-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"],
    "rust": ["rustc", "--edition", "2021", "-O", "-C", "force-frame-pointers=yes", "-C", "strip=none"],
    "go": ["go", "build"],
}
"""By language; all keep frame pointers. The output's name and the source follow."""
PLACES = f"{os.environ.get('PATH', '')}:/usr/local/go/bin"
ENDINGS = {"c": "c", "rust": "rs", "go": "go"}


def classes() -> Path:
    """The folder of the compiled burners; one folder for each state of the sources."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:16]
    target = cache.folder("burners") / digest
    if target.exists():
        return target
    partial = Path(tempfile.mkdtemp(dir=target.parent))
    command = ["javac", "--release", "8", "-Xlint:-options", "-d", str(partial), *map(str, SOURCES)]
    subprocess.run(command, check=True)
    return _taken_over(partial, target)


def native(language: str) -> Path:
    """The native burner of a language; FileNotFoundError where its compiler is not on this machine."""
    name = f"native_{language}"
    source, compiler = NATIVE / f"{name}.{ENDINGS[language]}", COMPILERS[language]
    digest = hashlib.sha256(source.read_bytes() + " ".join(compiler).encode()).hexdigest()[:16]
    target = cache.folder("burners") / f"{name}-{digest}"
    if not target.exists():
        partial = Path(tempfile.mkdtemp(dir=target.parent))
        _compile([*compiler, "-o", str(partial / name), str(source)])
        _taken_over(partial, target)
    return target / name


def _compile(command: Sequence[str]) -> None:
    # Go's cache is all it keeps outside; it must not depend on a home folder
    environment = {"GOCACHE": str(cache.folder("go-build")), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
    compiler = shutil.which(command[0], path=PLACES) or command[0]
    subprocess.run([compiler, *command[1:]], check=True, env={**os.environ, **environment})


def _taken_over(partial: Path, target: Path) -> Path:
    partial.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:  # another test session was faster
        shutil.rmtree(partial)
    return target
