"""Processes from /proc: identity that survives pid reuse, namespaces, waiting."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a wait fails, enough for a busy machine."""


@dataclass(frozen=True)
class Identity:
    """A process. `start_time` (clock ticks since boot) distinguishes it from later ones with the same pid."""

    pid: int
    start_time: int

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """None if there is no such process, or only its zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def suspend(self) -> None:
        """Stop it (SIGSTOP) and wait until it is stopped."""
        self.kill(signal.SIGSTOP)
        wait_for(f"process {self.pid} standing still", lambda: status(self.pid)["State"][0] in "Tt")

    def kill(self, sig: int = signal.SIGKILL, timeout: float = PATIENCE) -> None:
        """Signal exactly this process and, for SIGKILL and SIGTERM, wait until it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if not self.alive():
                return
            signal.pidfd_send_signal(handle, sig)
            if sig in (signal.SIGKILL, signal.SIGTERM) and not select.select([handle], [], [], timeout)[0]:
                raise TimeoutError(f"process {self.pid} still runs {timeout:g} s after signal {sig}")
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Seen:
    """A process of a lab host: its pid outside and inside, its user and its command line."""

    pid: int
    inner_pid: int
    uid: int
    command: str


def inside(namespace: str) -> Iterator[Seen]:
    """Every process of a pid namespace (`pid:[…]`, as in /proc/PID/ns/pid)."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if namespace_of(int(entry.name)) != namespace:
                continue
            facts = status(int(entry.name))
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it ended while we looked
        text = command.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
        yield Seen(int(entry.name), int(facts["NSpid"][-1]), int(facts["Uid"][0]), text)


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    return [pid, *(member for child in children(pid) for member in family(child))]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; 0 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def page_faults(pid: int) -> int:
    """Page faults of a process so far, as getrusage counts them. OSError when it is gone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


def context_switches(pid: int) -> int:
    """The voluntary and involuntary context switches of a process's current threads."""
    found = 0
    for thread in threads(pid):
        with suppress(OSError):  # it ended while we looked
            text = Path(f"/proc/{pid}/task/{thread}/status").read_text()
            found += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", text)))
    return found


def namespace_of(pid: int, kind: str = "pid") -> str:
    """The namespace of a process, as `pid:[4026531836]`. OSError when the process is gone."""
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def status(pid: int) -> dict[str, list[str]]:
    """/proc/PID/status: the words after each name. OSError when the process is gone."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def children(pid: int) -> list[int]:
    """Pids of a process's children, of all its threads; none when it is gone."""
    found: list[int] = []
    for thread in threads(pid):
        with suppress(OSError):  # the thread ended while we looked
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def threads(pid: int) -> list[int]:
    """The ids of a process's threads; none when it is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def thread_names(pid: int) -> list[str]:
    """The names of a process's threads as the kernel cuts them, without those that end meanwhile."""
    names = []
    for thread in threads(pid):
        with suppress(OSError):
            names.append(Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip())
    return names


def name(pid: int) -> str:
    """The name of the process's main thread; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:
        return ""


def wait_for(what: str, probe: Callable[[], T | None], timeout: float = PATIENCE) -> T:
    """The probe's first true value. TimeoutError names `what` and the last value.

    For events without a notification.
    """
    end, pause = time.monotonic() + timeout, 0.005
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {timeout:g} s (last seen: {value!r})")
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
