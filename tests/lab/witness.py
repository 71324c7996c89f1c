"""Checks that nothing is left on the hosts: processes, files, sockets, running profilers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.burners.burner import Burner
from tests.lab import attach, procs
from tests.lab.hosts import Host

PRIVATE_FOLDER = re.compile(
    r"(/(tmp|var/tmp|dev/shm)/\.hprofiler-\d+|/home/\w+/\.cache(/hprofiler)?)(/(agent-)?[0-9a-f]{64})?"
)
"""What may stay between runs, according to agents/PROTOCOL.md."""
OF_THE_JVM = re.compile(r"/tmp/(\.java_pid\d+|hsperfdata_\w+(/\d+)?)")
"""Files that a JVM makes in /tmp, by itself or for an attach, and removes when it ends."""
_LISTENS = "0A"


class Witness:
    """Remembers the state of hosts, and finds what is new since then."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self.hosts = list(hosts)
        self._processes: dict[str, set[int]] = {}
        self._files: dict[str, set[str]] = {}
        self._sockets: dict[str, set[str]] = {}
        for host in self.hosts:
            self._processes[host.name] = {process.pid for process in host.processes()}
            self._files[host.name] = host.temporary_files()
            self._sockets[host.name] = sockets(host)

    def expect(self, host: str, pid: int) -> None:
        """A process that is meant to stay there was started meanwhile."""
        self._processes[host].add(pid)

    def leftovers(self) -> list[str]:
        """New processes, files and sockets, each with its host; empty if the hosts are clean."""
        looks = (self._new_processes, self._new_files, self._new_sockets)
        return [left for host in self.hosts for look in looks for left in look(host)]

    def wait_until_clean(self, timeout: float = procs.PATIENCE) -> None:
        """Wait until nothing new is left; TimeoutError lists the leftovers."""
        try:
            procs.wait_for("clean hosts", lambda: not self.leftovers(), timeout)
        except TimeoutError as late:
            left = "\n".join(self.leftovers())
            raise TimeoutError(f"after {timeout:g} s the hosts still have\n{left}") from late

    def _new_processes(self, host: Host) -> list[str]:
        known = self._processes[host.name]
        return [f"{host.name}: process {process}" for process in host.processes() if process.pid not in known]

    def _new_files(self, host: Host) -> list[str]:
        new = sorted(host.temporary_files() - self._files[host.name])
        return [f"{host.name}: file {path}" for path in new if not _may_stay(path)]

    def _new_sockets(self, host: Host) -> list[str]:
        new = sorted(sockets(host) - self._sockets[host.name])
        return [f"{host.name}: socket {name}" for name in new]


def sockets(host: Host) -> set[str]:
    """Listening TCP ports and abstract unix sockets.

    Unix sockets with a path are files.
    """
    network = Path(f"/proc/{host.init.pid}/net")
    found = set()
    for protocol in ("tcp", "tcp6"):
        for line in (network / protocol).read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if state == _LISTENS:
                found.add(f"{protocol} port {int(local.rpartition(':')[2], 16)}")
    names = [line.split()[7:] for line in (network / "unix").read_text().splitlines()[1:]]
    return found | {f"unix {name[0]}" for name in names if name and name[0].startswith("@")}


def _may_stay(path: str) -> bool:
    return bool(PRIVATE_FOLDER.fullmatch(path) or OF_THE_JVM.fullmatch(path))


def active_profilers(burners: Iterable[Burner]) -> list[str]:
    """The status of profilers in JVMs that are not inactive."""
    answers = [
        (burner, attach.profiling_status(burner.outer.pid, library))
        for burner in burners
        for library in attach.profiler_libraries(burner.outer.pid)
    ]
    return [f"pid {burner.pid}: {answer}" for burner, answer in answers if "not active" not in answer]
