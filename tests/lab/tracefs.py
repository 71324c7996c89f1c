"""The kernel's tracepoints, which are visible only if tracefs is mounted."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

FOLDER = "/sys/kernel/tracing"
UNMOUNT = f'umount -lq {FOLDER}; umount -lq /sys/kernel/debug; exec "$@"'
WITHOUT = ("unshare", "--mount", "sh", "-c", UNMOUNT, "sh")
"""A command prefix that hides them."""


@contextlib.contextmanager
def mounted() -> Iterator[None]:
    """Mount tracefs during the block, if systemd has not done it at boot."""
    if Path(FOLDER, "events").exists():
        yield
        return
    subprocess.run(["mount", "-t", "tracefs", "none", FOLDER], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", FOLDER], check=True)
