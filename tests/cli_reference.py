"""Writes docs/reference/cli.md: the help text of every command, as the terminal shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
COMMANDS = [
    "ps",
    "top",
    "doctor",
    "apps",
    "selectors",
    "convert",
    "report",
    "diff",
    "spark",
    "scale",
    "archive add",
    "archive compact",
    "archive prune",
    "archive check",
    "archive sql",
    "history",
    "grew",
    "cost",
    "where",
    "outliers",
    "cleanup",
    "demo",
    "completion",
]


def page() -> str:
    parts = ["# Command line\n\nThe help text of every command. `hprofiler run` is the default command.\n"]
    for command in ("", *COMMANDS):
        parts.append(f"\n## hprofiler {command}".rstrip() + f"\n\n```text\n{help_of(command)}```\n")
    return "".join(parts)


def help_of(command: str) -> str:
    line = [sys.executable, "-m", "hprofiler", *command.split(), "--help"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        line, env=environment, cwd=PAGE.parents[2], capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
