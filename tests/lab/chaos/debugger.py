"""A debugger at a JVM: jdb, which holds all of its threads."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tests.lab import procs

PORT = 8000
OPTION = f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:{PORT}"
"""What the JVM is started with."""
_SMALL = ("-J-Xmx64m", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData")


def jdb() -> str:
    """The one beside the compiler. FileNotFoundError where there is no JDK."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise FileNotFoundError("javac")
    return str(Path(compiler).resolve().with_name("jdb"))


class JvmGone(Exception):
    """There is no JVM any more, or none of these; the text is what jdb said."""


class Debugger:
    """jdb, connected; `prefix` enters the JVM's network. It ends with its stdin, and the JVM goes on."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        command = [*prefix, jdb(), *_SMALL, "-attach", f"127.0.0.1:{PORT}"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )
        try:
            self._expect("\n> ")
        except BaseException:
            self.kill()
            raise

    def hold(self) -> None:
        """Suspend all threads."""
        self._command("suspend", "All threads suspended")

    def kill(self) -> None:
        """End it, whether or not the JVM is there any more: its threads go on."""
        self.process.kill()
        self.process.wait(procs.PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            _pipe(pipe).close()

    def _command(self, words: str, answer: str) -> None:
        """JvmGone when it is."""
        with contextlib.suppress(BrokenPipeError):  # its last words say why
            _pipe(self.process.stdin).write(f"{words}\n".encode())
        self._expect(answer)

    def _expect(self, answer: str) -> None:
        said, pipe, end = "", _pipe(self.process.stdout).fileno(), time.monotonic() + procs.PATIENCE
        while answer not in said:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"jdb did not say {answer!r} but {said!r}")
            chunk = os.read(pipe, 65536)
            if not chunk:
                raise JvmGone(f"jdb ended before it said {answer!r}: {said!r}")
            said += chunk.decode("utf-8", "replace")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
