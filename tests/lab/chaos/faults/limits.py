"""Limits of what sshd starts on a host: files, memory, processes."""

from __future__ import annotations

import contextlib
import os
import random
import resource
from pathlib import Path

from tests.lab import procs
from tests.lab.chaos.fault import BEFORE, Circumstances, Excuse, Fault, Moment
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running

CONTROL_GROUPS = Path("/sys/fs/cgroup")
USER, UID = "yarn", 2001
"""Who the JVMs belong to."""


class _Limited(Fault):
    def choose_moment(self) -> Moment | None:
        return BEFORE  # a session has what sshd had when it was started

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}))


class FewFiles(_Limited):
    """What sshd starts may open a few files only."""

    name = "few files"
    limit = resource.RLIMIT_NOFILE
    least, most = 6, 40

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self._amount = chance.randint(self.least, self.most)
        self._usual: list[tuple[int, tuple[int, int]]] = []

    def begin(self, running: Running | None) -> None:
        for pid in listeners(self.ground, self.host):
            usual = resource.prlimit(pid, self.limit)
            self._usual.append((pid, usual))
            resource.prlimit(pid, self.limit, (self.allowed(), usual[1]))

    def end(self) -> None:
        for pid, usual in self._usual:
            with contextlib.suppress(ProcessLookupError):  # another fault started sshd anew
                resource.prlimit(pid, self.limit, usual)

    def allowed(self) -> int:
        """The number of the limit."""
        return self._amount

    def where(self) -> str:
        return f"{self.host}, {self._amount}"


class LittleAddressSpace(FewFiles):
    """What sshd starts may have little memory, by its own limit."""

    name = "little memory"
    limit = resource.RLIMIT_AS
    least, most = 20 << 20, 120 << 20


class FewProcesses(FewFiles):
    """What sshd starts may start a few processes and threads only; not for root, who is above that."""

    name = "few processes"
    limit = resource.RLIMIT_NPROC
    least, most = 0, 20

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.options += ["--user", USER]

    def begin(self, running: Running | None) -> None:
        self._there = tasks_of(UID)  # the kernel counts all that the user has on this machine
        super().begin(running)

    def allowed(self) -> int:
        return self._there + self._amount


class _ControlGroup(_Limited):
    """What sshd starts is in a control group that has a limit."""

    controller = ""
    file = ""
    least, most = 0, 0

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.amount = chance.randint(self.least, self.most)
        self._home = CONTROL_GROUPS / self.controller
        self._group = self._home / f"hprofiler-chaos-{os.getpid()}"
        self._moved: list[tuple[int, Path]] = []

    def begin(self, running: Running | None) -> None:
        if not self._home.is_dir():
            self.struck = False  # another kind of control groups: the limits above have to do
            return
        self._group.mkdir()
        (self._group / self.file).write_text(str(self.amount))
        for pid in listeners(self.ground, self.host):
            groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
            own = next(line.split(":", 2)[2] for line in groups if line.split(":")[1] == self.controller)
            self._moved.append((pid, self._home / own.lstrip("/")))
            (self._group / "cgroup.procs").write_text(str(pid))

    def end(self) -> None:
        for pid, home in self._moved:
            with contextlib.suppress(ProcessLookupError):
                (home / "cgroup.procs").write_text(str(pid))
        if self._group.is_dir():
            procs.wait_for("the end of what ran in the control group", self._is_gone)

    def _is_gone(self) -> bool:
        with contextlib.suppress(OSError):  # sessions are about to end
            self._group.rmdir()
        return not self._group.is_dir()


class LittleMemory(_ControlGroup):
    """What sshd starts may have little memory; the kernel kills what takes more."""

    name = "out of memory"
    controller, file = "memory", "memory.limit_in_bytes"
    least, most = 4 << 20, 24 << 20

    def where(self) -> str:
        return f"{self.host}, {self.amount >> 20} MiB"


class FewThreads(_ControlGroup):
    """sshd and what it starts may be so many processes and threads; root is not above that."""

    name = "few threads"
    controller, file = "pids", "pids.max"
    least, most = 2, 24

    def where(self) -> str:
        return f"{self.host}, {self.amount}"


def tasks_of(uid: int) -> int:
    """Processes and threads of a user on this machine."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            facts = procs.status(int(process.name))
            found += int(facts["Threads"][0]) if int(facts["Uid"][0]) == uid else 0
    return found


def listeners(ground: Ground, host: str) -> list[int]:
    """The sshd that starts a host's sessions."""
    seen = ground.host(host).processes()
    return [process.pid for process in seen if process.command.startswith("sshd: /usr/sbin/sshd")]


FAULTS: list[type[Fault]] = [FewFiles, LittleAddressSpace, FewProcesses, LittleMemory, FewThreads]
