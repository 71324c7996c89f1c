"""Writes docs/reference/cli.md: the help text of every command, as the terminal shows it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from unittest import mock

from hprofiler.cli.options.parser import VERBS
from tests.unit.command import hprofiler

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
ARCHIVE = ("archive add", "archive compact", "archive prune", "archive check", "archive sql")


def page() -> str:
    parts = ["# Command line\n\nThe help text of every command. `hprofiler run` is the default command.\n"]
    others = ((verb,) if verb != "archive" else ARCHIVE for verb in VERBS if verb != "run")
    for command in ("", *chain.from_iterable(others)):
        parts.append(f"\n## hprofiler {command}".rstrip() + f"\n\n```text\n{help_of(command)}```\n")
    return "".join(parts)


def help_of(command: str) -> str:
    with mock.patch.dict("os.environ", {"COLUMNS": "100", "NO_COLOR": "1"}):
        return hprofiler(*command.split(), "--help").stdout


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
