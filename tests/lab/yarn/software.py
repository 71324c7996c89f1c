"""Hadoop, Spark and PySpark for the lab, in its cache: jars by coordinates, jobs compiled against them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache, jdks
from tests.lab.cache import Unavailable

HERE = Path(__file__).parent
JOBS = HERE / "jobs"
JDK = 17
PYSPARK = "4.3.0"


@dataclass(frozen=True)
class Software:
    """Folders with jars, and the jar of the lab's own Spark jobs."""

    hadoop: Path
    spark: Path
    jobs: Path
    java_home: Path


def software() -> Software:
    """Everything a YARN lab runs; fetched and compiled once. Raises Unavailable."""
    hadoop, spark = (fetched(name, HERE / f"{name}.xml") for name in ("hadoop", "spark"))
    jobs = compiled("jobs", sorted(JOBS.glob("*.java")), spark)
    return Software(hadoop, spark, jobs, jdks.home(JDK))


def pyspark() -> Path:
    """PySpark's own folder, with its jars: a SPARK_HOME. Fetched once. Raises Unavailable."""
    wanted = f"pyspark=={PYSPARK}"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target"]
    return _made("pyspark", wanted.encode(), lambda folder: _run(*install, str(folder), wanted)) / "pyspark"


def pyspark_environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a Python that imports this checkout and the PySpark at `home`."""
    (py4j,) = (home / "python" / "lib").glob("py4j-*.zip")
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, [cache.CHECKOUT, home.parent, py4j])),
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(jdks.home(JDK)),
        **more,
    }


def fetched(name: str, listed: Path, **properties: str) -> Path:
    """The folder with the jars that a POM with these properties lists, and their dependencies."""
    if not shutil.which("mvn"):
        raise Unavailable(f"mvn is needed to fetch {name}")

    def fetch(folder: Path) -> None:
        _run(
            "mvn", "-B", "-q", "-f", str(listed), "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
            *(f"-D{key}={value}" for key, value in properties.items()),
        )  # fmt: skip

    return _made(name, listed.read_bytes() + "".join(properties.values()).encode(), fetch)


def compiled(name: str, sources: Sequence[Path], jars: Path, release: int = JDK) -> Path:
    """A jar of these programs, compiled against these jars for a release of Java."""

    def compile_all(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as classes:
            _run(
                "javac", "-nowarn", "-g", "--release", str(release), "-cp", f"{jars}/*", "-d", classes,
                *map(str, sources),
            )  # fmt: skip
            _run("jar", "cf", str(folder / "jobs.jar"), "-C", classes, ".")

    key = b"".join(source.read_bytes() for source in sources) + f"{jars} {release}".encode()
    return _made(name, key, compile_all) / "jobs.jar"


def _made(name: str, key: bytes, make: Callable[[Path], None]) -> Path:
    return cache.made(cache.folder("yarn"), name, key, make)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise OSError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-1500:]}")
