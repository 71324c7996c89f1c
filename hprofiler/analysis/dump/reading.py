"""Reads the texts of a dump, process by process, and keeps of each thread what is compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hprofiler._flamegraph import DumpedThread, ThreadDumps
from hprofiler.analysis.dump.result import Silent, ThreadOf
from hprofiler.analysis.waits import IDLE, Wait
from hprofiler.model import Outcome, Status
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.runfolder.dumps import DumpFolder

# Executor task launch worker for task 3.0 in stage 14.0 (TID 99), or for task 99.
_TASK = re.compile(r"Executor task launch worker for task (?:\d+\.\d+ in stage (\d+\.\d+)|\d+)")
_HEAD = re.compile(r"\[.*\]")
# The kind of a text that the kernel's account was made to.
_NATIVE = "native"
_CUT = "dump-cut"


@dataclass(frozen=True)
class Kind:
    """What the threads of a group have in common; `stage` of a thread is not part of it."""

    wait: Wait
    frames: tuple[str, ...]

    @property
    def idle(self) -> bool:
        return self.wait.code == IDLE


@dataclass(frozen=True)
class Moment:
    """A thread at one look: the number of its stack, its state and its CPU seconds so far.

    `exact` are CPU seconds as a JVM says them, in millionths; the kernel's have steps of a hundredth.
    """

    stack: int
    state: str
    cpu: float | None
    exact: float | None


Key = tuple[int | None, str, int | None]


@dataclass
class Looked:
    """A process: its threads at the last look that can be read, and what all looks have of each."""

    process: ThreadOf
    threads: Sequence[DumpedThread] = ()
    moments: list[tuple[float, Mapping[Key, Moment]]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.moments[-1][0] - self.moments[0][0] if self.moments else 0.0

    def thread(self, place: int) -> ThreadOf:
        thread, of = self.threads[place], self.process
        return ThreadOf(of.host, of.pid, of.label, thread.name, thread.number)


class Reading:
    """All processes of a dump, one at a time in memory."""

    def __init__(self) -> None:
        self.stacks = ThreadDumps()
        self.unreadable: list[tuple[str, str]] = []
        self.silent: list[Silent] = []
        self._kinds: dict[int, Kind] = {}

    def processes(self, folder: DumpFolder) -> Iterator[Looked]:
        """The processes with a text that can be read."""
        for host in folder.record.hosts:
            by_pid: dict[int, list[Dump]] = {}
            for dump in sorted(host.dumps, key=lambda one: one.look):
                by_pid.setdefault(dump.pid, []).append(dump)
            for dumps in by_pid.values():
                looked = self._process(folder, host, dumps)
                if looked.threads:
                    yield looked

    def kind(self, group: int) -> Kind:
        known = self._kinds.get(group)
        if known is None:
            found = self.stacks.group(group)
            frames = [frame for frame in found.frames if not _HEAD.fullmatch(frame)]
            method = frames[min(found.above, len(frames) - 1)] if frames else ""
            known = self._kinds[group] = Kind(Wait(found.does, method), tuple(frames))
        return known

    def _process(self, folder: DumpFolder, host: DumpedHost, dumps: Sequence[Dump]) -> Looked:
        label = dumps[-1].label or dumps[-1].kind
        looked = Looked(ThreadOf(host.name, dumps[-1].pid, label, ""))
        why = _problem(host, dumps[-1].pid)
        answers = [one for one in dumps if one.kind != _NATIVE or not (why or one.process.is_jvm)]
        if len(answers) < len(dumps):
            code, reason, remedy = (why.code, why.reason, why.remedy) if why else ("", "", "")
            self.silent.append(Silent(looked.process, code, reason, remedy))
        for dump in answers:
            path = folder.text_path(host.name, dump)
            try:
                read = self.stacks.read(path)
            except (OSError, ValueError) as error:
                self.unreadable.append((f"{host.name} pid {dump.pid}", str(error)))
                continue
            if not read:
                self.unreadable.append((f"{host.name} pid {dump.pid}", f"{path}: there is no thread in it"))
            else:
                looked.threads = read[-1]
                looked.moments.append((dump.time, _moments(read[-1], dump)))
        return looked


def _problem(host: DumpedHost, pid: int) -> Outcome | None:
    """Why a process did not answer, if it did not."""
    said = (one for one in host.outcomes if one.pid == pid and one.code != _CUT)
    return next((one for one in said if one.status in (Status.DEGRADED, Status.FAILED)), None)


def _moments(threads: Sequence[DumpedThread], dump: Dump) -> dict[Key, Moment]:
    found = {}
    for one in threads:
        cpu = one.cpu if one.number is None else dump.cpu.get(one.number, one.cpu)
        found[key_of(one)] = Moment(one.stack, one.state, cpu, one.cpu)
    return found


def key_of(thread: DumpedThread) -> Key:
    """What tells a thread from the others of its process, at all looks."""
    number = thread.number if thread.number is not None else thread.java_number
    # A virtual thread has the number and the name of its carrier.
    return (number, thread.name, thread.java_number if thread.virtual_ else None)


def stage_of(name: str) -> str | None:
    """The stage of a thread that runs a task, "" if its name does not say it; None for other threads."""
    found = _TASK.match(name)
    return None if found is None else found[1] or ""
