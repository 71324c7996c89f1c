"""Writes docs/reference/cli.md: the help text of every command, as the terminal shows it."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.unit.command import hprofiler

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
    with mock.patch.dict("os.environ", {"COLUMNS": "100", "NO_COLOR": "1"}):
        return hprofiler(*command.split(), "--help").stdout


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
