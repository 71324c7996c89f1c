"""A JVM that runs one of this room's programs, and what can be seen of it from outside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.perfmap import library


@dataclass(frozen=True)
class Holdings:
    """What a process holds.

    Threads, open files (without sockets, which come and go with each attach), mapped pieces of our
    library, bytes of address space.
    """

    threads: int
    files: int
    library_pieces: int
    address_space: int

    @classmethod
    def of(cls, pid: int) -> Holdings:
        process = Path(f"/proc/{pid}")
        maps = (process / "maps").read_text().splitlines()
        pages = int((process / "statm").read_text().split()[0])
        return cls(
            len(list((process / "task").iterdir())),
            sum(not name.startswith("socket:") for name in _open_files(process)),
            sum("libhprofilerPerfmap" in line for line in maps),
            pages * 4096,
        )


def _open_files(process: Path) -> Iterator[str]:
    for link in (process / "fd").iterdir():
        try:
            yield os.readlink(link)
        except FileNotFoundError:
            continue  # closed meanwhile


class Program:
    """It ends with its stdin, so never outlives this process."""

    def __init__(
        self,
        java: str,
        name: str,
        options: Sequence[str] = (),
        classes: Path | None = None,
        **how: Any,
    ) -> None:
        path = str(classes or library.java_classes())
        command = [java, "-Xmx64m", "-XX:+UseSerialGC", "-cp", path, *options, name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **how)
        self.pid = self.process.pid
        assert _line(self.process.stdout) == "ready", self.process.communicate()[1]

    def ask(self) -> int:
        """The number it answers a line with."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(_line(self.process.stdout))

    def finish(self) -> tuple[int, str]:
        """End it; its status and what it said on stderr."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def kill(self) -> None:
        """End it whatever its state; harmless when it has ended. One that is killed leaves its socket."""
        self.process.kill()
        Path(f"/tmp/.java_pid{self.pid}").unlink(missing_ok=True)
        self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def _line(pipe: IO[str] | None) -> str:
    """The next line that is not the JVM's own."""
    assert pipe is not None
    while True:
        line = pipe.readline()
        if not line or line == "ready\n" or line.strip().isdigit():
            return line.strip()
