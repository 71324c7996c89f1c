"""A run's record, narrowed to one event: hosts and recordings, what was asked for, the roots of the job."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property

from hprofiler.analysis.spark.findings import Judged
from hprofiler.analysis.trust import Untrusted, untrusted
from hprofiler.base.time_range import TimeRange
from hprofiler.model import HERE, PARENT, SCRIPT, STARTED, HostRecord, Note, Outcome, Process, Recording
from hprofiler.runfolder import RunRecord
from hprofiler.spark.facts import SparkFacts
from hprofiler.spark.replay.schedule import Replay

ASYNC_PROFILER = "async-profiler"
PERF = "perf"
LIVE_CUT = "live-cut"
PYSPY = "pyspy"
"""The engines of recordings."""
# The roots of the job's stacks if the selector names none.
ANY_ROOT = ("*.run", "*.main")
# Less of a CPU is hardly any.
_FEW_CORES = 0.05
_PLAIN = frozenset(string.ascii_letters + string.digits + "_")
_MOST_LABELS = 20
_LONGEST_LABEL = 500


@dataclass(frozen=True)
class RunFacts:
    """The run: what was asked for and when (`record`), and how it went on each host.

    `event` is the one that is looked at, the first of `events` at the beginning. `roots` are the frames
    at which the job's own stacks begin (`root_patterns`), `program_roots` those of its Python program; with
    `trimmed` only those are looked at. `inside`:
    `hosts` are containers. `recorded` is how many processes have each event.
    `start` is when the first samples can have been taken, in microseconds since 1970; None if no times are
    known. With `time` only samples of that range are looked at. `spark` is what Spark knows of its stages,
    `notes` what cannot be read of the run beside profiles. Without `slices` samples are not divided.
    """

    record: RunRecord
    events: tuple[str, ...]
    event: str
    duration: float
    hosts: tuple[HostRecord, ...]
    roots: tuple[str, ...]
    program_roots: tuple[str, ...] = ()
    trimmed: bool = False
    inside: bool = False
    recorded: Mapping[str, int] = field(default_factory=dict)
    start: int | None = None
    time: TimeRange | None = None
    spark: SparkFacts | None = None
    job: Judged | None = None
    replay: Replay | None = None
    slices: bool = True
    notes: tuple[Outcome, ...] = ()

    @property
    def target(self) -> str:
        return self.record.target.name or self.record.target.kind

    @property
    def unfinished(self) -> bool:
        """Whether the run was cut off: it has what was written until then."""
        return bool(self.record.hosts) and not self.record.finished

    @property
    def finished(self) -> str:
        """When the run was over; one that was cut off, when the last of its parts ended, "" without any."""
        if not self.unfinished:
            return self.record.finished
        recordings = (one for host in self.record.hosts for one in host.recordings)
        ends = [one.times.start / 1e6 + one.seconds for one in recordings if one.times]
        try:
            last = datetime.fromtimestamp(max(ends), timezone.utc)
        except (ValueError, OverflowError, OSError):  # none, or what is no time
            return ""
        return last.isoformat(timespec="seconds")

    @property
    def recordings(self) -> list[Recording]:
        return [one for host in self.hosts for one in host.recordings]

    @property
    def seconds(self) -> float:
        """From the start of the run to the end of the last recording: CPU time by it is cores. Processes that
        follow each other share it. The length of a range; what was asked for where nothing is known."""
        ended = 0.0 if self.time is not None else max((one.ended for one in self.recordings), default=0.0)
        return ended or self.duration

    @cached_property
    def untrusted(self) -> Mapping[tuple[str, int], Untrusted]:
        """Processes, by host and pid, whose stacks of the event are mostly broken."""
        return untrusted(self.hosts, self.event)

    @cached_property
    def drivers(self) -> frozenset[tuple[str, int]]:
        """Host and PID of what may be the Spark driver: the process that it is known to be, JVMs of no
        executor, else any such process."""
        if self.spark and self.spark.driver_pid:
            here = (host for host in self.hosts if host.address == HERE)
            own = {(host.name, one.pid) for host in here for one in host.recordings}
            return frozenset(one for one in own if one[1] == self.spark.driver_pid)
        unlabelled = [
            (host.name, one)
            for host in self.hosts
            for one in host.recordings
            if one.process.labels.get("executor", "driver") == "driver"
        ]
        jvms = [pair for pair in unlabelled if pair[1].process.is_jvm]
        return frozenset((name, one.pid) for name, one in jvms or unlabelled)

    @cached_property
    def is_mixed(self) -> bool:
        """Whether several engines sampled CPU time, which miss different parts of it."""
        return self.event == "cpu" and len({one.engine for one in self.recordings}) > 1

    @cached_property
    def hardly_used_cpu(self) -> bool:
        """Whether CPU time was recorded, and no process used more than a small part of a CPU."""
        recordings = [one for host in self.hosts for one in _only(host, "cpu").recordings]
        return any(one.cpu_seconds for one in recordings) and not any(
            one.cpu_seconds > _FEW_CORES * one.seconds for one in recordings
        )

    @property
    def waits_recorded(self) -> list[str]:
        """Recorded events that say what threads wait for."""
        return [event for event in ("wall", "offcpu") if self.recorded.get(event)]

    @property
    def in_order(self) -> list[str]:
        """The events, as asked for; what threads wait for goes first where hardly any CPU time was used."""
        first = self.waits_recorded if self.hardly_used_cpu else []
        return sorted(self.events, key=lambda event: event not in first)

    @property
    def expected(self) -> int:
        """How many samples the CPU time of all recordings stands for."""
        return sum(one.samples.expected for one in self.recordings)

    @property
    def live_cut(self) -> list[Note]:
        """Of the event: notes on processes that had more live objects than were kept."""
        return [
            note
            for host in self.hosts
            for outcome in host.outcomes
            for note in outcome.every_note
            if note.code == LIVE_CUT and note.parameters.get("event") == self.event
        ]

    def of(self, event: str) -> RunFacts:
        """The facts of one event: only its recordings, and all outcomes."""
        return replace(self, event=event, hosts=tuple(_only(host, event) for host in self.hosts))


def _only(host: HostRecord, event: str) -> HostRecord:
    return host.part(one for one in host.recordings if one.event == event)


def read_facts(record: RunRecord) -> RunFacts:
    events = tuple(dict.fromkeys(record.sampling.events)) or ("cpu",)
    return RunFacts(
        record,
        events,
        events[0],
        record.sampling.duration,
        record.hosts,
        roots=tuple(filter(None, record.roots)) or ANY_ROOT,
        program_roots=tuple(filter(None, record.program_roots)),
        inside=any(host.inside for host in record.hosts),
        recorded={event: sum(len(_only(host, event).recorded) for host in record.hosts) for event in events},
        start=record.start,
    )


def labels_of(host: HostRecord, process: Process) -> dict[str, str]:
    """What the selector and the resolver know of a process, and its user."""
    own = process.labels
    given = list({**own, **host.labels, **own}.items())[:_MOST_LABELS]
    labels = {key[:_LONGEST_LABEL]: value[:_LONGEST_LABEL] for key, value in given}
    labels.setdefault("user", process.user[:_LONGEST_LABEL])
    return {key: value for key, value in labels.items() if key and value}


def is_program(process: Process) -> bool:
    """Whether it came along with a driver as its Python program; workers have no script of their own."""
    return STARTED in process.labels or (PARENT in process.labels and SCRIPT in process.labels)


def root_patterns(roots: Sequence[str]) -> list[str]:
    """Regular expressions that find a frame which is one of the roots.

    A root is a whole name, with `*` for any text; slashes and dots are one, as engines write both, and a
    name of native code may have its arguments behind it.
    """
    return [f"^{''.join(map(_root_part, re.split(r'([*./])', root)))}(?:\\(.*)?$" for root in roots]


def _root_part(text: str) -> str:
    known = {"*": ".*", ".": "[./]", "/": "[./]"}.get(text)
    return known or "".join(letter if letter in _PLAIN else f"\\x{{{ord(letter):x}}}" for letter in text)
