"""One machine may be visited under several names, or as several users: which of its visits has a process."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from hprofiler.model import HostFacts, Outcome, Process, Status

_Key = Tuple[str, str, str, int, int]


class _Holder(NamedTuple):
    """`rightful` is who may record the process: root, or its own user."""

    host: str
    rightful: bool


class Machines:
    """Who found a process first has it; but whoever may record it takes it from one who may not.

    Numbers of processes mean something within one pid namespace of one boot only: containers are none of
    their node's, and of a machine that tells neither nothing is known.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: Dict[_Key, _Holder] = {}

    def take(self, facts: Optional[HostFacts], uid: int, processes: Sequence[Process]) -> Dict[int, str]:
        """Of those that another visit has its host, by pid; the others are the asking visit's from now on."""
        with self._lock:
            for process in processes:
                self._take(_key(facts, process), _Holder(process.host, uid in (0, process.uid)))
        return self.elsewhere(facts, processes)

    def _take(self, key: Optional[_Key], by: _Holder) -> None:
        held = self._holders.get(key) if key else None
        if key and (held is None or (by.rightful and not held.rightful)):
            self._holders[key] = by

    def elsewhere(self, facts: Optional[HostFacts], processes: Sequence[Process]) -> Dict[int, str]:
        """The hosts that have such of a visit's processes as are not its own, by pid."""
        with self._lock:
            holders = {one.pid: self._holders.get(key) for one in processes if (key := _key(facts, one))}
        names = {one.pid: held.host for one in processes if (held := holders.get(one.pid))}
        return {one.pid: names[one.pid] for one in processes if names.get(one.pid, one.host) != one.host}


def _key(facts: Optional[HostFacts], process: Process) -> Optional[_Key]:
    """What no other process has, on whatever host. Machines that were copied while they ran have one boot."""
    if facts is None or not facts.boot_id or not facts.pid_namespace:
        return None
    return facts.boot_id, facts.pid_namespace, facts.name, process.pid, process.start_time


def left_to_others(host: str, elsewhere: Mapping[int, str]) -> List[Outcome]:
    """A ledger line for each other name of the machine, with how many processes are left to it."""
    return [
        Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"{'1 process is' if count == 1 else f'{count} processes are'} left to {other}, "
            "which is the same machine",
            "name each machine once",
        )
        for other, count in Counter(elsewhere.values()).items()
    ]


def settled(host: str, lines: Sequence[Outcome], elsewhere: Mapping[int, str]) -> Tuple[Outcome, ...]:
    """The lines of a host's processes; what it failed to record and another visit has is no failure."""
    failed = {line.pid for line in lines if line.status is Status.FAILED}
    left = {pid: name for pid, name in elsewhere.items() if pid in failed}
    kept = [line for line in lines if line.pid not in left]
    idle = [Outcome(host, Status.IDLE, "find", "nothing is left to record")] if left and not kept else []
    return (*kept, *left_to_others(host, left), *idle)
