"""Compiles the Java burners once, for JDK 8 and later, into the lab's cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.lab import cache

SOURCES = sorted(Path(__file__).parent.glob("*.java"))


def classes() -> Path:
    """The folder of the compiled burners; one folder for each state of the sources."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:16]
    target = cache.folder("burners") / digest
    if target.exists():
        return target
    partial = Path(tempfile.mkdtemp(dir=target.parent))
    command = ["javac", "--release", "8", "-Xlint:-options", "-d", str(partial), *map(str, SOURCES)]
    subprocess.run(command, check=True)
    partial.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:  # another test session was faster
        shutil.rmtree(partial)
    return target
