"""Questions to whoever sits at the terminal."""

from __future__ import annotations

import sys

from hprofiler.cli.streams import is_terminal


def can_ask() -> bool:
    """Whether somebody sees the question and may answer it."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agrees(question: str) -> bool:
    """Whether the answer is yes; anything else is no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
