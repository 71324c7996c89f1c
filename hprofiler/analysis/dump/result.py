"""The types of what a dump says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hprofiler._flamegraph import ThreadDumps
from hprofiler.analysis.waits import IDLE, RUNNING, Wait
from hprofiler.model import Outcome

DEADLOCK, HOLDER, SILENT, UNMOVED, MOST, DIFFERS, BUSY, NOTHING = (
    "deadlock",
    "holder",
    "silent",
    "unmoved",
    "most",
    "differs",
    "busy",
    "nothing",
)
"""What matters most in a dump, from the worst; `busy` is of threads that only run."""


@dataclass(frozen=True)
class ThreadOf:
    """A thread of a process. `number` is the operating system's, None if the text has none."""

    host: str
    pid: int
    label: str
    name: str
    number: int | None = None

    @property
    def process(self) -> str:
        """ "n1: executor 3 (pid 7)"."""
        return f"{self.host}: {self.label} (pid {self.pid})"


@dataclass(frozen=True)
class TaskCount:
    """How many threads run tasks of a stage; `stage` is "14.0", or "" if names of threads do not say it."""

    stage: str
    tasks: int


@dataclass(frozen=True)
class Group:
    """Threads with the same methods on their stacks, which wait for the same, at the last look.

    `frames` come leaf first. What they do is `wait`; an `idle` group waits for work. `names` are groups of
    threads with their numbers, the largest first.
    """

    wait: Wait
    idle: bool
    frames: tuple[str, ...]
    threads: int
    processes: int
    tasks: tuple[TaskCount, ...]
    names: tuple[tuple[str, int], ...]
    first: ThreadOf

    @property
    def runs(self) -> bool:
        return self.wait.code == RUNNING


@dataclass(frozen=True)
class Most:
    """What most threads that are not idle do, or most of those that run tasks if there are any, whatever
    called it: so many threads with these tasks."""

    wait: Wait
    threads: int
    processes: int
    tasks: tuple[TaskCount, ...]


@dataclass(frozen=True)
class Holder:
    """A lock that others wait for, directly or for one whose thread waits for it. Without `owners` in a dump
    the holder of a lock of java.util.concurrent is not known: None. `wait` is what the holder does."""

    process: ThreadOf
    lock: str
    lock_class: str
    holder: str | None
    wait: Wait | None
    frames: tuple[str, ...]
    waiting: int
    tasks: int
    waiters: tuple[str, ...]


@dataclass(frozen=True)
class DeadThread:
    """Of a deadlock: a thread, the lock that it waits for, and where."""

    name: str
    lock: str
    lock_class: str
    wait: Wait


@dataclass(frozen=True)
class Deadlock:
    """Threads of which each waits for the next one, and how many others wait for them."""

    process: ThreadOf
    threads: tuple[DeadThread, ...]
    waiting: int


@dataclass(frozen=True)
class Still:
    """Threads that do the same, and whose stacks were the same at all looks, `seconds` long; and the CPU
    seconds that they used meanwhile, None if these are not known. Busy threads used more than a tenth of the
    time, moved or not. `frames` are those of the first. `sure`: no thread used any, so none moved. Those that
    `rest` sleep, or are the main threads of programs that wait for others: in most jobs there are some."""

    wait: Wait
    frames: tuple[str, ...]
    threads: int
    processes: int
    tasks: int
    seconds: float
    cpu_seconds: float | None
    first: ThreadOf
    sure: bool
    rest: bool

    @property
    def of_program(self) -> bool:
        """Not of the JVM's own threads, or of pools that work now and then."""
        return bool(self.frames) and self.wait.code != IDLE


@dataclass(frozen=True)
class Silent:
    """A process that did not answer at some look, and why: the code and the words of its outcome. What the
    kernel says of its threads is only in its text: what they do for the program is not known."""

    process: ThreadOf
    code: str
    reason: str
    remedy: str

    @property
    def hangs(self) -> bool:
        """It is not refused: the process itself stands still."""
        return self.code in ("process-stopped", "attach-timeout")


@dataclass(frozen=True)
class Odd:
    """A process that is where none of the `others` of its kind is."""

    process: ThreadOf
    wait: Wait
    frames: tuple[str, ...]
    threads: int
    others: int


@dataclass(frozen=True)
class Headline:
    """What matters most; the finding that it is about is the first of its list."""

    code: str


@dataclass(frozen=True)
class DumpAnalysis:
    """All that is said of a dump. Of its `processes`, which include those that did not answer, `dumped` have
    a text that can be read, of `looks` looks or fewer. With `owners` JVMs were asked who owns locks.
    `unreadable` are other texts, and why. `stacks` makes profiles of `counts`: by process the
    threads of each group, with the names of groups of threads.
    """

    processes: int
    dumped: int
    hosts: int
    threads: int
    idle: int
    tasks: int
    looks: int
    seconds: float
    owners: bool
    headline: Headline
    groups: Sequence[Group]
    most: Most | None
    deadlocks: Sequence[Deadlock]
    holders: Sequence[Holder]
    unmoved: Sequence[Still]
    busy: Sequence[Still]
    odd: Sequence[Odd]
    silent: Sequence[Silent]
    outcomes: Sequence[Outcome]
    unreadable: Sequence[tuple[str, str]]
    stacks: ThreadDumps = field(repr=False, compare=False)
    counts: Sequence[tuple[ThreadOf, Sequence[tuple[int, str, int]]]] = field(repr=False, compare=False)

    @property
    def whole(self) -> bool:
        """Every process answered, and all texts could be read."""
        return self.dumped == self.processes and not self.unreadable
