"""Programs that count what they do, to hold profiles of any event against: Java, C, Rust, Go, Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.burners import build
from tests.burners.burner import Program, Wrap

Counts = dict[str, int]
"""The program's own sums by name; they only grow. Names and units: `truth/*.java`, `native/*`, this
folder's `shares.py`."""
SHARES = Path(__file__).with_name("shares.py")
FORKING = Path(__file__).with_name("forking.py")
SIGNALLED = Path(__file__).with_name("signalled.py")
SPARK_WORKER = Path(__file__).with_name("worker")
"""The path of the module `pyspark.worker`."""


class Counting(Program):
    """A program that answers with `counters NAME=SUM…`."""

    def counters(self) -> Counts:
        """Its counters as of now."""
        return _counts(self.ask("counters"))

    def finish(self) -> Counts:
        """End it; its last counters."""
        return _counts(self.last("counters"))


class Truth(Counting):
    """The JVM of `truth/Truth.java`, doing the `works` asked for, as "alloc" or "alloc=50"."""

    def __init__(self, *works: str, wrap: Wrap | None = None, **options: Any) -> None:
        super().__init__(arguments(works, **options), wrap)


class Native(Counting):
    """A native program: `language` is c, rust or go; `load` of a core for each of its workers."""

    def __init__(self, language: str, load: float = 0.4, wrap: Wrap | None = None) -> None:
        super().__init__([str(build.native(language)), str(load)], wrap)


class Python(Counting):
    """The program of `shares.py` on a Python interpreter; `load` of a core, `shares` such as "cool=60"."""

    def __init__(
        self,
        python: str = sys.executable,
        load: float = 0.5,
        shares: Sequence[str] = (),
        wrap: Wrap | None = None,
    ) -> None:
        super().__init__([python, str(SHARES), str(load), *shares], wrap)


def arguments(
    works: Sequence[str],
    java: str = "java",
    heap: str = "192m",
    options: Sequence[str] = (),
    extra: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> list[str]:
    """The command line of a JVM that does these works.

    `extra` words stand at its end, for selectors; `prefix` becomes the JVM, say as another user.
    """
    jvm = ["env", f"CLASSPATH={build.classes()}", java, f"-Xmx{heap}", "-XX:+UseSerialGC"]
    tail = ["--", *extra] if extra else []
    return [*prefix, *jvm, *options, "truth.Truth", *works, *tail]


def grown(later: Counts, earlier: Counts) -> Counts:
    """What each sum has grown by."""
    return {name: value - earlier[name] for name, value in later.items()}


def _counts(line: str) -> Counts:
    return {name: int(value) for name, _, value in (word.partition("=") for word in line.split()[1:])}
