"""Fixtures of the map's tests: a JDK of each version, programs that end with the test, folders for maps."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.jvmti import library, map_file
from tests.jvmti.program import JavaProgram
from tests.lab import jdks


@pytest.fixture(params=jdks.VERSIONS)
def java(request: pytest.FixtureRequest) -> str:
    """The launcher of each version."""
    return jdks.java(request.param)


@pytest.fixture
def java17() -> str:
    """One launcher, for tests that do not depend on the version."""
    return jdks.java(17)


@pytest.fixture
def start() -> Iterator[Callable[..., JavaProgram]]:
    """Starts a JavaProgram."""
    started: list[JavaProgram] = []

    def begin(*arguments: object, **how: object) -> JavaProgram:
        started.append(JavaProgram(*arguments, **how))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for program in started:
        program.kill()


@pytest.fixture
def take(tmp_path: Path) -> Callable[[int], map_file.Map]:
    """Takes the map of the JVM with that pid; it must be complete."""

    def take_map(pid: int) -> map_file.Map:
        path = tmp_path / "taken.map"
        path.unlink(missing_ok=True)
        path.touch()
        assert library.load(pid, str(path)) == 0
        return map_file.read(path)

    return take_map


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
