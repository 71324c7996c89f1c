"""A running burner: a JVM whose shares are known beforehand, and its own count of what it burnt."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.burners import build
from tests.lab import procs

Wrap = Callable[[Sequence[str]], list[str]]

HOT = {role: f"Burner.hot{role.capitalize()}" for role in ("alpha", "beta", "gamma", "alloc")}
"""The method that burns 70 % of a role's CPU time; Burner.warm burns 20 %, Burner.cool 10 %."""
PATHS = {
    "Burner.warm": ["Burner.work", "Burner$Warm.burn", "Burner.outer", "Burner.middle", "Burner.warm"],
    "Burner.cool": ["Burner.work", "Burner$Cool.burn", "Burner.cool"],
}
"""Callers, outermost first, that a stack ending in the method must show in this order."""


@dataclass(frozen=True)
class Counters:
    """What a burner says it burnt: CPU nanoseconds by method, and rounds its hot method went through."""

    hot: int
    warm: int
    cool: int
    rounds: int

    def __sub__(self, earlier: Counters) -> Counters:
        pairs = zip(self.tuple(), earlier.tuple(), strict=False)
        return Counters(*(later - before for later, before in pairs))

    def tuple(self) -> Sequence[int]:
        return (self.hot, self.warm, self.cool, self.rounds)

    @property
    def nanos(self) -> int:
        return self.hot + self.warm + self.cool


def arguments(
    java: str = "java",
    role: str = "alpha",
    load: float = 1.0,
    seconds: int = 0,
    options: Sequence[str] = (),
    extra: Sequence[str] = (),
    main: str = "Burner",
) -> list[str]:
    """The command line of a burner; `extra` words stand at its end for selectors to match.

    `main` may be another class that hands over to Burner, for selectors that go by the main class.
    """
    small = ["-Xmx48m", "-XX:+UseSerialGC"]
    program = [main, "--role", role, "--load", str(load)]
    timer = ["--seconds", str(seconds)] if seconds else []
    # the class path is not a part of the command line: a pipe such as `grep -v root` would judge by it
    return ["env", f"CLASSPATH={build.classes()}", java, *small, *options, *program, *timer, *extra]


class Program:
    """A running program of `tests/burners`; it ends with its stdin, so never outlives this process.

    `argv` writes `ready pid=N` when it is under way. `wrap` makes the command that enters another machine
    from the command to run there; without it the program runs here. `pid` is its pid as its own pid
    namespace counts, `outer` its identity as this process sees it; `other_lines` is what it wrote on stdout
    that is not an answer, as far as was read.
    """

    def __init__(self, argv: Sequence[str], wrap: Wrap | None = None) -> None:
        self.process = subprocess.Popen(
            wrap(argv) if wrap else argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._is_here = wrap is None
        self.other_lines: list[str] = []
        self._unread = b""
        self.pid = int(self._line("ready pid=")[len("ready pid=") :])
        # nsenter stays behind as the parent of what it started in another pid namespace
        outer = procs.Identity.of(procs.children(self.process.pid)[0] if wrap else self.process.pid)
        if outer is None:
            raise RuntimeError("the burner ended while it started")
        self.outer = outer

    def ask(self, start: str) -> str:
        """Its answer to a line on stdin, which starts so."""
        _pipe(self.process.stdin).write(b"\n")
        return self._line(start)

    def last(self, start: str) -> str:
        """End it; its last words, which start so."""
        _pipe(self.process.stdin).close()
        last = self._line(start)
        self._go_on()
        self.process.wait(procs.PATIENCE)
        _pipe(self.process.stdout).close()
        return last

    def kill(self) -> None:
        """End it whatever its state; harmless when it has ended.

        A JVM that is killed leaves its attach socket, which nobody can attach past to a later JVM of another
        user that gets its number. Of one that was killed before only the folders of this machine are known.
        """
        folders = [f"/proc/{self.outer.pid}/root/tmp", *(["/tmp"] if self._is_here else [])]
        for folder in folders:
            with suppress(OSError):
                Path(folder, f".java_pid{self.pid}").unlink()
        self.outer.kill()
        self._go_on()
        for pipe in (self.process.stdin, self.process.stdout):
            _pipe(pipe).close()
        self.process.wait(procs.PATIENCE)

    def _go_on(self) -> None:
        """Where it stood still for a while nsenter did, too, and does so still."""
        self.process.send_signal(signal.SIGCONT)

    def _line(self, start: str, timeout: float = procs.PATIENCE) -> str:
        """The next line that starts so; others (the JVM's own, a profiler's) are passed over."""
        end, pipe = time.monotonic() + timeout, _pipe(self.process.stdout)
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                if line.startswith(start.encode()):
                    return line.decode()
                self.other_lines.append(line.decode("utf-8", "replace"))
                continue
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"the burner did not say {start!r} within {timeout:g} s")
            chunk = os.read(pipe.fileno(), 65536)
            if not chunk:
                raise RuntimeError(f"the burner ended before it said {start!r}")
            self._unread += chunk


class Burner(Program):
    """A JVM that burns CPU time. `options` are those of `arguments`, `wrap` is that of `Program`."""

    def __init__(self, role: str = "alpha", wrap: Wrap | None = None, **options: Any) -> None:
        super().__init__(arguments(role=role, **options), wrap)
        self.role = role

    def counters(self) -> Counters:
        """Its counters as of now."""
        return _parse(self.ask("hot="))

    def burn(self, nanos: float) -> Counters:
        """Wait until it has burnt so much more CPU time, however busy the machine is; what it burnt."""
        before = self.counters()
        procs.wait_for("CPU time of a burner", lambda: (self.counters() - before).nanos > nanos)
        return self.counters() - before

    def finish(self) -> Counters:
        """End it; its last counters."""
        return _parse(self.last("hot="))


def _parse(line: str) -> Counters:
    values = dict(word.split("=") for word in line.split())
    return Counters(*(int(values[name]) for name in ("hot", "warm", "cool", "rounds")))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
