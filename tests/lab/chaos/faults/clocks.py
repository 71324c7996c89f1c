"""Clocks that are off by an hour.

A machine has one wall clock, and this one's is not to be set. So it is the coordinator whose wall clock is
off against all hosts: a library before libc answers for it. The clock that counts from boot has
namespaces: a host's sshd, and with it the agent, is an hour ahead of the JVM there.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab import cache, procs
from tests.lab.chaos.fault import BEFORE, Circumstances, Fault, Moment
from tests.lab.coordinator import Running

SOURCE = Path(__file__).parents[1] / "clock_off.c"
HOUR = 3600
_SSHD_PID = "/run/sshd.pid"


def clock_library() -> Path:
    """The library, compiled once."""

    def compiled(folder: Path) -> None:
        output = str(folder / "clock_off.so")
        subprocess.run(["gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", output, str(SOURCE)], check=True)

    return cache.made(cache.folder("chaos"), "clock_off", SOURCE.read_bytes(), compiled) / "clock_off.so"


class WallClockOff(Fault):
    """The coordinator's wall clock is an hour off from the start, or set by an hour in the middle."""

    name = "clock off by an hour"

    def choose_moment(self) -> Moment | None:
        self._off = self.chance.choice((-HOUR, HOUR))
        self._after = self.chance.choice((0, 1, 2, 3))
        return BEFORE

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.environment.update(
            LD_PRELOAD=str(clock_library()), CLOCK_OFF=str(self._off), CLOCK_OFF_AFTER=str(self._after)
        )

    def begin(self, running: Running | None) -> None:
        """The environment does it."""

    def where(self) -> str:
        return f"the coordinator, by {self._off:+} s after {self._after} s"


class BootClockOff(Fault):
    """What is started on a host by ssh counts an hour more since boot than the JVM does."""

    name = "boot clock off by an hour"

    def choose_moment(self) -> Moment | None:
        return BEFORE

    def begin(self, running: Running | None) -> None:
        hour = str(HOUR)
        self._restart(["unshare", "--time", "--boottime", hour, "--monotonic", hour, "--fork"])

    def end(self) -> None:
        if self.struck:
            self._restart([])

    def _restart(self, prefix: list[str]) -> None:
        """Start the host's sshd anew, `prefix` before it; sessions go on."""
        host = self.ground.host(self.host)
        file = host.path(_SSHD_PID)
        old = file.read_text().strip()
        host.run(["sh", "-c", f"kill {old}; rm -f {_SSHD_PID}"])
        host.run([*prefix, "/usr/sbin/sshd", "-E", "/var/log/sshd.log"])
        procs.wait_for("sshd", lambda: file.exists() and bool(file.read_text()))
        number = int(file.read_text())
        for seen in host.processes():
            if seen.inner_pid == number:
                self.ground.witness.adopt(host, seen.pid)


FAULTS: list[type[Fault]] = [WallClockOff, BootClockOff]
