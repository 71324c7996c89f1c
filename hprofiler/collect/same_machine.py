"""A machine may be visited under several names, or as several users: which of its visits has a process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hprofiler.model import HostFacts, Outcome, Process, Status

_Key = tuple[str, str, str, int, int, int]


class _Holder(NamedTuple):
    """`rightful`: the visit runs as root or as the process's own user, so that it may record the process."""

    host: str
    rightful: bool


class Machines:
    """The visit that finds a process first has it; one that may record it takes it from one that may not.

    Of root and the process's own user the first keeps it, because it is at work on it already.
    Pids mean something within one pid namespace of one boot only: containers do not share their node's. Of a
    machine that reports neither nothing is known.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[_Key, _Holder] = {}

    def claim(self, facts: HostFacts | None, host: str, uid: int, processes: Sequence[Process]) -> None:
        """A visit to `host` as `uid` found these processes."""
        with self._lock:
            for process in processes:
                key = _key(facts, process)
                if key is None:
                    continue
                held = self._holders.get(key)
                rightful = uid in (0, process.uid)
                if held is None or held.host == host or (rightful and not held.rightful):
                    self._holders[key] = _Holder(host, rightful)

    def elsewhere(self, facts: HostFacts | None, processes: Sequence[Process]) -> dict[int, str]:
        """The host names whose visits have these processes, by pid, where that is not their own."""
        with self._lock:
            held = [(one, self._holders.get(key)) for one in processes if (key := _key(facts, one))]
        return {one.pid: holder.host for one, holder in held if holder and holder.host != one.host}


def _key(facts: HostFacts | None, process: Process) -> _Key | None:
    """What no other process has, on any host. Machines that were cloned while they ran share a boot id.

    The uid is part of it: nobody becomes a rightful holder by a false claim about a process's user.
    """
    if facts is None or not facts.boot_id or not facts.pid_namespace:
        return None
    return facts.boot_id, facts.pid_namespace, facts.name, process.uid, process.pid, process.start_time


def left_to_others(host: str, elsewhere: Mapping[int, str]) -> list[Outcome]:
    """A ledger line for each other name of the machine, with the number of processes left to it."""
    return [
        Outcome(
            host,
            Status.DEGRADED,
            "find",
            f"{'1 process is' if count == 1 else f'{count} processes are'} recorded as {other}, "
            "which is the same machine",
            "name the machine once",
        )
        for other, count in Counter(elsewhere.values()).items()
    ]


def settled(host: str, lines: Sequence[Outcome], elsewhere: Mapping[int, str]) -> tuple[Outcome, ...]:
    """The lines of a host's processes. A process that another visit has is not a failure of this one."""
    failed = {line.pid for line in lines if line.status is Status.FAILED}
    left = {pid: name for pid, name in elsewhere.items() if pid in failed}
    kept = [line for line in lines if line.pid not in left]
    idle = (
        [Outcome(host, Status.IDLE, "find", "nothing else to record", code="recorded-elsewhere")]
        if left and not kept
        else []
    )
    return (*kept, *left_to_others(host, left), *idle)
