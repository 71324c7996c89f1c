"""The kernel's tracepoints, which it shows where a file system of their own is mounted."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

FOLDER = "/sys/kernel/tracing"
UNMOUNT = f'umount -lq {FOLDER}; umount -lq /sys/kernel/debug; exec "$@"'
WITHOUT = ("unshare", "--mount", "sh", "-c", UNMOUNT, "sh")
"""The words before a command that sees none."""


@contextlib.contextmanager
def mounted() -> Iterator[None]:
    """systemd does that as a machine starts; where nothing has, it is done meanwhile."""
    if Path(FOLDER, "events").exists():
        yield
        return
    subprocess.run(["mount", "-t", "tracefs", "none", FOLDER], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", FOLDER], check=True)
