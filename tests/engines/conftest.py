"""Fixtures of the engines' tests: the command, programs that count what they do, and who looks after them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Program
from tests.burners.counting import Native, Truth
from tests.contract import real
from tests.contract.agent_driver import leftovers
from tests.contract.conftest import is_profiled
from tests.engines.measured import MARK, Runner
from tests.lab import jdks, procs
from tests.needed import lacking


@pytest.fixture(scope="session", autouse=True)
def _prerequisites() -> None:
    missing = real.why_not()
    if missing:
        pytest.fail(f"{missing}: run make build", pytrace=False)
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces, other users, kernel frames")


@pytest.fixture(scope="module")
def record() -> Iterator[Runner]:
    """Runs the command on programs."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-engines-"))
    yield Runner(folder)
    shutil.rmtree(folder)


class Zoo:
    """Starts programs, and ends them all."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def jvm(self, *works: str, jdk: int = 17, **options: Any) -> Truth:
        """A JVM of a version that does these works; options are those of `counting.arguments`."""
        java = jdks.java(jdk)
        made = Truth(*works, **{"java": java, **options})
        self.programs.append(made)
        return made

    def jvms(self, number: int, *works: str, **options: Any) -> list[Truth]:
        """So many of them, started at once."""
        with ThreadPoolExecutor(number) as pool:
            return list(pool.map(lambda _: self.jvm(*works, **options), range(number)))

    def native(self, language: str, load: float = 0.4) -> Native:
        try:
            made = Native(language, load)
        except FileNotFoundError as missing:
            lacking(f"no {missing.filename} on this machine")
        self.programs.append(made)
        return made

    def end(self) -> None:
        for program in self.programs:
            program.kill()

    def left(self) -> list[str]:
        """What runs left behind: files, processes, maps of compiled code, active profilers."""
        alive = [program.outer.pid for program in self.programs if program.outer.alive()]
        maps = [str(path) for pid in alive for path in Path("/tmp").glob(f"perf-{pid}.map")]
        active = [f"an active profiler in {pid}" for pid in alive if is_profiled(pid)]
        return [*leftovers(), *_processes(), *maps, *active]


def _processes() -> list[str]:
    """Processes that runs of these tests started and that live, by the mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if MARK.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


@pytest.fixture(scope="module")
def zoo() -> Iterator[Zoo]:
    """Programs for the tests of one module. When they are through nothing may be left beside or in them."""
    made = Zoo()
    before = set(leftovers())
    try:
        yield made
        with suppress(TimeoutError):
            procs.wait_for("nothing left behind", lambda: set(made.left()) <= before)
        assert set(made.left()) <= before
    finally:
        made.end()
