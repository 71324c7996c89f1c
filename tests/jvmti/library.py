"""The libraries under test, built from this checkout, and the programs that load it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.lab import attach, cache

ROOM = Path(__file__).parent
SOURCES = ROOM.parents[1] / "agents" / "jvmti"
MACHINES = {"x86_64": 62, "aarch64": 183}
BUILDS: dict[str, tuple[str, list[str], list[str]]] = {
    "glibc": ("x86_64", ["cc"], []),
    "musl": ("x86_64", ["musl-gcc"], []),
    "arm64": ("aarch64", ["aarch64-linux-gnu-gcc"], ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]),
}
"""Of stand-ins for a JVM: architecture, compiler, and the emulator, if any."""
PERFMAP, THREADNAMES = "perfmap", "threadnames"
FILES = {PERFMAP: "libhprofilerPerfmap.so", THREADNAMES: "libhprofilerThreadnames.so"}
STAND_INS = {PERFMAP: "stand_in_jvm.c", THREADNAMES: "stand_in_threads.c"}
ANYWHERE = ["glibc", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("musl", "arm64"))]
"""The builds, to parametrise a fixture."""


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


class StandIn:
    """A stand-in for a JVM that loads a library. The test is skipped where this build cannot be made."""

    def __init__(self, build: str, name: str, folder: Path) -> None:
        architecture, compiler, emulator = BUILDS[build]
        for tool in [*compiler, *emulator[:1]]:
            if not shutil.which(tool):
                pytest.skip(f"no {tool}")
        program = folder / "stand_in"
        options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", *jdk_headers(), "-pthread", "-ldl"]
        subprocess.run([*compiler, "-o", str(program), str(ROOM / STAND_INS[name]), *options], check=True)
        self.is_emulated, self.machine = bool(emulator), MACHINES[architecture]
        self._command = [*emulator, str(program), str(path(architecture, name))]

    def run(self, options: object, scenario: str = "") -> list[int]:
        """The results of Agent_OnAttach, and the number of things that were not given back."""
        command = [*self._command, str(options), scenario]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return list(map(int, done.stdout.split()))
