"""run.json: the description of a run, written and read with the same types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from hprofiler.base import bounded_json
from hprofiler.model import Count, HostRecord, JobAccount, Sampling, Seconds, Target
from hprofiler.model.trigger import Fired
from hprofiler.runfolder.record_folder import UnknownFormat

FORMAT = 3
MOST_BYTES = 2 << 30
"""Longest run.json that is read; a day of a thousand processes has half of that."""


@dataclass(frozen=True)
class HostCoverage:
    all: Count = 0
    reached: Count = 0
    recorded: Count = 0
    idle: Count = 0
    failed: Count = 0


@dataclass(frozen=True)
class ProcessCoverage:
    found: Count = 0
    recorded: Count = 0
    short: Count = 0


@dataclass(frozen=True)
class RecordingCoverage:
    expected: Count = 0
    made: Count = 0


@dataclass(frozen=True)
class Coverage:
    """Coverage of the run: "37 of 40 processes on 9 of 10 hosts".

    A recording is a process x an event; a process counts as recorded if one of its events was. `short`
    recordings ended early. `unreadable` profiles of one event do not count as recorded.
    """

    hosts: HostCoverage = HostCoverage()
    processes: ProcessCoverage = ProcessCoverage()
    recordings: RecordingCoverage = RecordingCoverage()

    @classmethod
    def of(cls, hosts: Sequence[HostRecord], events: int, unreadable: int = 0) -> Coverage:
        found = sum(host.processes for host in hosts)
        return cls(
            HostCoverage(
                all=len(hosts),
                reached=sum(host.facts is not None for host in hosts),
                recorded=sum(bool(host.recorded) for host in hosts),
                idle=sum(host.idle for host in hosts),
                failed=sum(host.failed for host in hosts),
            ),
            ProcessCoverage(
                found=found,
                recorded=sum(len(host.recorded) for host in hosts) - unreadable,
                short=sum(len({one.pid for one in host.short}) for host in hosts),
            ),
            RecordingCoverage(
                expected=found * events, made=sum(len(host.recordings) for host in hosts) - unreadable
            ),
        )

    @property
    def complete(self) -> bool:
        """No host, process, event or time is missing."""
        whole = self.recordings.made == self.recordings.expected and not self.processes.short
        return self.hosts.failed == 0 and whole


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The typed content of run.json. `roots` are the frames at which the job's own stacks start, and
    `program_roots` those of its Python program. `job` is what its manager said of it at the end. `trigger` is
    what made the condition true that the run waited for. If only its last seconds were kept, it had been
    recorded for `last_of` seconds."""

    format: int = FORMAT
    hprofiler: str = ""
    command: tuple[str, ...] = ()
    target: Target = Target("", "")
    notes: tuple[str, ...] = ()
    selector: str = ""
    roots: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    program_roots: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()
    sampling: Sampling = msgspec.field(default_factory=lambda: Sampling(("cpu",), 0, 0.0))
    care: Mapping[str, bool | float] = {}
    started: str = ""
    finished: str = ""
    interrupted: bool = False
    coverage: Coverage = Coverage()
    hosts: tuple[HostRecord, ...] = ()
    job: JobAccount | None = None
    trigger: Fired | None = None
    last_of: Seconds | None = None

    @property
    def start(self) -> int | None:
        """When the first samples can have been taken, in microseconds since 1970; None if that is unknown."""
        recordings = (one for host in self.hosts for one in host.recordings)
        return min((one.times.start for one in recordings if one.times), default=None)


# msgspec learns a type when it is first used, and crashes if several threads use it first at the same time.
msgspec.json.Decoder(RunRecord)


def read(text: bytes) -> RunRecord:
    """Decode a run.json of this or an earlier format. Raises ValueError.

    It may come from elsewhere, so control characters are removed.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 30} GiB")
    # Without a bound of values: pauses may be many.
    content = bounded_json.read(text, len(text))
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    found = content.get("format")
    if found not in (2, FORMAT):
        raise UnknownFormat(found, f"2 and {FORMAT}")
    content = bounded_json.printable_value(content)
    try:
        return msgspec.convert(_upgraded(content) if found == 2 else content, RunRecord)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """Converts format 2 to 3: outcomes had no code, and containers were identified by their addresses."""
    hosts = content.get("hosts")
    target = content.get("target")
    in_pods = isinstance(target, dict) and target.get("kind") == "kubernetes"
    for host in hosts if isinstance(hosts, list) else ():
        if not isinstance(host, dict):
            continue
        host["inside"] = in_pods and str(host.get("address")).count("/") == 2
        for outcome in host.get("outcomes") or ():
            if isinstance(outcome, dict):
                outcome.setdefault("code", "unknown")
    return {**content, "format": FORMAT}


def pieces(record: RunRecord) -> Iterator[bytes]:
    """The record as JSON, one line per member and host."""
    for number, name in enumerate(RunRecord.__struct_fields__):
        yield b",\n" if number else b"{\n"
        yield b'"%s": ' % name.encode()
        if name != "hosts":
            yield _encoded(getattr(record, name))
            continue
        for place, host in enumerate(record.hosts):
            yield b",\n" if place else b"[\n"
            yield _encoded(host)
        yield b"\n]" if record.hosts else b"[]"
    yield b"\n}\n"


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(bounded_json.printable_value(msgspec.to_builtins(value, enc_hook=list)))
