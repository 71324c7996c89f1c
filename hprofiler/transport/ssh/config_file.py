"""ssh_config files as one text: `Include` is resolved here, because paramiko knows nothing of it."""

from __future__ import annotations

import glob
import shlex
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home, is_file

_DEPTH = 16


def read_config(path: Path, base: Path, depth: int = 0) -> str:
    """The file with everything it includes; relative names are in `base`. Raises OSError and UsageError."""
    if depth > _DEPTH:
        raise UsageError(
            f"{path}: Include goes deeper than {_DEPTH} files", "check for a file that includes itself"
        )
    lines: list[str] = []
    section = "Host *"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        keyword, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if keyword.lower() in ("host", "match"):
            section = line
        if keyword.lower() != "include":
            lines.append(line)
            continue
        try:
            included = _included(value, base)
        except (ValueError, UsageError) as error:  # an open quote, a user who has no home
            raise UsageError(
                f"{path}: Include {value[:200]!r}: {error}", "correct that line of the ssh_config file"
            ) from error
        for file in included:
            lines.append(read_config(file, base, depth + 1))
        lines.append(section)  # what an included file says of hosts ends with that file
    return "\n".join(lines) + "\n"


def _included(value: str, base: Path) -> list[Path]:
    found: list[Path] = []
    for pattern in shlex.split(value):
        absolute = base / at_home(pattern)
        found += [Path(name) for name in sorted(glob.glob(str(absolute))) if is_file(Path(name))]  # noqa: PTH207
    return found
