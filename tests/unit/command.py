"""The hprofiler command as users run it, and a terminal to run it at."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def hprofiler(
    *words: object, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end; `before` is called in its process."""
    command = [sys.executable, "-m", "hprofiler", *map(str, words)]
    named = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, preexec_fn=before, env=named
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
