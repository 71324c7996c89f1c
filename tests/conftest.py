"""What holds for all tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.burners.burner import Program
from tests.lab import jdks, tracefs
from tests.needed import HAVE_ALL, is_lacking

# The same examples each time, however long one takes on a busy machine: what fails here fails everywhere.
settings.register_profile(
    "the same everywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("the same everywhere")

# A shell that runs tests in the background has them ignore Ctrl-C, `nohup` has them ignore a hang-up;
# and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


DAILY_JDKS = {17, 25}
"""`make test` runs the lab's usual JDK and one beside it; the other versions are left to `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of another JDK is a nightly one."""
    for item in items:
        chosen = getattr(item, "callspec", None)
        version = (chosen.params.get("jdk") or chosen.params.get("java")) if chosen else None
        if version in jdks.VERSIONS and version not in DAILY_JDKS:
            item.add_marker("nightly")


def pytest_sessionstart() -> None:
    """Pages are made with the viewer as it is in the checkout."""
    root = Path(__file__).resolve().parent.parent
    page = root / "hprofiler" / "_data" / "viewer" / "page.html"
    subprocess.run([sys.executable, str(root / "flamegraph" / "viewer" / "build.py"), str(page)], check=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped for want of something fails where everything has to be there, as in CI."""
    report = yield
    if hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if report.skipped and is_lacking(reason):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: {reason}, and {HAVE_ALL} is set"
    return report


Kept = TypeVar("Kept", bound=Program)


@pytest.fixture
def keep_program() -> Iterator[Callable[[Kept], Kept]]:
    """Kills the programs that it is given at the end of the test."""
    programs: list[Program] = []

    def keep(program: Kept) -> Kept:
        programs.append(program)
        return program

    yield keep
    for program in programs:
        program.outer.kill(signal.SIGCONT)  # one that is stopped goes on first
        program.kill()


@pytest.fixture(scope="module")
def tracepoints() -> Iterator[None]:
    """The kernel shows them."""
    with tracefs.mounted():
        yield
