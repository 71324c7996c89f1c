"""Sentences about a dump: what matters most, and what else was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hprofiler.analysis.dump import (
    BUSY,
    DEADLOCK,
    DIFFERS,
    HOLDER,
    MOST,
    SILENT,
    UNMOVED,
    Deadlock,
    DumpAnalysis,
    Holder,
    Most,
    Odd,
    Silent,
    Still,
    TaskCount,
    ThreadOf,
)
from hprofiler.analysis.waits import Wait
from hprofiler.analysis.words import and_list, short_name, shown_name
from hprofiler.base.text import printable, some
from hprofiler.model.measures import counted

# Findings of one kind that are said; tables have the rest.
_MOST_SAID = 3
_NAMES = 3


@dataclass(frozen=True)
class Said:
    """A sentence; a method, if there is one, stands between `before` and `after`."""

    before: str
    method: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        return f"{self.before}{shown_name(printable(self.method))}{self.after}"


def findings(found: DumpAnalysis) -> list[Said]:
    """What was found, the headline first; never empty."""
    said: dict[str, list[Said]] = {
        DEADLOCK: [_deadlock(one) for one in found.deadlocks],
        HOLDER: [_holder(one, found.owners) for one in found.holders if one.waiting > 1],
        SILENT: _silent(found.silent),
        UNMOVED: [_unmoved(one) for one in found.unmoved if one.wait.code != "running"],
        MOST: [_most(found, found.most)] if found.most else [],
        DIFFERS: [_odd(one) for one in found.odd],
        BUSY: [_busy(one) for one in found.busy if one.of_program],
    }
    first = found.headline.code
    headline = said.get(first) or [_nothing(found)]
    others = [
        one
        for code in (DEADLOCK, HOLDER, SILENT, UNMOVED, DIFFERS, BUSY)
        if code != first
        for one in said[code][:1]
    ]
    return [*headline[:_MOST_SAID], *others]


def counts(found: DumpAnalysis) -> list[str]:
    """Short facts: processes, threads, looks."""
    whole = "" if found.dumped == found.processes else f" of {found.processes}"
    noun = "process" if found.processes == 1 else "processes"
    facts = [f"{found.dumped}{whole} {noun} on {counted(found.hosts, 'hosts')}"]
    facts.append(f"{counted(found.threads, 'threads')}, {found.idle:,} of them idle")
    if found.tasks:
        facts.append(counted(found.tasks, "tasks"))
    if found.looks > 1:
        facts.append(f"{found.looks} looks in {_seconds(found.seconds)}")
    return facts


def tasks_in_words(tasks: Sequence[TaskCount]) -> str:
    """ "312 of stage 14.0, 8 of stage 15.0"."""
    named = [f"{one.tasks} of stage {one.stage}" if one.stage else f"{one.tasks}" for one in tasks]
    return some(named, _NAMES, "stages")


def where(wait: Wait) -> str:
    """ "waits for a queue in org.apache.spark.X.next"."""
    return printable(wait.shown if wait.method else wait.doing.says.removesuffix(" in"))


def process_in_words(process: ThreadOf) -> str:
    return printable(f"{process.label} on {process.host} (pid {process.pid})")


def _name(name: str) -> str:
    return f'"{printable(name)}"'


def _deadlock(one: Deadlock) -> Said:
    names = and_list([_name(thread.name) for thread in one.threads[:_NAMES]])
    more = len(one.threads) - _NAMES
    others = f" and {counted(more, 'threads')} more" if more > 0 else ""
    behind = f", and {counted(one.waiting, 'other threads')} for them" if one.waiting else ""
    at = process_in_words(one.process)
    return Said(f"Deadlock: {names}{others} wait for each other in {at}{behind}; the first in ", *_of(one))


def _of(one: Deadlock) -> tuple[str]:
    return (one.threads[0].wait.method,)


def _holder(one: Holder, owners: bool) -> Said:
    what = counted(one.tasks, "tasks") if one.tasks == one.waiting else counted(one.waiting, "threads")
    lock = printable(short_name(one.lock_class) or one.lock)
    begin = f"{what} of {process_in_words(one.process)} wait for a lock ({lock})"
    if one.holder is None or one.wait is None:
        who = "no thread is said to own it" if owners else "--owners asks the JVM who has it"
        return Said(f"{begin}; {who}")
    does = f"{begin} that {_name(one.holder)} holds, which "
    if not one.wait.method:
        return Said(f"{does}{where(one.wait)}")
    return Said(f"{does}{one.wait.doing.says} ", one.wait.method)


def _silent(silent: Sequence[Silent]) -> list[Said]:
    """One sentence for each code."""
    said = []
    for code in dict.fromkeys(one.code for one in silent):
        alike = [one for one in silent if one.code == code]
        first = alike[0]
        who = process_in_words(first.process)
        if len(alike) > 1:
            who = f"{counted(len(alike), 'processes')}, such as {who},"
        why = "; ".join(filter(None, (first.reason, first.remedy)))
        said.append(Said(printable(f"{who} did not answer" + (f": {why}" if why else ""))))
    return said


def _unmoved(one: Still) -> Said:
    what = counted(one.tasks, "tasks") if one.tasks else counted(one.threads, "threads")
    of = "" if one.tasks else f" of {counted(one.processes, 'processes')}"
    if one.processes == 1:
        of = f" of {process_in_words(one.first)}"
    them = "them" if (one.tasks or one.threads) > 1 else "it"
    did = f"did not move for {_seconds(one.seconds)}"
    if not one.sure:
        did = f"may have moved in {_seconds(one.seconds)}, but all looks found {them} in one place"
    return Said(f"{what}{of} {did}, {one.wait.doing.spent} ", one.wait.method)


def _most(found: DumpAnalysis, one: Most) -> Said:
    number = f"{one.threads:,}"
    doing = f"{'is' if one.threads == 1 else 'are'} {one.wait.doing.spent} "
    if not found.tasks:
        whole = counted(found.threads - found.idle, "threads")
        return Said(f"{number} of {whole} that are not idle {doing}", one.wait.method)
    stages = {each.stage for each in one.tasks}
    if len(stages) > 1 or "" in stages:
        return Said(f"{number} of {counted(found.tasks, 'tasks')} {doing}", one.wait.method)
    [stage] = stages
    whole = counted(
        sum(each.tasks for group in found.groups for each in group.tasks if each.stage == stage), "tasks"
    )
    return Said(f"{number} of {whole} of stage {stage} {doing}", one.wait.method)


def _odd(one: Odd) -> Said:
    who = counted(one.threads, "threads")
    begin = f"Unlike {one.others} others, {process_in_words(one.process)} has {who} {one.wait.doing.spent} "
    return Said(begin, one.wait.method)


def _busy(one: Still) -> Said:
    used = one.cpu_seconds or 0.0
    of = process_in_words(one.first) if one.processes == 1 else counted(one.processes, "processes")
    share = f"{used / one.seconds:.0%} of a processor" if one.seconds else _seconds(used)
    begin = f"{counted(one.threads, 'threads')} of {of} used {share} for {_seconds(one.seconds)}"
    return Said(f"{begin}, {one.wait.doing.spent} ", one.wait.method)


def _nothing(found: DumpAnalysis) -> Said:
    if not found.threads:
        return Said("No process answered: there is nothing to see")
    running = sum(one.threads for one in found.groups if one.runs and not one.idle)
    waiting = found.threads - found.idle - running
    again = "" if found.looks > 1 else "; --times 3 shows what does not move"
    return Said(
        f"Nothing stands out: {running:,} running, {waiting:,} waiting and {found.idle:,} idle threads{again}"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"
