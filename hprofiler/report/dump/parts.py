"""The tables of a dump: lines in a terminal, sections in a page."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.analysis.dump import Deadlock, DumpAnalysis, Group, Holder, Still
from hprofiler.analysis.words import shown_name
from hprofiler.base.text import printable
from hprofiler.model.measures import counted
from hprofiler.report.blocks import Block, Column, Lines, Part, Row, Table, cell
from hprofiler.report.dump.words import process_in_words, tasks_in_words, where

_LINES = 15
# Stacks that a terminal shows, and their frames.
_STACKS, _FRAMES = 2, 12
_LONGEST = 60

_GROUPS = (
    Column("threads"),
    Column("processes", about="Processes with such threads."),
    Column("tasks", about="Tasks that these threads run."),
    Column("names of threads", number=False, minor=True, longest=_LONGEST),
    Column("where", number=False, about="What the threads do, and the method that does it."),
)
_STILL = (
    Column("threads"),
    Column("processes"),
    Column("tasks"),
    Column("CPU", about="CPU time that they used between the looks."),
    Column("where", number=False),
)
_HELD = (
    Column("waiting", about="Threads that wait for it, or for a thread that does."),
    Column("holder", number=False),
    Column("which", number=False, about="What the holder does."),
    Column("process", number=False),
    Column("lock", number=False),
)
_DEAD = (
    Column("waits for", number=False),
    Column("where", number=False),
    Column("thread", number=False),
)


def parts_of(found: DumpAnalysis) -> list[Part]:
    """The parts of the answer below its headline; those with nothing in them are left out."""
    working = [one for one in found.groups if not one.idle]
    idle = [one for one in found.groups if one.idle]
    sure = [one for one in found.unmoved if one.sure]
    unsure = [one for one in found.unmoved if not one.sure]
    parts = [
        *(_deadlock(one) for one in found.deadlocks[:_LINES]),
        _part("locks that others wait for", _holders(found.holders)),
        _part("threads that did not move", _still("unmoved", sure), _how_long(found)),
        _part("threads that may have moved", _still("unsure", unsure), _unsure(found)),
        _part("busy threads", _still("busy", found.busy), "They used more than a tenth of a processor."),
        _part("what threads do", _groups("groups", working)),
        _part("idle threads", _groups("idle", idle, only="page")),
    ]
    return [one for one in parts if one.blocks]


def methods_of(found: DumpAnalysis) -> dict[str, str]:
    """The methods of the keys of rows."""
    waits = [one.wait for one in found.groups] + [one.wait for one in (*found.unmoved, *found.busy)]
    return {where(wait): printable(wait.method) for wait in waits if wait.method}


def stacks_of(found: DumpAnalysis) -> list[str]:
    """The stacks of who holds most others up, and of the largest groups, for a terminal."""
    lines = []
    for holder in found.holders[:1]:
        if holder.frames:
            who = f'"{printable(holder.holder or "")}" of {process_in_words(holder.process)}'
            lines += [f"{who} holds the lock:", *_frames(holder.frames)]
    for one in [one for one in found.groups if not one.idle and one.frames][:_STACKS]:
        first = f'"{printable(one.first.name)}" of {process_in_words(one.first)}'
        lines += [f"{counted(one.threads, 'threads')}, such as {first}:", *_frames(one.frames)]
    return lines


def _frames(frames: Sequence[str]) -> list[str]:
    more = len(frames) - _FRAMES
    shown = [f"    {printable(shown_name(frame))}" for frame in frames[:_FRAMES]]
    return [*shown, f"    … {more} more"] if more > 0 else shown


def _part(title: str, table: Table | None, about: str = "") -> Part:
    blocks: list[Block] = [table] if table and table.rows else []
    return Part(title if blocks else "", blocks, about=about)


def _how_long(found: DumpAnalysis) -> str:
    return f"The same at {found.looks} looks in {found.seconds:.1f} s." if found.looks > 1 else ""


def _unsure(found: DumpAnalysis) -> str:
    why = "They ran in between, or it is not known whether they did."
    return f"{_how_long(found)} {why}" if found.looks > 1 else ""


def _groups(name: str, groups: Sequence[Group], only: str = "") -> Table:
    rows = [
        Row(
            (
                cell(str(one.threads), one.threads),
                cell(str(one.processes), one.processes),
                tasks_in_words(one.tasks),
                ", ".join(printable(f"{number} × {name}") for name, number in one.names),
                where(one.wait),
            ),
            key=where(one.wait),
        )
        for one in groups
    ]
    return Table(name, _GROUPS, rows, "groups", _LINES, only="page" if only else "")


def _still(name: str, still: Sequence[Still]) -> Table:
    rows = [
        Row(
            (
                cell(str(one.threads), one.threads),
                cell(str(one.processes), one.processes),
                cell(str(one.tasks), one.tasks),
                "" if one.cpu_seconds is None else cell(f"{one.cpu_seconds:.2f} s", one.cpu_seconds),
                where(one.wait),
            ),
            key=where(one.wait),
        )
        for one in still
    ]
    return Table(name, _STILL, rows, "groups", _LINES)


def _holders(holders: Sequence[Holder]) -> Table:
    rows = [
        Row(
            (
                cell(str(one.waiting), one.waiting),
                "?" if one.holder is None else printable(one.holder),
                "" if one.wait is None else where(one.wait),
                process_in_words(one.process),
                printable(f"{one.lock_class or 'monitor'} {one.lock}"),
            ),
        )
        for one in holders
    ]
    return Table("locks", _HELD, rows, "locks", _LINES)


def _deadlock(one: Deadlock) -> Part:
    rows = [
        Row((printable(f"{thread.lock_class} {thread.lock}"), where(thread.wait), printable(thread.name)))
        for thread in one.threads
    ]
    blocks: list[Block] = [Table("deadlock", _DEAD, rows, "threads", _LINES)]
    if one.waiting:
        blocks.append(Lines([f"other threads that wait for them: {one.waiting}"]))
    return Part(f"deadlock in {process_in_words(one.process)}", blocks)
