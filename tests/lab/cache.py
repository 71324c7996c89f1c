"""The lab's cache of fetched and built software: outside the checkout, shared by all runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from _pytest.outcomes import Skipped

CHECKOUT = Path(__file__).resolve().parents[2]


class Unavailable(Skipped):
    """Software of the lab is not available here; the message says why. A test that needs it is skipped."""


def root() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/hprofiler`, made if missing."""
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hprofiler"
    path.mkdir(parents=True, exist_ok=True)
    return path


def folder(name: str) -> Path:
    """`lab/NAME` there, made if missing."""
    path = root() / "lab" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def made(base: Path, name: str, key: bytes, make: Callable[[Path], None]) -> Path:
    """The folder of `base` for this name and key. `make` fills it once, completely or not at all.

    Raises Unavailable if `make` fails with an OSError or a failed command.
    """
    folder = base / f"{name}-{hashlib.sha256(key).hexdigest()[:12]}"
    with (base / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=base))
            try:
                make(partial)
                partial.chmod(0o755)
                partial.rename(folder)
            except (OSError, subprocess.SubprocessError) as failure:
                raise Unavailable(f"{name}: {failure}") from failure
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder
