"""Hadoop, Spark and PySpark for the lab, in its cache: jars by coordinates, jobs compiled against them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache, jdks
from tests.lab.cache import Unavailable

HERE = Path(__file__).parent
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
    if not shutil.which("mvn"):
        raise Unavailable("the YARN lab needs mvn to fetch Hadoop and Spark")
    hadoop, spark = _jars("hadoop"), _jars("spark")
    return Software(hadoop, spark, _jobs(spark), jdks.home(JDK))


def pyspark() -> Path:
    """PySpark's own folder, with its jars: a SPARK_HOME. Fetched once. Raises Unavailable."""
    wanted = f"pyspark=={PYSPARK}"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target"]
    return _made("pyspark", wanted.encode(), lambda folder: _run(*install, str(folder), wanted)) / "pyspark"


def _jars(name: str) -> Path:
    """The folder with the jars that NAME.xml lists, and their dependencies."""

    def fetch(folder: Path) -> None:
        _run(
            "mvn", "-B", "-q", "-f", str(HERE / f"{name}.xml"), "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
        )  # fmt: skip

    return _made(name, (HERE / f"{name}.xml").read_bytes(), fetch)


def _jobs(spark: Path) -> Path:
    sources = sorted((HERE / "jobs").glob("*.java"))

    def compile_jobs(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as classes:
            _run(
                "javac",
                "-nowarn",
                "-g",
                "--release",
                "17",
                "-cp",
                f"{spark}/*",
                "-d",
                classes,
                *map(str, sources),
            )
            _run("jar", "cf", str(folder / "jobs.jar"), "-C", classes, ".")

    key = b"".join(source.read_bytes() for source in sources) + str(spark).encode()
    return _made("jobs", key, compile_jobs) / "jobs.jar"


def _made(name: str, key: bytes, make: Callable[[Path], None]) -> Path:
    return cache.made(cache.folder("yarn"), name, key, make)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise OSError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-1500:]}")
