"""A Flink job of two operators in one JVM, of this machine's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import jdks
from tests.lab.yarn.software import compiled, fetched

VERSION = "1.20.1"
JAVA = 11
OWN_METHODS = {
    "operator parse lines": "FlinkOperators$First.parse",
    "operator count words": "FlinkOperators$Second.count",
}
"""The slice of each operator, and the method that only this operator calls."""
_HERE = Path(__file__).parent


def software() -> list[str]:
    """The command of the job; fetched and compiled once. Raises Unavailable."""
    jars = fetched("flink", _HERE / "flink.xml", flink=VERSION)
    job = compiled("flink-job", [_HERE / "FlinkOperators.java"], jars, JAVA)
    return [f"{jdks.home(JAVA)}/bin/java", "-Xmx512m", "-cp", f"{job}:{jars}/*", "FlinkOperators"]


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    """Both operators are busy."""
    with (folder / "flink.err").open("wb") as errors:
        job = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == "busy\n", (folder / "flink.err").read_text(errors="replace")[-3000:]
        yield
    finally:
        job.kill()
        job.communicate()
