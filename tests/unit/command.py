"""The hprofiler command as users run it, in a shell too, and a terminal to run it at."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from hprofiler.cli import main

ROOT = Path(__file__).resolve().parents[2]
HPROFILER = (sys.executable, "-m", "hprofiler")


def hprofiler(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs it in this process, which is faster."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(words)
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, int(code or 0), *printed)


def as_process(
    *words: object, stdin: str = "", folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs it as users do, to its end."""
    named = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [*HPROFILER, *map(str, words)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, cwd=folder, env=named
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
