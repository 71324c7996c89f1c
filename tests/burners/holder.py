"""A running `Holder`: a JVM that holds known amounts of memory of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.burners import build
from tests.burners.burner import Program
from tests.lab import jdks


class Holder(Program):
    """`prefix` are words of a command before the JVM's own."""

    def __init__(
        self, folder: Path, jdk: int = 17, options: Sequence[str] = (), prefix: Sequence[str] = ()
    ) -> None:
        there = ["-cp", str(build.classes()), f"-Dholder.file={folder / 'mapped'}"]
        super().__init__([*prefix, jdks.java(jdk), *options, *there, "Holder"])

    def take(self, **amounts: int) -> None:
        """As much more of each kind, in MiB; `threads` and `classes` are counted."""
        assert self.process.stdin
        self.process.stdin.write(" ".join(f"{kind}={amount}" for kind, amount in amounts.items()).encode())
        self.ask("took")
