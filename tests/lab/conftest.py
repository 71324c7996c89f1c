"""Fixtures of the lab: hosts for a file of tests, the steady job on them, a coordinator.

Other files' clusters have the machine to themselves: the job uses more than one core.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.burners import build
from tests.burners.burner import Burner
from tests.burners.counting import Native
from tests.lab import hosts
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Host, Lab
from tests.lab.witness import Witness
from tests.lab.yarn.software import pyspark

JOB = "application_1700000000000_0001"
"""An argument of each JVM of the steady job, like YARN's."""
LOADS = {"host1": ("alpha", 0.8), "host2": ("beta", 0.3), "host3": ("gamma", 0.12)}
"""Role and load of the steady job's JVM on each host: different enough to distinguish a sum from a mean."""

PERF = "/usr/local/bin/perf"

Burn = Callable[..., Burner]
StartNative = Callable[..., Native]


@pytest.fixture(scope="session")
def workshop() -> Iterator[Path]:
    """A folder every user may enter, for the lab's state and the runs' output."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-lab-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def spark_home() -> Path:
    """PySpark, with its jars."""
    return pyspark()


@pytest.fixture(scope="module")
def lab(workshop: Path) -> Iterator[Lab]:
    """coord and host1…host3, up."""
    hosts.require()
    made = Lab(workshop / "lab", hosts.default_plans(), tied=True)
    made.folder.mkdir(exist_ok=True)
    made.up()
    yield made
    made.down()


@pytest.fixture(scope="module")
def coordinator(request: pytest.FixtureRequest, lab: Lab, workshop: Path) -> Coordinator:
    """Runs hprofiler from the coordinator's network."""
    return Coordinator(lab, workshop / f"{request.module.__name__}-runs")


@pytest.fixture(scope="module")
def job(lab: Lab) -> Iterator[dict[str, Burner]]:
    """The steady job: on each host one JVM of user yarn, each with a hot method of its own."""
    made = {
        name: start(lab.hosts[name], role=role, load=load, extra=[JOB])
        for name, (role, load) in LOADS.items()
    }
    yield made
    for burner in made.values():
        burner.kill()


@pytest.fixture
def burn(keep_program: Callable[[Burner], Burner]) -> Burn:
    """Starts burners, `burn(host, user="yarn", **options)`, and ends them after the test."""
    return lambda host, **options: keep_program(start(host, **options))


@pytest.fixture
def native(keep_program: Callable[[Native], Native]) -> Iterator[StartNative]:
    """Starts the native burner on a host under a program's name, `native(host, "impalad", user="yarn")`.

    The host gets perf unless `perf=False`; it has none by default.
    """
    installed = []

    def start_under_name(host: Host, name: str, user: str = "yarn", perf: bool = True) -> Native:
        if perf and not host.path(PERF).exists():
            shutil.copy(shutil.which("perf") or "perf", host.path(PERF))
            installed.append(host.path(PERF))
        program = build.native("c").with_name(name)
        with contextlib.suppress(FileExistsError):
            os.link(build.native("c"), program)

        def wrap(argv: Sequence[str]) -> list[str]:
            return host.command([str(program), *argv[1:]], user)

        return keep_program(Native("c", wrap=wrap))

    yield start_under_name
    for program in installed:
        program.unlink()


@pytest.fixture
def witness(lab: Lab, job: dict[str, Burner]) -> Witness:
    """The state of the hosts before the test, with the steady job on them."""
    return Witness(lab.hosts.values())


@pytest.fixture(scope="module")
def main_run(coordinator: Coordinator, job: dict[str, Burner]) -> Result:
    """The main job, as root on the three hosts, long enough for checking shares."""
    return coordinator.run("-f", "300", "-t", "5", "-j", JOB, "-h", ALL, "--user", "root")


def start(host: Host, user: str = "yarn", **options: Any) -> Burner:
    """A burner on a host."""
    return Burner(wrap=lambda argv: host.command(argv, user), **options)
