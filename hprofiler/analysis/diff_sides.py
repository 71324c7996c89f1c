"""The two sides of a comparison: the processes of run folders, or one file, read one profile at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from hprofiler._flamegraph import Profile, WorkTable
from hprofiler.analysis.attribution import with_waits_named, without_idle
from hprofiler.analysis.coverage import coverage as coverage_of
from hprofiler.analysis.coverage import sampled
from hprofiler.analysis.facts import RunFacts, read_facts
from hprofiler.analysis.noise import Spread
from hprofiler.analysis.profiles import Names, Reader, unreadable
from hprofiler.analysis.time_part import facts_of_range
from hprofiler.analysis.trust import Untrusted, broken_part
from hprofiler.analysis.waits import Wait
from hprofiler.analysis.work import has_kernel, is_work, rules_version, user_rules
from hprofiler.base.background import interruptibly
from hprofiler.base.errors import ProfileError, UsageError
from hprofiler.base.paths import is_folder, is_there
from hprofiler.base.text import printable
from hprofiler.base.time_range import TimeRange
from hprofiler.model import HostRecord, Outcome, Recording
from hprofiler.model.measures import CPU_VALUES, Column, amount, counted, measure_of
from hprofiler.runfolder import RunFolder, is_run_file
from hprofiler.runfolder.time_files import open_range

# Called with the side, the number of profiles that were read, and the number of all.
Listener = Callable[[str, int, int], None]
# Takes each process's profile, with groups of threads as outermost frames; of a file its one profile.
Taker = Callable[[Profile, HostRecord | None, Recording | None], None]
_NUMBERED = re.compile(r"[^\W_]*\d[^\W_]*")
# Of these the first value counts samples, and the second is the time that they stand for.
_TIMES = ("cpu", "wall", "offcpu")
_EVENTS = (*_TIMES, "lock", "alloc", "live", "nativemem", "nativelive")
# Their counts are estimates, not numbers of samples.
_ESTIMATES = {column for event in _EVENTS if event not in _TIMES for column in measure_of(event).columns}


class LeftOut(NamedTuple):
    """What is not compared: what is below the name of a wait, and idle threads, which a side without others
    keeps."""

    below_waits: bool = False
    idle: bool = False


@dataclass
class Side:
    """All of one side: the sum of its parts, and how much each method's cost varies from part to part.

    `categories` has the same of categories of work, by `rules` of these versions. `problems` are stored
    profiles that could not be used. Of a file it is not known how many processes it has.

    `broken` is the part, 0 to 1, of processes whose stacks are not trusted: of these only self costs are
    right. Without them all else would have a larger share. `unsure` processes may have wrong callers of
    functions that compiled Java code calls; None where that is not known. It cannot be seen which these are
    if it is not `compiled_known` what was compiled. `waits` says what names of waits
    mean, and `idle` what those threads cost that were left out because they idle.

    `malformed_lines` of a file were left out, it may be `incomplete` (`Profile.incomplete`), its CPU samples
    may skip stubs (`Profile.skips_stubs`), and `warnings` say what else its reader noticed.
    """

    name: str
    merged: Profile | None = None
    facts: RunFacts | None = None
    of_file: bool = False
    spread: Spread = field(default_factory=Spread)
    categories: Spread = field(default_factory=Spread)
    rules: tuple[str, ...] = field(default_factory=lambda: (rules_version(),))
    work: WorkTable = field(default_factory=lambda: WorkTable(user_rules()))
    problems: list[Outcome] = field(default_factory=list)
    broken: float = 0.0
    waits: dict[str, Wait] = field(default_factory=dict)
    idle: int = 0
    unsure: int | None = 0
    compiled_known: bool = True
    malformed_lines: int = 0
    incomplete: bool = False
    skips_stubs: bool = False
    warnings: Sequence[str] = ()

    @property
    def untrusted(self) -> Sequence[Untrusted]:
        """The processes of a run whose stacks are mostly broken."""
        return tuple(self.facts.untrusted.values()) if self.facts else ()

    @property
    def self_only(self) -> bool:
        return self.broken > 0

    def add(self, profile: Profile, samples: int, kind: str = "") -> None:
        """A process's profile with the value compared alone; `samples` is 0 where unknown."""
        self.spread.add(profile, samples, kind)
        if self.merged is None:
            self.merged = profile
        else:
            self.merged.merge(profile)

    def reduced(self, event: str, profile: Profile, left_out: LeftOut) -> Profile:
        """A profile with the value compared alone, without what is left out."""
        if not left_out.below_waits:
            return profile
        busy = without_idle(event, profile) if left_out.idle else profile
        self.idle += profile.total() - busy.total()
        named, waits = with_waits_named(event, busy)
        self.waits |= waits
        return named

    def add_work(self, event: str, profile: Profile, samples: int, kind: str = "") -> None:
        """The same profile, with groups of threads where they are known."""
        if is_work(event):
            flat = self.work.by_category(profile, kernel=has_kernel(event), flat=True)
            self.categories.add(flat, samples, kind)

    @property
    def profile(self) -> Profile:
        if self.merged is None:
            raise ProfileError(f"no profile in {self.name} can be used")
        return self.merged

    @property
    def column(self) -> Column:
        return self.profile.values[0]

    @property
    def seconds(self) -> float:
        """How long was recorded, which an interrupt may have ended; 0 where unknown."""
        return 0.0 if self.facts is None else self.facts.seconds

    @property
    def partial(self) -> str:
        """ "1 of 40 processes on 1 of 10 hosts, interrupted"; "" for all that there was."""
        if self.facts is None:
            return ""
        known = coverage_of(self.facts, len(self.problems))
        return "" if known.complete and not self.facts.record.interrupted else known.interrupted

    def in_words(self) -> str:
        """ "results (39,123 samples, 4 processes)"."""
        amounts = self._amounts()
        if not self.of_file:
            amounts.append(counted(self.spread.parts, "processes"))
        return f"{self.name} ({', '.join(amounts)})"

    def in_picture(self) -> str:
        """ "results (39,123 samples, 3 of 4 processes on 1 of 1 host, 99 Hz for 60 s)"."""
        return f"{self.name} ({', '.join([*self._amounts(), *self.coverage])})"

    @property
    def coverage(self) -> list[str]:
        """ "3 of 4 processes on 1 of 1 host" and "99 Hz for 60 s"; of a file nothing is known."""
        if self.facts is None:
            return []
        return [coverage_of(self.facts, len(self.problems)).interrupted, sampled(self.facts)]

    def _amounts(self) -> list[str]:
        amounts = [amount(self.spread.total, self.column)]
        if self.column[1] != "count" and self.spread.samples:
            amounts.append(counted(self.spread.samples, "samples"))
        return amounts


class Source(Protocol):
    """What can be a side. `events` have the value that is compared of each, `start` is when second 0 is, in
    microseconds since 1970."""

    name: str
    events: dict[str, Column]
    start: int | None

    def has(self, event: str) -> bool: ...

    def column(self, event: str, in_time: bool) -> Column | None: ...

    def unsure_callers(self, event: str) -> int | None:
        """In how many processes callers of functions may be wrong; None where it is not known."""

    def read(
        self, event: str, column: Column, listener: Listener, taker: Taker | None, left_out: LeftOut
    ) -> Side:
        """Everything of an event but what is left out."""


class RunSource:
    """A run folder as a side."""

    def __init__(self, path: Path, time: TimeRange | None = None) -> None:
        self._folder = RunFolder.open(path)
        self.name = _named(str(self._folder.path), time)
        self.facts = read_facts(self._folder.record)
        if time is not None:
            self.facts = facts_of_range(self._folder, self.facts, time)
        self.events: dict[str, Column] = {event: measure_of(event).column for event in self.facts.events}
        self.start = self.facts.start

    def has(self, event: str) -> bool:
        """There are recordings of it, which may be without a sample."""
        return any(host.recordings for host in self.facts.of(event).hosts)

    def column(self, event: str, in_time: bool) -> Column | None:
        """What of an event is compared; None where it is not known in time."""
        return _column(event, in_time)

    def unsure_callers(self, event: str) -> int | None:
        return sum(one.callers_unsure for one in self.facts.of(event).recordings)

    def read(
        self, event: str, column: Column, listener: Listener, taker: Taker | None, left_out: LeftOut
    ) -> Side:
        """Everything of an event. Raises ProfileError where there is not one sample."""
        return _read_runs(self.name, (self,), event, column, listener, taker, left_out)

    def reader(self, facts: RunFacts) -> Reader:
        # Without groups of threads, the work of collectors and compilers could not be told.
        return Reader(self._folder, facts, Names(threads=True))


class SeveralRuns:
    """Several run folders as a side: their processes count as those of one run."""

    start: int | None = None
    """Several runs have no common time."""

    def __init__(self, name: str, runs: Sequence[RunSource]) -> None:
        self.name = printable(name)
        self._runs = runs
        first, *others = (one.events for one in runs)
        self.events = {
            event: column for event, column in first.items() if all(event in one for one in others)
        }

    def has(self, event: str) -> bool:
        return all(one.has(event) for one in self._runs)

    def column(self, event: str, in_time: bool) -> Column | None:
        return _column(event, in_time)

    def unsure_callers(self, event: str) -> int | None:
        return sum(one.unsure_callers(event) or 0 for one in self._runs)

    def read(
        self, event: str, column: Column, listener: Listener, taker: Taker | None, left_out: LeftOut
    ) -> Side:
        return _read_runs(self.name, self._runs, event, column, listener, taker, left_out)


def _column(event: str, in_time: bool) -> Column:
    return measure_of(event).columns[1] if in_time and event in _TIMES else measure_of(event).column


def _read_runs(
    name: str,
    runs: Sequence[RunSource],
    event: str,
    column: Column,
    listener: Listener,
    taker: Taker | None,
    left_out: LeftOut,
) -> Side:
    """Everything of an event. Raises ProfileError where there is not one sample."""
    facts = [one.facts.of(event) for one in runs]
    side = Side(name, None, _together(facts), unsure=sum(one.unsure_callers(event) or 0 for one in runs))
    lost = 0
    for run, of_run in zip(runs, facts, strict=True):
        lost += _read_run(side, of_run, run.reader(of_run), column, listener, taker, left_out)
    if side.idle and not side.spread.total:
        return _read_runs(name, runs, event, column, listener, None, left_out._replace(idle=False))
    side.broken = lost / side.spread.total if lost else 0.0
    return _with_samples(side, event)


def _together(runs: Sequence[RunFacts]) -> RunFacts:
    """The facts of several runs: a host that several of them recorded is one."""
    hosts: dict[str, HostRecord] = {}
    for host in (host for run in runs for host in run.hosts):
        known = hosts.get(host.name)
        hosts[host.name] = host if known is None else known.with_those_of(host)
    interrupted = [run for run in runs if run.record.interrupted]
    return replace([*interrupted, *runs][0], hosts=tuple(hosts.values()))


def _read_run(
    side: Side,
    facts: RunFacts,
    reader: Reader,
    column: Column,
    listener: Listener,
    taker: Taker | None,
    left_out: LeftOut,
) -> int:
    """Add a run's processes. What those cost whose stacks are broken."""
    recordings = [(host, one) for host in facts.hosts for one in host.recordings]
    lost = 0
    for number, (host, recording) in enumerate(recordings):
        listener(side.name, number, len(recordings))
        try:
            profile = reader.read(host, recording)
            if taker is not None:
                taker(profile, host, recording)
            profile = profile.without_times()
            work = profile.select(column[0])
            compared = side.reduced(facts.event, work, left_out)
            samples, role = of_part(samples_of(profile, recording), compared, work), role_of(recording)
            side.add(compared.without_threads(), samples, role)
            side.add_work(facts.event, compared, samples, role)
            lost += compared.total() if (host.name, recording.pid) in facts.untrusted else 0
        except (OSError, ValueError, RuntimeError) as error:
            side.problems.append(unreadable(host, recording, error))
    listener(side.name, len(recordings), len(recordings))
    return lost


def samples_of(profile: Profile, recording: Recording) -> int:
    """How many samples a process's profile stands for, before values were selected; 0 where unknown."""
    counts = measure_of(recording.event).columns[0][0]
    return profile.total(counts) if recording.event in _TIMES else recording.samples.taken


def of_part(samples: int, part: Profile, whole: Profile) -> int:
    """How many of the whole's samples the part has; 0 where their number is unknown."""
    if not samples or not part.total():
        return 0
    return max(1, round(samples * part.total() / whole.total()))


def role_of(recording: Recording) -> str:
    """All processes of a role do the same, whatever is numbered: "executor N"."""
    return f"{recording.process.main_class} {_NUMBERED.sub('N', recording.label)}"


class FileSource:
    """One file of any format that the core reads, as a side."""

    def __init__(self, path: Path, time: TimeRange | None = None) -> None:
        self.name = _named(str(path), time)
        try:
            self._profile = interruptibly(
                lambda: open_range(path, time) if time is not None else Profile.open(path)
            )
        except ValueError as error:
            raise ProfileError(f"cannot read: {error}") from error
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
        values = [column for column in self._profile.values if self._profile.total(column[0])]
        known = {event: measure_of(event) for event in _EVENTS}
        self.events = {event: one.column for event, one in known.items() if one.columns[-1] in values}
        for column in values:
            self.events.setdefault(column[0], column)
        # Samples without a time may be of anything; they can be compared with the CPU samples of a run.
        if (cpu := known["cpu"].column) in values:
            self.events.setdefault("cpu", cpu)
        self.start: int | None = self._profile.times.start if self._profile.times else None

    def has(self, event: str) -> bool:
        return event in self.events

    def column(self, event: str, in_time: bool) -> Column | None:
        """What of an event is compared; None where it is not known in time."""
        if not in_time or event not in _TIMES:
            return self.events[event]
        column = _column(event, in_time)
        has = column in self._profile.values and self._profile.total(column[0]) > 0
        return column if has else None

    def unsure_callers(self, event: str) -> int | None:
        """A file does not say it."""
        return 0

    def read(
        self, event: str, column: Column, listener: Listener, taker: Taker | None, left_out: LeftOut
    ) -> Side:
        """The file's value of an event, whose name may be the value's own."""
        side = Side(
            self.name,
            of_file=True,
            malformed_lines=self._profile.malformed_lines,
            incomplete=self._profile.incomplete,
            skips_stubs=self._profile.skips_stubs and column[0] in CPU_VALUES,
            warnings=self._profile.warnings,
        )
        profile = self._profile.canonical()
        if taker is not None:
            taker(profile.select(self.events[event][0]), None, None)
        whole = profile.select(column[0])
        part = side.reduced(event, whole, left_out)
        if side.idle and not part.total():
            side.idle = 0
            part = side.reduced(event, whole, left_out._replace(idle=False))
        samples = of_part(self._samples(event), part, whole)
        side.broken = broken_part(part)
        side.add(part, samples)
        side.add_work(event, part, samples)
        return _with_samples(side, event)

    def _samples(self, event: str) -> int:
        """Times stand for as many samples as were counted beside them; objects and bytes are estimates."""
        column = measure_of(event).columns[0] if event in _TIMES else self.events[event]
        known = column[1] == "count" and column not in _ESTIMATES and column in self._profile.values
        return self._profile.total(column[0]) if known else 0


def open_side(path: Path, time: TimeRange | None = None) -> Source:
    """A run folder, several with commas between, or a file, or what it has in a range of time. Raises
    UsageError for what is neither, ProfileError for no profile."""
    several = [Path(name) for name in str(path).split(",")]
    if not is_there(path) and len(several) > 1 and all(map(is_folder, several)):
        return SeveralRuns(_named(str(path), time), [RunSource(one, time) for one in several])
    if not is_there(path):
        raise UsageError(f"{path} does not exist", "name two run folders, or two profiles")
    return RunSource(path, time) if is_folder(path) or is_run_file(path) else FileSource(path, time)


def _named(path: str, time: TimeRange | None) -> str:
    return printable(path if time is None else f"{path} ({time})")


def _with_samples(side: Side, event: str) -> Side:
    if not side.spread.total:
        why = f": {side.problems[0].reason}" if side.problems else ""
        raise ProfileError(f"no samples of {event} in {side.name}{why}", "there is nothing to compare")
    return side
