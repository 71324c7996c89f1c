"""The libraries under test, built from this checkout, and the programs that load it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import attach, cache

ROOM = Path(__file__).parent
SOURCES = ROOM.parents[1] / "agents" / "jvmti"
MACHINES = {"x86_64": 62, "aarch64": 183}
BUILDS = {
    "glibc": ("x86_64", ["cc"], []),
    "musl": ("x86_64", ["musl-gcc"], []),
    "arm64": ("aarch64", ["aarch64-linux-gnu-gcc"], ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]),
}
"""Of stand-ins for a JVM: architecture, compiler, and the emulator, if any."""
PERFMAP, THREADNAMES = "perfmap", "threadnames"
FILES = {PERFMAP: "libhprofilerPerfmap.so", THREADNAMES: "libhprofilerThreadnames.so"}


@functools.cache
def path(architecture: str = "x86_64", name: str = PERFMAP) -> Path:
    """A library for an architecture. Equal bytes keep their path, because a JVM may have it loaded."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "library"
        subprocess.run(["sh", str(SOURCES / "build.sh"), name, architecture, str(built)], check=True)
        digest = hashlib.sha256(built.read_bytes()).hexdigest()[:16]
        target = cache.folder(name) / digest / FILES[name]
        if not target.exists():
            target.parent.mkdir(mode=0o755, exist_ok=True)
            shutil.copy(built, target.with_suffix(f".{os.getpid()}"))
            target.with_suffix(f".{os.getpid()}").rename(target)
    return target


def load(pid: int, options: str, library: Path | None = None) -> int:
    """Attach the library (or a copy of it) to a JVM; returns the result of Agent_OnAttach.

    Raises AssertionError if it was not called.
    """
    reply = attach.execute(pid, "load", str(library or path()), "true", options)
    status, _, said = reply.partition("\n")
    assert status == "0", reply
    return int(said.strip().rpartition(" ")[2])


@functools.cache
def java_classes() -> Path:
    """The compiled programs of this folder, for JDK 8 and later."""
    sources = sorted((ROOM / "programs").glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    target = cache.folder("jvmti") / f"classes-{digest}"
    if not target.exists():
        partial = Path(tempfile.mkdtemp(dir=target.parent))
        command = ["javac", "--release", "8", "-Xlint:-options", "-d", str(partial), *map(str, sources)]
        subprocess.run(command, check=True)
        partial.chmod(0o755)
        partial.replace(target)
    return target


def jdk_headers() -> list[str]:
    """Compiler options that find jvmti.h, as build.sh does."""
    home = os.environ.get("JAVA_HOME") or Path(shutil.which("javac") or "").resolve().parents[1]
    return [f"-I{home}/include", f"-I{home}/include/linux"]


def stand_in(folder: Path, compiler: Sequence[str], name: str = "stand_in_jvm") -> Path:
    """A stand-in for a JVM, compiled with a compiler (and its first options)."""
    target = folder / name
    source = str(ROOM / f"{name}.c")
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", *jdk_headers(), "-pthread", "-ldl"]
    subprocess.run([*compiler, "-o", str(target), source, *options], check=True)
    return target
