"""Adds up the threads of all processes, and says what matters most."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hprofiler.analysis.dump.locks import locks_of
from hprofiler.analysis.dump.movement import Movement
from hprofiler.analysis.dump.reading import Kind, Looked, Reading, stage_of
from hprofiler.analysis.dump.result import (
    BUSY,
    DEADLOCK,
    DIFFERS,
    HOLDER,
    MOST,
    NOTHING,
    SILENT,
    UNMOVED,
    Deadlock,
    DumpAnalysis,
    Group,
    Headline,
    Holder,
    Most,
    Odd,
    Silent,
    Still,
    TaskCount,
    ThreadOf,
)
from hprofiler.analysis.waits import RUNNING, Wait
from hprofiler.runfolder.dumps import DumpFolder

_NAMES = 5
# So many waiters make a lock what matters most.
_MANY = 3
# So many threads have something in common.
_SEVERAL = 2
# So many processes of a kind show which one is different.
_LEAST_ALIKE = 3


@dataclass
class _Sum:
    first: ThreadOf
    threads: int = 0
    processes: set[tuple[str, int]] = field(default_factory=set)
    tasks: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Process:
    """What is kept of a process."""

    process: ThreadOf
    looks: int
    seconds: float
    waits: Mapping[Wait, tuple[ThreadOf, Kind, int]]


def analyse(folder: DumpFolder) -> DumpAnalysis:
    """Read all texts of a dump. One that cannot be read is named in `unreadable`."""
    reading = Reading()
    record = folder.record
    groups: dict[Kind, _Sum] = {}
    movement = Movement(reading)
    processes: list[_Process] = []
    counts = []
    deadlocks: list[Deadlock] = []
    holders: list[Holder] = []
    # Threads of one process at a time are in memory.
    for looked in reading.processes(folder):
        counts.append((looked.process, _add(reading, looked, groups)))
        dead, held = locks_of(reading, looked)
        deadlocks += dead
        holders += held
        movement.add(looked)
        waits = _waits(reading, looked)
        processes.append(_Process(looked.process, len(looked.moments), looked.seconds, waits))
    unmoved, busy = movement.unmoved, movement.busy
    rows = sorted((_group(kind, one) for kind, one in groups.items()), key=_weight)
    odd = _odd(processes)
    holders.sort(key=lambda one: (-one.tasks, -one.waiting))
    deadlocks.sort(key=lambda one: -len(one.threads) - one.waiting)
    tasks = sum(one.tasks for row in rows for one in row.tasks)
    most = _most(groups, bool(tasks))
    silent = sorted(reading.silent, key=lambda one: not one.hangs)
    code = _headline(silent, deadlocks, holders, unmoved, most, tasks, odd, busy)
    return DumpAnalysis(
        processes=record.processes,
        dumped=len(processes),
        hosts=len(record.hosts),
        threads=sum(row.threads for row in rows),
        idle=sum(row.threads for row in rows if row.idle),
        tasks=tasks,
        looks=max((one.looks for one in processes), default=0),
        seconds=max((one.seconds for one in processes), default=0.0),
        owners=record.owners,
        headline=Headline(code),
        groups=rows,
        most=most,
        deadlocks=deadlocks,
        holders=holders,
        unmoved=unmoved,
        busy=busy,
        odd=odd,
        silent=silent,
        outcomes=[one for host in record.hosts for one in host.outcomes],
        unreadable=reading.unreadable,
        stacks=reading.stacks,
        counts=counts,
    )


def _add(reading: Reading, looked: Looked, groups: dict[Kind, _Sum]) -> list[tuple[int, str, int]]:
    """Adds a process to the groups. Returns its threads by group and name."""
    counted: Counter[tuple[int, str]] = Counter()
    key = (looked.process.host, looked.process.pid)
    for place, thread in enumerate(looked.threads):
        name = thread.group_name
        counted[thread.group, name] += 1
        kind = reading.kind(thread.group)
        one = groups.get(kind)
        if one is None:
            one = groups[kind] = _Sum(looked.thread(place))
        one.threads += 1
        one.processes.add(key)
        one.names[name] += 1
        stage = stage_of(thread.name)
        if stage is not None:
            one.tasks[stage] += 1
    return [(group, name, count) for (group, name), count in counted.items()]


def _group(kind: Kind, one: _Sum) -> Group:
    return Group(
        kind.wait,
        kind.idle,
        kind.frames,
        one.threads,
        len(one.processes),
        tuple(TaskCount(stage, tasks) for stage, tasks in one.tasks.most_common()),
        tuple(one.names.most_common(_NAMES)),
        one.first,
    )


def _weight(group: Group) -> tuple[bool, int, int]:
    """Idle groups come last, tasks first."""
    return group.idle, -sum(one.tasks for one in group.tasks), -group.threads


def _waits(reading: Reading, looked: Looked) -> dict[Wait, tuple[ThreadOf, Kind, int]]:
    """What the threads of a process wait for: the first of them, its stack, and how many there are."""
    found: dict[Wait, tuple[ThreadOf, Kind, int]] = {}
    for place, thread in enumerate(looked.threads):
        kind = reading.kind(thread.group)
        if kind.frames and not kind.idle and kind.wait.code != RUNNING:
            first, stack, count = found.get(kind.wait) or (looked.thread(place), kind, 0)
            found[kind.wait] = (first, stack, count + 1)
    return found


def _odd(processes: Sequence[_Process]) -> list[Odd]:
    """Of several processes of one kind the only one with a wait that no other of them has."""
    families: dict[str, list[_Process]] = {}
    for one in processes:
        families.setdefault(re.sub(r"\d+", "N", one.process.label), []).append(one)
    odd = []
    for family in families.values():
        seen = Counter(wait for one in family for wait in one.waits)
        alone = [(one, [wait for wait in one.waits if seen[wait] == 1]) for one in family]
        different = [(one, waits) for one, waits in alone if waits]
        if len(family) < _LEAST_ALIKE or len(different) != 1:
            continue
        [(one, waits)] = different
        first, kind, threads = max((one.waits[wait] for wait in waits), key=lambda found: found[2])
        odd.append(Odd(first, kind.wait, kind.frames, threads, len(family) - 1))
    return odd


def _most(groups: Mapping[Kind, _Sum], tasks: bool) -> Most | None:
    """What more than half of all tasks do; without tasks, of all threads that are not idle."""
    by_wait: dict[Wait, list[_Sum]] = {}
    for kind, one in groups.items():
        if not kind.idle and (one.tasks or not tasks):
            by_wait.setdefault(kind.wait, []).append(one)

    def count(sums: Sequence[_Sum]) -> int:
        return sum(one.tasks.total() if tasks else one.threads for one in sums)

    whole = sum(map(count, by_wait.values()))
    wait, sums = max(by_wait.items(), key=lambda one: count(one[1]), default=(None, []))
    if wait is None or (not tasks and count(sums) < _SEVERAL) or 2 * count(sums) <= whole:
        return None
    of_stages = sum((one.tasks for one in sums), Counter[str]())
    return Most(
        wait,
        count(sums),
        len(set().union(*(one.processes for one in sums))),
        tuple(TaskCount(stage, number) for stage, number in of_stages.most_common()),
    )


def _headline(
    silent: Sequence[Silent],
    deadlocks: Sequence[Deadlock],
    holders: Sequence[Holder],
    unmoved: Sequence[Still],
    most: Most | None,
    tasks: int,
    odd: Sequence[Odd],
    busy: Sequence[Still],
) -> str:
    if deadlocks:
        return DEADLOCK
    if holders and holders[0].waiting >= _MANY:
        return HOLDER
    if silent and silent[0].hangs:
        return SILENT
    burns = any(one.of_program for one in busy)
    stuck = next((one for one in unmoved if one.wait.code != RUNNING), None)
    if stuck and not stuck.rest and (stuck.tasks or (not tasks and not odd)):
        return UNMOVED
    if stuck and stuck.rest and burns and not tasks and not odd:
        return BUSY
    if most and (tasks or not odd):
        return MOST
    if odd:
        return DIFFERS
    if burns:
        return BUSY
    return SILENT if silent else NOTHING
