"""Paths from users and the environment, which may not exist or be readable.

The user may have no home folder, as in many containers; pathlib raises for unreadable folders.
"""

from __future__ import annotations

import stat
from pathlib import Path

from hprofiler.base.errors import UsageError


def at_home(path: str | Path) -> Path:
    """Expand `~` in a path. UsageError for an impossible path or an unknown home folder."""
    if "\0" in str(path):
        raise UsageError(f"{path}: the path contains a NUL character")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"{path}: there is no such home folder", "set HOME, or write the whole path"
        ) from error


def usual(path: str) -> Path | None:
    """A path in the home folder; None if the user has none."""
    try:
        return at_home(path)
    except UsageError:
        return None


def is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def is_there(path: Path) -> bool:
    return bool(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
