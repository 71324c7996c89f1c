"""The coordinator as the agent on the same machine would see it: never to be profiled."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any


@functools.lru_cache(maxsize=1)
def own_processes() -> dict[str, Any]:
    """The `exclude` of `hello`: this process and its ancestors. Empty where there is no /proc."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot_id = namespace = ""
    return {"boot_id": boot_id, "pid_namespace": namespace, "pids": _ancestors(os.getpid())}


def _ancestors(pid: int) -> list[int]:
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
    return line
