"""Makes JFR recordings with async-profiler and the JDK, and reads them with async-profiler's own converter.

The converter was last published with 4.2. It cannot read the wall-clock samples of 4.4 and later, which have
a new field, so recordings with all events are also made with the library of 4.2.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cache, jdks

SOURCES = Path(__file__).parent / "java"
CONVERTER = "tools.profiler:jfr-converter:4.2"
SHA256 = {
    CONVERTER: "16093ca59bd3cafb02a7548b513531ce576f1a6c643533390cbe53855b50ef6d",
    "tools.profiler:async-profiler:4.2": "445b7bdc6a3ed03d45a9d4b61b5a5fc072b3e9952d7f2b63722312f48ea9ee18",
    "tools.profiler:async-profiler:4.5": "d0184907de67ca63363f1a6333c75eb7414fb3e13c564641304fe0fdca97363e",
}
MEMBER = {"x86_64": "linux-x64/libasyncProfiler.so", "aarch64": "linux-arm64/libasyncProfiler.so"}
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def artifact(coordinates: str) -> Path:
    """A jar from the cache, or through Maven; its bytes must have the hash above."""
    _, name, version = coordinates.split(":")
    folder = cache.folder("jars")
    jar = folder / f"{name}-{version}.jar"
    if not (jar.is_file() and _sha256(jar) == SHA256[coordinates]):
        copy = [f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "--batch-mode", "--quiet", COPY, *copy], check=True)
    assert _sha256(jar) == SHA256[coordinates], f"{coordinates} has other bytes than expected"
    return jar


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def library(version: str) -> Path:
    """async-profiler's library of this version."""
    path = cache.folder("jars") / f"libasyncProfiler-{version}.so"
    if not path.is_file():
        with zipfile.ZipFile(artifact(f"tools.profiler:async-profiler:{version}")) as jar:
            partial = path.with_suffix(".new")
            partial.write_bytes(jar.read(MEMBER[platform.machine()]))
        partial.rename(path)
    return path


def compiled_java(name: str) -> Path:
    """The folder with a compiled program, one for each version of its source."""
    source = SOURCES / f"{name}.java"
    target = cache.folder("burners") / f"{name}-{_sha256(source)[:16]}"
    if not target.exists():
        partial = Path(tempfile.mkdtemp(dir=target.parent))
        options = ["-encoding", "UTF-8", "--release", "8", "-Xlint:-options", "-d", str(partial)]
        subprocess.run(["javac", *options, str(source)], check=True)
        if target.exists():
            shutil.rmtree(partial)
        else:
            partial.rename(target)
    return target


def start(
    jdk: int,
    output: Path,
    *,
    seconds: float,
    agent: str | None = None,
    options: str = "",
    flags: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """The burner in a JVM that records itself, by this version of the agent or by `flags`."""
    words = [jdks.java(jdk), *flags]
    if agent:
        words.append(f"-agentpath:{library(agent)}=start,{options},jfr,file={output}")
    words += ["-cp", str(compiled_java("JfrBurner")), "JfrBurner", str(int(seconds * 1000))]
    environment = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(jvm: subprocess.Popen[bytes]) -> None:
    """Waits until a JVM has ended and written its recording."""
    output, _ = jvm.communicate(timeout=120)
    assert jvm.returncode == 0, output.decode(errors="replace")


def converted(recording: Path, *flags: str) -> dict[str, int]:
    """The converter's annotated stacks of a recording, with their values."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "stacks"
        converter = [jdks.java(25), "-Dfile.encoding=UTF-8", "-jar", str(artifact(CONVERTER))]
        run = [*converter, *flags, "-o", "collapsed", str(recording), str(output)]
        subprocess.run(run, check=True, capture_output=True, timeout=120)
        return stacks(output.read_bytes())


def stacks(folded: bytes) -> dict[str, int]:
    """Folded text as a dictionary."""
    lines = (line.rpartition(" ") for line in folded.decode().splitlines())
    return {stack: int(count) for stack, _, count in lines}
