"""The sample job: two JVMs with different hot methods, alive inside `with running_job()`.

They hold the other end of a pipe, so they end with this process, and after ten minutes at most.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hprofiler.app.demo.jdk import find_jdk
from hprofiler.base.errors import HprofilerError

SELECTOR = "hprofiler-demo"
SOURCE = Path(__file__).with_name("OrderJob.java")
MAIN_CLASS = "com.example.orders.OrderJob"
JVM_OPTIONS = ("-Xms64m", "-Xmx64m", "-XX:+UseSerialGC")
# The method below which each role spends most of its CPU time.
HOT_METHODS: dict[str, str] = {
    "parse": "com.example.orders.OrderParser.cleanField",
    "enrich": "com.example.orders.OrderEnricher.describe",
}
COMPILE_SECONDS = 60.0
START_SECONDS = 60.0
END_SECONDS = 5.0
_ERROR_TAIL_BYTES = 2000


@dataclass(frozen=True)
class DemoProcess:
    """One JVM of the job."""

    role: str
    pid: int


@dataclass(frozen=True)
class DemoJob:
    """The running job: profile it with `selector`, and of what that matches the JVMs whose options match
    `options`. `jdk` is the home of the JDK that runs it."""

    selector: str
    options: str
    jdk: Path
    processes: tuple[DemoProcess, ...]


@contextmanager
def running_job(listener: Callable[[str], None] = lambda step: None) -> Iterator[DemoJob]:
    """Compile and start the job, yield it once both JVMs are warm, then end them; `listener` gets each step.

    UsageError without a JDK; HprofilerError with the JVM's output if it does not compile or start.
    """
    jdk = find_jdk()
    with ExitStack() as stack:
        # A warm JVM has read all its classes, so the folder can go now and is not left behind by a kill.
        with tempfile.TemporaryDirectory(prefix="hprofiler-demo-") as name:
            folder = Path(name)
            listener(f"compiling a small job with {jdk}")
            _compile(jdk, folder)
            listener("starting it, and waiting until it is hot")
            jvms = {role: stack.enter_context(_running_jvm(jdk, folder, role)) for role in HOT_METHODS}
            deadline = time.monotonic() + START_SECONDS
            for role, jvm in jvms.items():
                _wait_until_ready(jvm, _errors(folder, role), deadline)
        processes = (DemoProcess(role, jvm.pid) for role, jvm in jvms.items())
        yield DemoJob(SELECTOR, rf"{re.escape(_mark())}(\s|$)", jdk, tuple(processes))


def _mark() -> str:
    """The option that the JVMs of another demo do not have."""
    return f"-Dhprofiler.demo={os.getpid()}"


def _compile(jdk: Path, folder: Path) -> None:
    # One compiler tier and no annotation processing halve the time.
    javac = [
        str(jdk / "bin" / "javac"),
        "-J-XX:TieredStopAtLevel=1",
        "-proc:none",
        "-g",
        "-encoding",
        "UTF-8",
    ]
    try:
        done = subprocess.run(
            [*javac, "-d", str(folder), str(SOURCE)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HprofilerError(
            f"{javac[0]} did not run: {error}", "set JAVA_HOME to a JDK that works"
        ) from error
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip()[-_ERROR_TAIL_BYTES:]
        raise HprofilerError(
            f"{javac[0]} could not compile the sample job: {said}", "set JAVA_HOME to another JDK"
        )


@contextmanager
def _running_jvm(jdk: Path, folder: Path, role: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        str(jdk / "bin" / "java"),
        *JVM_OPTIONS,
        _mark(),
        "-cp",
        str(folder),
        MAIN_CLASS,
        "--role",
        role,
    ]
    with _errors(folder, role).open("wb") as errors:
        # In its own session, so that Ctrl-C reaches only the profiler, which still needs the JVM.
        jvm = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
        )
    try:
        yield jvm
    finally:
        _end(jvm)


def _end(jvm: subprocess.Popen[bytes]) -> None:
    """Close the JVM's pipe, which ends it, or kill it."""
    assert jvm.stdout is not None
    try:
        jvm.stdout.close()
        jvm.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if jvm.poll() is None:
            jvm.kill()
            jvm.wait()


def _wait_until_ready(jvm: subprocess.Popen[bytes], errors: Path, deadline: float) -> None:
    assert jvm.stdout is not None
    said = b""
    while b"ready" not in said.splitlines():
        readable, _, _ = select.select([jvm.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise HprofilerError(f"the sample job was not ready within {START_SECONDS:.0f} s", "try again")
        chunk = os.read(jvm.stdout.fileno(), 4096)
        if not chunk:
            tail = errors.read_bytes()[-_ERROR_TAIL_BYTES:].decode(errors="replace").strip()
            raise HprofilerError(f"the sample job ended at its start: {tail}", "set JAVA_HOME to another JDK")
        said += chunk


def _errors(folder: Path, role: str) -> Path:
    return folder / f"{role}.stderr"
