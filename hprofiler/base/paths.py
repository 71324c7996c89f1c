"""Paths that people and environments name. They may lead nowhere, or where nobody may look.

Whoever runs this may have no home folder, as in many containers; and pathlib raises where it may not look.
"""

from __future__ import annotations

import stat
from pathlib import Path

from hprofiler.base.errors import UsageError


def at_home(path: str | Path) -> Path:
    """A path that somebody named; UsageError for none, and for a home folder that nobody knows."""
    if "\0" in str(path):
        raise UsageError(f"{path}: the path contains a NUL character")
    try:
        return Path(path).expanduser()
    except (RuntimeError, KeyError) as error:  # KeyError: before Python 3.10
        raise UsageError(
            f"{path}: there is no such home folder", "set HOME, or write the whole path"
        ) from error


def usual(path: str) -> Path | None:
    """Where a file of this user's usually is; None where this user has no home folder."""
    try:
        return at_home(path)
    except UsageError:
        return None


def is_file(path: Path) -> bool:
    """Whether a regular file is seen there."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether a folder is seen there."""
    return stat.S_ISDIR(_mode(path))


def is_there(path: Path) -> bool:
    """Whether anything is seen there."""
    return bool(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
