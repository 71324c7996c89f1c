"""A machine may be visited under several names: which of its visits has a process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from hprofiler.model import HostFacts, Outcome, Process, Status


class Machines:
    """The visit that finds a process first has it.

    Pids mean something within one pid namespace of one boot only: containers do not share their node's. Of a
    machine that reports neither nothing is known. Machines that were cloned while they ran share a boot id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[tuple[str, str, str, int, int, int], str] = {}

    def claim(self, facts: HostFacts | None, host: str, processes: Sequence[Process]) -> dict[int, str]:
        """A visit to `host` found these processes: the hosts whose visits have them, where it is another."""
        if facts is None or not facts.boot_id or not facts.pid_namespace:
            return {}
        machine = facts.boot_id, facts.pid_namespace, facts.name
        with self._lock:
            holders = {
                one.pid: self._holders.setdefault((*machine, one.uid, one.pid, one.start_time), host)
                for one in processes
            }
        return {pid: holder for pid, holder in holders.items() if holder != host}


def left_to_others(host: str, elsewhere: Mapping[int, str]) -> list[Outcome]:
    """A ledger line for each other name of the machine, with the number of processes left to it."""
    return [
        Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"{'1 process is' if count == 1 else f'{count} processes are'} recorded as {other}, "
            "which is the same machine",
            "if that is not meant, name the machine once",
            code="recorded-elsewhere",
        )
        for other, count in Counter(elsewhere.values()).items()
    ]
