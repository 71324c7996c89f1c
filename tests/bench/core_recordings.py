"""Recordings of a real JVM to measure readers on: made on this machine once, then kept in the cache.

The JVM compiles Java sources on two threads: deep stacks, thousands of methods, and the garbage collector and
the JIT at work beside them. Another state of this file or of its Java makes its own recordings.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.commands import BenchError
from tests.exact import jfr_recordings
from tests.lab.cache import CHECKOUT, root

JAVA = Path(__file__).parent / "java"
SOURCES = [JAVA, CHECKOUT / "tests/burners", CHECKOUT / "tests/exact/java"]
WARM_UP_ROUNDS = "400"
PERF_BYTES = "45M"
PERF_SCRIPT = ["perf", "script", "--force", "--no-inline", "-i"]
JFR_SECONDS = 30
JFR_INTERVAL = "200us"


def perf_data() -> Path:
    """`perf record` of the JVM with frame pointers, some 140,000 samples."""
    path = _folder() / "java.data"
    if not path.exists():
        _record_with_perf(path)
    return path


@contextlib.contextmanager
def perf_map(recording: Path) -> Iterator[None]:
    """The JVM's map of compiled code lies meanwhile where perf looks for it."""
    kept = next(recording.parent.glob("perf-*.map"))
    place = Path("/tmp", kept.name)
    if place.exists():
        raise BenchError(f"{place} is another process's; remove {recording} for a new recording")
    shutil.copyfile(kept, place)
    try:
        yield
    finally:
        place.unlink()


def perf_script(recording: Path) -> Path:
    """What `perf script` prints of it, in a file."""
    path = recording.with_suffix(".script")
    if not path.exists():
        with perf_map(recording), path.with_suffix(".part").open("wb") as out:
            subprocess.run([*PERF_SCRIPT, str(recording)], check=True, stdout=out, stderr=subprocess.DEVNULL)
        path.with_suffix(".part").replace(path)
    return path


def jfr() -> Path:
    """async-profiler's recording of the JVM. The newest converter that is published reads version 4.2."""
    path = _folder() / "java.jfr"
    if not path.exists():
        unfinished = path.with_suffix(".part")
        library = jfr_recordings.library("4.2")
        agent = f"-agentpath:{library}=start,event=cpu,interval={JFR_INTERVAL},jfr,file={unfinished}"
        with _compiling([agent]):
            time.sleep(JFR_SECONDS)
        unfinished.replace(path)
    return path


def classes() -> Path:
    """The compiled programs of `java/`."""
    folder = _folder() / "classes"
    if not folder.exists():
        unfinished = folder.with_suffix(".part")
        subprocess.run(["javac", "-d", str(unfinished), *map(str, JAVA.glob("*.java"))], check=True)
        unfinished.rename(folder)
    return folder


def _record_with_perf(path: Path) -> None:
    unfinished = path.with_suffix(".part")
    options = ["-q", "-N", "-F", "4999", "-e", "cpu-clock:u", "-g", f"--max-size={PERF_BYTES}"]
    options += ["-o", str(unfinished)]
    with _compiling(["-XX:+PreserveFramePointer"]) as jvm:
        command = ["perf", "record", *options, "-p", str(jvm.pid), "--", "sleep", "300"]
        done = subprocess.run(command, capture_output=True, text=True)
        # At the limit perf writes the file's end and then goes the way of its command, by SIGTERM.
        if done.returncode not in (0, -signal.SIGTERM):
            raise BenchError(f"{' '.join(command)}: {done.stderr}")
        subprocess.run(["jcmd", str(jvm.pid), "Compiler.perfmap"], check=True, capture_output=True)
        shutil.move(f"/tmp/perf-{jvm.pid}.map", path.parent)
    unfinished.replace(path)


@contextlib.contextmanager
def _compiling(flags: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The JVM, warm; ends, and has written what it has to, behind the block."""
    sources = [str(source) for folder in SOURCES for source in sorted(folder.glob("*.java"))]
    program = ["-cp", str(classes()), "Compiling", WARM_UP_ROUNDS]
    command = ["java", "-Xmx1g", *flags, *program, *sources]
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if jvm.stdout is None or "warm\n" not in jvm.stdout:
            raise BenchError("the JVM to record ended by itself")
        yield jvm
    finally:
        jvm.communicate(timeout=60)


def _folder() -> Path:
    sources = [Path(__file__), *sorted(JAVA.glob("*.java"))]
    contents = b"".join(source.read_bytes() for source in sources)
    folder = root() / "bench" / f"recordings-{hashlib.sha256(contents).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
