"""What a page's viewer is given: one call tree of everything, and a description of what its columns are.

Profiles are taken process by process and not kept; scopes are sums of columns, made in the browser.
`flamegraph/viewer/FORMAT.md` describes the tree; `viewer/data/page.js` says how the description is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from hprofiler._flamegraph import Profile, ViewerData
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.outliers import Unlike
from hprofiler.analysis.subject import Finding
from hprofiler.model.measures import counted_in, measure_of, summed

FORMAT = 2
DATA_ID = "data"
OTHER_THREADS = "other threads"
# Groups of threads that are told apart: of a process as they are read, then of an event.
_MOST_THREADS = 20


@dataclass(frozen=True)
class PageEvent:
    """An event: `title` for people, `type` and `unit` of the value, what a wider frame has more of.

    `second` is another value in proportion: its type, its unit, and how much of it goes with 1.
    """

    name: str
    title: str
    type: str
    unit: str
    wider: str
    seconds: float = 0.0
    second: tuple[str, str, float] | None = None


@dataclass(frozen=True)
class PageProcess:
    """A process of a page: `host` is the number of its host there."""

    host: int
    pid: int
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class HostNumbers:
    """What is known of a host in an event beside its columns."""

    host: int
    expected: int
    taken: int
    unlike: Unlike | None = None


@dataclass(frozen=True)
class Covered:
    """How much of what there was an event is of, in words: each run, hosts by their numbers.

    `short` are processes that were not recorded for all of the time: for how much of it.
    """

    runs: Sequence[str] = ()
    hosts: Mapping[int, str] = field(default_factory=dict)
    short: Mapping[PageProcess, str] = field(default_factory=dict)


class PageData:
    """A page's data in the making; numbers count from 0 in the order in which things are added.

    With `thread_frames` groups of threads are also frames at the root of the tree. `trimmed` tells that there
    is less in it than the samples that hosts took.
    """

    def __init__(
        self,
        title: str,
        runs: Sequence[str] = ("results",),
        thread_frames: bool = False,
        trimmed: bool = False,
    ) -> None:
        self.title = title
        self._trimmed = trimmed
        self._runs = list(runs)
        self._thread_frames = thread_frames
        self._viewer = ViewerData()
        self._events: list[PageEvent] = []
        self._hosts: dict[tuple[int, str], tuple[int, str]] = {}
        self._processes: dict[PageProcess, int] = {}
        self._columns: list[tuple[int, int, str | None]] = []
        self._threads: dict[tuple[int, str], int] = {}
        self._numbers: dict[int, list[HostNumbers]] = {}
        self._findings: dict[int, list[Finding]] = {}
        self._covered: dict[int, Covered] = {}

    @property
    def empty(self) -> bool:
        """Nothing was added that has a sample."""
        return not self._columns

    def host(self, key: str, name: str, run: int = 0) -> int:
        """The number of a host; `key` tells it from others of its run."""
        number, _ = self._hosts.setdefault((run, key), (len(self._hosts), name))
        return number

    def number_of_host(self, key: str, run: int = 0) -> int | None:
        """Its number if the page has such a host."""
        return self._hosts.get((run, key), (None, ""))[0]

    def event(self, event: PageEvent) -> int:
        """Add an event; its number."""
        self._events.append(event)
        return len(self._events) - 1

    def add(self, event: int, process: PageProcess, profile: Profile) -> None:
        """A process's profile of an event, its first value; `[group]` frames at the root are its threads."""
        added = self._viewer.add_threads(profile, most=_MOST_THREADS, keep_frames=self._thread_frames)
        for thread, _, total in added:
            self._columns.append((event, self._number_of(process), thread))
            if thread is not None:
                self._threads[event, thread] = self._threads.get((event, thread), 0) + total

    def add_value(self, event: int, process: PageProcess, profile: Profile, value: int) -> None:
        """One value of a profile whose frames all belong into the tree."""
        self._viewer.add(profile, value)
        self._columns.append((event, self._number_of(process), None))

    def tell(self, event: int, numbers: Sequence[HostNumbers], findings: Sequence[Finding]) -> None:
        """What is known of an event once all of it was added."""
        self._numbers[event] = list(numbers)
        self._findings[event] = list(findings)

    def cover(self, event: int, covered: Covered) -> None:
        """How much an event is of; for pictures that leave the page."""
        self._covered[event] = covered

    def block(self) -> bytes:
        """The data of `flamegraph/viewer/FORMAT.md`."""
        return self._viewer.to_bytes()

    def described(self) -> Mapping[str, object]:
        """The description, ready for JSON. Every name in it may be anything at all."""
        told = self._told_threads()
        threads = self._thread_names(told)
        places = {name: place for place, name in enumerate(threads)}
        return {
            "format": FORMAT,
            "title": self.title,
            **({} if self.empty else {"data": DATA_ID}),
            **({"trimmed": True} if self._trimmed else {}),
            "events": [_event_record(event) for event in self._events],
            "runs": self._runs,
            "hosts": [{"name": name, "run": run} for (run, _), (_, name) in self._hosts.items()],
            "processes": [_process_record(process) for process in self._processes],
            "threads": threads,
            "columns": [
                {"event": event, "process": process, "thread": None if thread is None else places[thread]}
                for (event, process, _), thread in zip(self._columns, told, strict=False)
            ],
            "hosts_by_event": [
                [_numbers_record(one) for one in self._numbers.get(event, ())]
                for event in range(len(self._events))
            ],
            "coverage": [
                self._covered_record(self._covered.get(event, Covered()))
                for event in range(len(self._events))
            ],
            "findings": [
                [self._finding_record(one) for one in self._findings.get(event, ())]
                for event in range(len(self._events))
            ],
        }

    def _covered_record(self, covered: Covered) -> dict[str, object]:
        known = {self._processes[one]: told for one, told in covered.short.items() if one in self._processes}
        return {"runs": list(covered.runs), "hosts": dict(covered.hosts), "short": known}

    def _number_of(self, process: PageProcess) -> int:
        return self._processes.setdefault(process, len(self._processes))

    def _told_threads(self) -> list[str | None]:
        """The group of each column: of an event that knows threads the heaviest are told apart."""
        apart: dict[int, list[str]] = {}
        for (event, name), _ in sorted(self._threads.items(), key=lambda one: -one[1]):
            names = apart.setdefault(event, [])
            if len(names) < _MOST_THREADS:
                names.append(name)
        return [
            None if event not in apart else thread if thread in apart[event] else OTHER_THREADS
            for event, _, thread in self._columns
        ]

    def _thread_names(self, told: Sequence[str | None]) -> list[str]:
        """The groups that are told apart, the heaviest of the first event first; all others last."""
        weights = sorted(self._threads.items(), key=lambda one: (one[0][0], -one[1]))
        names = dict.fromkeys(name for (_, name), _ in weights)
        used = set(told)
        return [name for name in names if name in used and name != OTHER_THREADS] + [
            name for name in (OTHER_THREADS,) if name in used
        ]

    def _finding_record(self, finding: Finding) -> dict[str, object]:
        hosts = {key: number for (_, key), (number, _) in self._hosts.items()}
        host = hosts.get(finding.host) if finding.host is not None else None
        return {"text": finding.text, "method": finding.method, "host": host}


def event_of_page(facts: RunFacts) -> PageEvent:
    """What the page says of the event itself; a sample of CPU time is told in seconds, too."""
    measure, name = measure_of(facts.event), facts.event
    seconds = max((one.seconds for one in facts.recordings), default=0.0) or facts.duration
    totals = summed(one.totals for one in facts.recordings)
    second = None
    if name == "cpu" and totals.get("samples"):
        column, unit = measure.columns[1]
        second = (column, unit, totals.get(column, 0) / totals["samples"])
    return PageEvent(name, measure.title, *measure.column, measure.wider, seconds, second)


def _event_record(event: PageEvent) -> dict[str, object]:
    record = {**asdict(event), "counts": counted_in((event.type, event.unit))}
    if event.second is not None:
        record["second"] = dict(zip(("type", "unit", "per"), event.second, strict=False))
    return record


def _process_record(process: PageProcess) -> dict[str, object]:
    record = asdict(process)
    record["labels"] = dict(process.labels)
    return record


def _numbers_record(numbers: HostNumbers) -> dict[str, object]:
    distance = numbers.unlike.distance if numbers.unlike else None
    methods = distance.methods if distance else []
    return {
        "host": numbers.host,
        "expected": numbers.expected,
        "taken": numbers.taken,
        "distance": distance.divergence if distance else 0.0,
        "noise": distance.noise if distance else 0.0,
        "outlier": distance is not None and distance.outlier,
        "differs": [{"method": one.name, "share": one.share, "usual": one.usual} for one in methods],
    }
