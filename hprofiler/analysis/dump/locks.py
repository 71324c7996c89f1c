"""Who holds the locks that others wait for, and deadlocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hprofiler.analysis.dump.reading import Looked, Reading, stage_of
from hprofiler.analysis.dump.result import Deadlock, DeadThread, Holder

_SHOWN = 20
# What a thread is parked for if it waits for a lock. Nobody owns a latch, a semaphore or a condition.
_OWNED = re.compile(r"java\.util\.concurrent\.locks\.(Reentrant(ReadWrite)?Lock\$.*|StampedLock)")


def locks_of(reading: Reading, looked: Looked) -> tuple[list[Deadlock], list[Holder]]:
    """The deadlocks of a process, and the locks that several wait for, of which the last owner runs on."""
    threads = looked.threads
    owners = {place: one.owner for place, one in enumerate(threads) if one.owner is not None}
    cycles = _cycles(owners)
    # The thread at the end of each chain, and who waits for it.
    behind: dict[int, list[int]] = {}
    for place in owners:
        end = place
        for _ in range(len(owners) + 1):
            if end not in owners or any(end in cycle for cycle in cycles):
                break
            end = owners[end]
        behind.setdefault(end, []).append(place)
    deadlocks = []
    for cycle in cycles:
        waiting = sum(len(behind.get(place, ())) for place in cycle) - len(cycle)
        dead = [_dead(reading, looked, place) for place in cycle]
        deadlocks.append(Deadlock(looked.process, tuple(dead), waiting))
    in_cycles = {place for cycle in cycles for place in cycle}
    holders = [
        _holder(reading, looked, end, waiters) for end, waiters in behind.items() if end not in in_cycles
    ]
    holders += _without_owner(looked, owners)
    return deadlocks, holders


def _cycles(owners: dict[int, int]) -> list[list[int]]:
    """The rings of a graph in which each has one owner at most."""
    seen: dict[int, int] = {}
    cycles = []
    for start in owners:
        path: list[int] = []
        at: int | None = start
        while at is not None and at not in seen:
            seen[at] = start
            path.append(at)
            at = owners.get(at)
        if at is not None and seen[at] == start and at in path:
            cycles.append(path[path.index(at) :])
    return cycles


def _dead(reading: Reading, looked: Looked, place: int) -> DeadThread:
    thread = looked.threads[place]
    _, lock, of = thread.waits or ("", "", "")
    return DeadThread(thread.name, lock, of, reading.kind(thread.group).wait)


def _holder(reading: Reading, looked: Looked, end: int, waiters: Sequence[int]) -> Holder:
    threads = looked.threads
    direct = [place for place in waiters if threads[place].owner == end]
    _, lock, of = threads[direct[0]].waits or ("", "", "")
    kind = reading.kind(threads[end].group)
    return Holder(
        looked.process,
        lock,
        of,
        threads[end].name,
        kind.wait,
        kind.frames,
        len(waiters),
        _tasks(looked, waiters),
        tuple(threads[place].name for place in waiters[:_SHOWN]),
    )


def _without_owner(looked: Looked, owners: dict[int, int]) -> list[Holder]:
    """Locks of java.util.concurrent that several wait for; the dump does not say who has them."""
    waiters: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(looked.threads):
        if place not in owners and one.waits is not None:
            how, lock, of = one.waits
            if how == "monitor" or (how == "park" and _OWNED.fullmatch(of)):
                waiters.setdefault((lock, of), []).append(place)
    return [
        Holder(
            looked.process,
            lock,
            of,
            None,
            None,
            (),
            len(places),
            _tasks(looked, places),
            tuple(looked.threads[place].name for place in places[:_SHOWN]),
        )
        for (lock, of), places in waiters.items()
        if len(places) > 1
    ]


def _tasks(looked: Looked, places: Sequence[int]) -> int:
    return sum(stage_of(looked.threads[place].name) is not None for place in places)
