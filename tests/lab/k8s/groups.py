"""The folder of this machine's control groups (cgroup v1) for each node.

The kernel removes everything else of a host when it goes down; these folders must be removed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.lab import procs

NAME = re.compile(r"hprofiler-lab-(\d+)-(\d+)")
PLAIN = {"rw", "ro", "relatime", "nosuid", "nodev", "noexec", "xattr"}


def name_of(init: procs.Identity) -> str:
    """The node's folder in each tree, by its PID 1."""
    return f"hprofiler-lab-{init.pid}-{init.start_time}"


def trees() -> list[str]:
    """The mount options of each tree, such as "cpu,cpuacct" or "name=systemd"."""
    return [options for _, options in _mounted()]


def sweep() -> None:
    """Remove the folders of nodes that are gone."""
    for tree, _ in _mounted():
        for folder in tree.iterdir():
            owner = NAME.fullmatch(folder.name)
            if owner and not procs.Identity(int(owner[1]), int(owner[2])).alive():
                _remove(folder)


def _remove(folder: Path) -> None:
    for inner in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        with suppress(OSError):
            inner.rmdir()

    def gone() -> bool:
        with suppress(OSError):  # the kernel releases it shortly after its last process ends
            folder.rmdir()
        return not folder.exists()

    procs.wait_for(f"an end of {folder}", gone, 30)


def _mounted() -> Iterator[tuple[Path, str]]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            chosen = [option for option in options.split(",") if option not in PLAIN]
            yield Path(where), ",".join(option for option in chosen if "agent=" not in option)
