"""Machines with several names: which visit records a process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from hprofiler.model import HostFacts, Outcome, Process, Status


class Machines:
    """The visit that finds a process first records it.

    A pid is unique only within a pid namespace and a boot. Without these, nothing is known. Machines that
    were cloned while running share a boot id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[tuple[str, str, str, int, int, int], str] = {}

    def claim(self, facts: HostFacts | None, host: str, processes: Sequence[Process]) -> dict[int, str]:
        """Register the processes that a visit found; returns the hosts of those that another visit
        records."""
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
    """An outcome for each other name of the machine, with its number of processes."""
    return [
        Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"{'1 process is' if count == 1 else f'{count} processes are'} recorded as {other}, "
            "which is the same machine",
            "to avoid this, name the machine only once",
            code="recorded-elsewhere",
        )
        for other, count in Counter(elsewhere.values()).items()
    ]
