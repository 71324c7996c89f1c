"""Hadoop, Spark and PySpark for the lab, in its cache: jars by coordinates, jobs compiled against them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache, jdks
from tests.lab.cache import Unavailable

HERE = Path(__file__).parent
JDK = 17
PYSPARK = "4.3.0"
_NOT_NEEDED = ("__pycache__", "site-packages", "dist-packages", "test", "idlelib", "ensurepip", "config-*")


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


@dataclass(frozen=True)
class PythonSpark:
    """PySpark's home, and a Python for it: hosts of the lab have none."""

    spark: Path
    python: Path

    @property
    def interpreter(self) -> str:
        return str(self.python / "python3")


def python_spark() -> PythonSpark:
    """PySpark and this machine's Python; fetched and copied once. Raises Unavailable."""
    wanted = f"pyspark=={PYSPARK}"
    spark = _made("pyspark", wanted.encode(), lambda folder: _fetch_package(folder, wanted))
    version = f"{sys.version} {sys.base_prefix}".encode()
    return PythonSpark(spark / "pyspark", _made("python", version, _copy_python))


def _fetch_package(folder: Path, wanted: str) -> None:
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(folder)]
    _run(sys.executable, "-m", "pip", "install", *options, wanted)


def _copy_python(folder: Path) -> None:
    """The interpreter, its standard library and, where it has one, the shared library it is in."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for part in ("bin", "lib"):
        (folder / part).mkdir()
    shutil.copy(Path(sys.base_prefix, "bin", name).resolve(), folder / "bin" / name)
    ignore = shutil.ignore_patterns(*_NOT_NEEDED)
    shutil.copytree(sysconfig.get_path("stdlib"), folder / "lib" / name, ignore=ignore, symlinks=True)
    library = Path(sysconfig.get_config_var("LIBDIR") or "", str(sysconfig.get_config_var("INSTSONAME")))
    if library.suffix != ".a" and library.is_file():
        shutil.copy(library, folder / "lib")
    # By its own place: the folder is renamed when it is whole.
    start = f'here=$(dirname "$0"); LD_LIBRARY_PATH="$here/lib" exec "$here/bin/{shlex.quote(name)}" "$@"'
    (folder / "python3").write_text(f"#!/bin/sh\n{start}\n")
    (folder / "python3").chmod(0o755)


def _jars(name: str) -> Path:
    """The folder with the jars that NAME.xml lists, and those they need."""

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
