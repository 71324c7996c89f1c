"""The page: the viewer's template, filled with one description and one block of data for all it shows.

Profiles are taken process by process and not kept: the block is one call tree of everything, scopes are sums
of its columns, made in the browser. `flamegraph/viewer/FORMAT.md` describes both.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from hprofiler._flamegraph import Profile, ViewerData
from hprofiler.analysis.facts import labels_of
from hprofiler.analysis.work import user_rules
from hprofiler.base.resources import page_template
from hprofiler.model import HostRecord, Recording
from hprofiler.model.measures import counted_in
from hprofiler.runfolder import replacing

FORMAT = 4
DATA_ID = "data"
OTHER_THREADS = "other threads"
# Groups of threads that are shown apart: of a process as they are read, then of an event.
_MOST_THREADS = 20
_BLOCK = 3 << 16
# Longest time that a page shows, in microseconds: a clock that is years off would make millions of columns.
_MOST_TIME = 10 * 24 * 3600 * 1_000_000


@dataclass(frozen=True)
class PageEvent:
    """An event: `title` for people, `type` and `unit` of the value, what a wider frame has more of.

    `second` is another value in proportion: its type, its unit, and how much of it goes with 1. `ends` are
    patterns of what its stacks end in, with `kernel_ends` also the kernel's frames: what these cost is their
    callers'. Tables leave out stacks with one of the `profiler`'s frames, which are patterns, and those below
    the frame `broken`; with `self_only` only self costs are known.
    """

    name: str
    title: str
    type: str
    unit: str
    wider: str
    seconds: float = 0.0
    second: tuple[str, str, float] | None = None
    ends: Sequence[str] = ()
    kernel_ends: bool = False
    profiler: Sequence[str] = ()
    broken: str = ""
    self_only: bool = False


@dataclass(frozen=True)
class PageCallers:
    """What may be wrong of an event's callers: `code` is functions that may be below a wrong caller, and
    `methods` are those whose totals are not known for it. If it is `moved`, the page has this code below its
    nearest sure caller.
    """

    code: Sequence[str]
    methods: Sequence[str]
    moved: bool = False


@dataclass(frozen=True)
class PageProcess:
    """A process of a page: `host` is the number of its host there."""

    host: int
    pid: int
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()


Span = tuple[float, float, str]


@dataclass(frozen=True)
class Lane:
    """What else is known by time: `spans` are (from, to, label), half-open, in seconds since the start.

    `kind` is "gc", "job" or "stage"; `process` is the number of the process that it is of, None if of none.
    """

    name: str
    kind: str
    spans: Sequence[Span]
    process: int | None = None


class PageData:
    """A page's data in the making; numbers count from 0 in the order in which things are added.

    With `thread_frames` groups of threads are also frames at the root of the tree. `trimmed` says that
    there is less in it than the samples that hosts took. `summaries`, `coverage` and `callers`, where some
    may be wrong, are by event, `run` is what is said of the run, `machines` of its hosts, `job` of its Spark
    application, `curves` what is known of that by time; all but `callers` are ready for JSON. `slice_labels`
    are what slices are called beside their names, `clock` is how well clocks agree.
    """

    def __init__(
        self,
        title: str,
        runs: Sequence[str] = ("results",),
        thread_frames: bool = False,
        trimmed: bool = False,
    ) -> None:
        self.title = title
        self.summaries: dict[int, Mapping[str, object]] = {}
        self.coverage: dict[int, Mapping[str, object]] = {}
        self.callers: dict[int, PageCallers] = {}
        self.run: Mapping[str, object] | None = None
        self.machines: Mapping[str, object] | None = None
        self.job: Mapping[str, object] | None = None
        self.curves: Mapping[str, object] | None = None
        self.lanes: Sequence[Lane] = ()
        self.slice_labels: Mapping[str, str] = {}
        self.clock = ""
        self._trimmed = trimmed
        self._runs = list(runs)
        self._thread_frames = thread_frames
        self._viewer = ViewerData()
        self._events: list[PageEvent] = []
        self._hosts: dict[tuple[int, str], int] = {}
        self._processes: dict[PageProcess, int] = {}
        self._columns: list[_Column] = []
        self._slices: dict[tuple[str, bool], int] = {}
        # When its time begins, in microseconds since 1970, and its length.
        self._start: int | None = None
        self._length = 0
        # What groups of threads cost without idle threads, and with them.
        self._threads: dict[tuple[int, str], tuple[int, int]] = {}

    def host(self, name: str, run: int = 0) -> int:
        """The number of a host."""
        return self._hosts.setdefault((run, name), len(self._hosts))

    def number_of_host(self, name: str) -> int | None:
        """The number of a run's host if the page has it."""
        return self._hosts.get((0, name))

    def numbers_of_processes(self, host: str) -> dict[str, int]:
        """The numbers of a run's processes on a host, by pid."""
        at = self.number_of_host(host)
        return {str(one.pid): number for one, number in self._processes.items() if one.host == at}

    def process(self, host: HostRecord, recording: Recording, run: int = 0) -> PageProcess:
        labels = tuple(labels_of(host, recording.process).items())
        return PageProcess(self.host(host.name, run), recording.pid, recording.label, labels)

    def number_of_process(self, process: PageProcess) -> int:
        return self._processes.setdefault(process, len(self._processes))

    def event(self, event: PageEvent) -> int:
        """Add an event; its number."""
        self._events.append(event)
        return len(self._events) - 1

    def change_event(self, number: int, event: PageEvent) -> None:
        self._events[number] = event

    def add(self, event: int, process: PageProcess, profile: Profile, start: int | None = None) -> None:
        """A process's profile of an event, its first value; `[group]` frames at the root are its threads.

        The times of its samples count from `start`, in microseconds since 1970; without it they are left out.
        """
        added = self._viewer.add_threads(
            profile, most=_MOST_THREADS, keep_frames=self._thread_frames, start=self._known(profile, start)
        )
        number = self.number_of_process(process)
        for thread, part, _, total, busy in added:
            place = None if part is None else self._slices.setdefault(part, len(self._slices))
            self._columns.append(_Column(event, number, thread, place))
            if thread is not None:
                weight = self._threads.get((event, thread), (0, 0))
                self._threads[event, thread] = (weight[0] + busy, weight[1] + total)

    def add_value(
        self, event: int, process: PageProcess, profile: Profile, value: int, start: int | None = None
    ) -> None:
        """One value of a profile whose frames all go into the tree; for `start` see `add`."""
        self._viewer.add(profile, value, start=self._known(profile, start))
        self._columns.append(_Column(event, self.number_of_process(process), None, None))

    def _known(self, profile: Profile, start: int | None) -> int | None:
        """The start if the profile has times that a page can show."""
        times = profile.times
        if times is None or start is None or not 0 <= times.end - start <= _MOST_TIME:
            return None
        self._start = start if self._start is None else self._start
        self._length = max(self._length, times.end - start)
        return start

    @property
    def seconds(self) -> float:
        """How much time it shows; 0 if it is not known when samples were taken."""
        return self._length / 1e6

    def show_until(self, seconds: float) -> None:
        """Show at least so much time."""
        self._length = max(self._length, min(round(seconds * 1e6), _MOST_TIME))

    def write(self, out: Path, title: str | None = None) -> None:
        """Write the page at once: a reader sees the old or the new one. Raises OSError."""
        template = page_template()
        # JSON without `<`, and base64, hold nothing to be mistaken for markup.
        description = json.dumps(self.describe(), separators=(",", ":"), ensure_ascii=False).replace(
            "<", "\\u003c"
        )
        head, _, rest = template.partition("{{title}}")
        body, _, tail = rest.partition("{{data}}")
        shown = escape(title or f"{self.title} · hprofiler").encode("utf-8", "replace")
        with replacing(out) as file:
            file.write(head.encode() + shown + body.encode())
            file.write(b'<script type="application/json" id="hprofiler-page">')
            file.write(description.encode("utf-8", "replace") + b"</script>\n")
            if self._columns:
                file.write(f'<script type="application/octet-stream" id="{DATA_ID}">'.encode())
                block = self._viewer.to_bytes()
                for start in range(0, len(block), _BLOCK):
                    file.write(base64.b64encode(block[start : start + _BLOCK]))
                file.write(b"</script>\n")
            file.write(tail.encode())

    def describe(self) -> Mapping[str, object]:
        """The description, ready for JSON. Every name in it may be anything at all."""
        groups = self._thread_groups()
        threads = self._thread_names(groups)
        places = {name: place for place, name in enumerate(threads)}
        events = range(len(self._events))
        return {
            "format": FORMAT,
            "title": self.title,
            **({"data": DATA_ID} if self._columns else {}),
            **({"trimmed": True} if self._trimmed else {}),
            "events": [
                _event_record(event, self.callers.get(number)) for number, event in enumerate(self._events)
            ],
            "runs": self._runs,
            "hosts": [{"name": name, "run": run} for run, name in self._hosts],
            "processes": [{**asdict(one), "labels": dict(one.labels)} for one in self._processes],
            "threads": threads,
            "columns": [
                {**asdict(column), "thread": None if thread is None else places[thread]}
                for column, thread in zip(self._columns, groups, strict=True)
            ],
            "time": self._time(),
            "slices": [
                {"name": name, "label": self.slice_labels.get(name, ""), "certain": certain}
                for name, certain in self._slices
            ],
            "lanes": [asdict(lane) for lane in self.lanes],
            "clock": self.clock,
            "coverage": [
                self.coverage.get(event, {"runs": [], "hosts": {}, "short": {}}) for event in events
            ],
            "summaries": [self.summaries[event] for event in events],
            "run": self.run,
            "rules": user_rules(),
            "machines": self.machines,
            "job": self.job,
            "curves": self.curves,
        }

    def _time(self) -> Mapping[str, object] | None:
        """Start, seconds, and the length of the buckets in which samples are counted."""
        width = self._viewer.width
        if self._start is None or width is None:
            return None
        return {"start": self._start, "seconds": self.seconds, "width": width}

    def _thread_groups(self) -> list[str | None]:
        """The group of each column: of an event that knows threads the heaviest are shown apart."""
        apart: dict[int, list[str]] = {}
        for (event, name), _ in sorted(self._threads.items(), key=lambda one: one[1], reverse=True):
            names = apart.setdefault(event, [])
            if len(names) < _MOST_THREADS:
                names.append(name)
        return [
            None
            if one.event not in apart
            else one.thread
            if one.thread in apart[one.event]
            else OTHER_THREADS
            for one in self._columns
        ]

    def _thread_names(self, groups: Sequence[str | None]) -> list[str]:
        """The groups that are shown apart, the heaviest of the first event first; all others last."""
        weights = sorted(self._threads.items(), key=lambda one: (one[0][0], *(-each for each in one[1])))
        names = dict.fromkeys(name for (_, name), _ in weights)
        used = set(groups)
        return [name for name in names if name in used and name != OTHER_THREADS] + [
            name for name in (OTHER_THREADS,) if name in used
        ]


@dataclass(frozen=True)
class _Column:
    """What a column of the data is of; the last three are None where there is none."""

    event: int
    process: int
    thread: str | None
    slice: int | None


def _event_record(event: PageEvent, callers: PageCallers | None) -> dict[str, object]:
    record = {**asdict(event), "counts": counted_in((event.type, event.unit))}
    if callers is not None:
        record["unsure"] = asdict(callers)
    if event.second is not None:
        record["second"] = dict(zip(("type", "unit", "per"), event.second, strict=True))
    return record
