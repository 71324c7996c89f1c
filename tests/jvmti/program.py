"""JVMs that run one of this folder's programs, and their resources, seen from outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.burners.burner import Program
from tests.jvmti import library


@dataclass(frozen=True)
class Holdings:
    """Threads, open files and mapped pieces of our library of a process.

    Sockets do not count: they come and go with each attach.
    """

    threads: int
    files: int
    library_pieces: int

    @classmethod
    def of(cls, pid: int) -> Holdings:
        process, files = Path(f"/proc/{pid}"), 0
        for link in (process / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                files += not os.readlink(link).startswith("socket:")
        maps = (process / "maps").read_text().splitlines()
        pieces = sum("/libhprofiler" in line for line in maps)
        return cls(len(list((process / "task").iterdir())), files, pieces)


class JavaProgram(Program):
    """Ends with its stdin. `prefix` is a command that executes the JVM, for example as another user."""

    def __init__(
        self,
        java: str,
        name: str,
        options: Sequence[str] = (),
        classes: Path | None = None,
        prefix: Sequence[str] = (),
        arguments: Sequence[str] = (),
    ) -> None:
        path = str(classes or library.java_classes())
        super().__init__(
            [*prefix, java, "-Xmx64m", "-XX:+UseSerialGC", "-cp", path, *options, name, *arguments]
        )
        self.pid = self.outer.pid

    def finish(self) -> int:
        """End it; returns its exit status."""
        self.process.communicate(timeout=60)
        return self.process.returncode
