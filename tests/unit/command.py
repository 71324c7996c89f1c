"""The hprofiler command as users run it, in a shell too, and a terminal to run it at."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hprofiler.cli import main

ROOT = Path(__file__).resolve().parents[2]
HPROFILER = (sys.executable, "-m", "hprofiler")


def hprofiler(
    *words: object, stdin: str = "", before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end; `before` is called in its process."""
    command = [*HPROFILER, *map(str, words)]
    named = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=before,
        env=named,
        input=stdin,
    )


def in_shell(words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs it in a folder by a line of a shell, which may redirect its streams."""
    command = ["/bin/sh", "-c", f"{shlex.join(HPROFILER)} {words}"]
    named = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=folder, env=named
    )


def exit_code(words: Sequence[object]) -> int | str | None:
    """Runs it in this process, which is faster; what it prints goes where this process prints."""
    try:
        return main([str(word) for word in words])
    except SystemExit as ended:
        return ended.code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
