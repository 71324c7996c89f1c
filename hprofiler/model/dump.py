"""What the threads of a process were doing at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from hprofiler.model.outcome import Outcome
from hprofiler.model.recording import HostFacts, Name, Seconds
from hprofiler.model.target import Process

ThreadNumber = Annotated[int, Meta(ge=0, le=1 << 32)]


@dataclass(frozen=True)
class Dump:
    """The threads of one process at one look.

    `look` counts from 1. `time` is when the process was asked, in seconds since 1970 on this machine's clock;
    `seconds` is how long it took to answer. `kind` is "jvm", "python" or "native": who wrote the text. `cpu`
    has how many seconds of CPU time each thread has used so far, by the thread's number as the text has it
    (`nid` in a JVM's). `file` is the name of the text in the folder of its host.
    """

    process: Process
    look: Annotated[int, Meta(ge=1, le=1_000_000)]
    time: Seconds
    kind: Name
    seconds: Seconds
    cpu: Mapping[ThreadNumber, Seconds] = field(default_factory=dict)
    file: Name = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def label(self) -> str:
        return self.process.label


class DumpedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a dump. A process that did not answer has an outcome with its pid; so may one that did.

    `unseen` are names of processes that the resolver knows there, but that could not be searched.
    """

    name: str
    address: str = ""
    inside: bool = False
    labels: Mapping[str, str] = {}
    facts: HostFacts | None = None
    dumps: tuple[Dump, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def dumped(self) -> frozenset[int]:
        """The pids of processes that answered."""
        return frozenset(one.pid for one in self.dumps)

    @property
    def found(self) -> frozenset[int]:
        return self.dumped | {one.pid for one in self.outcomes if one.pid is not None}

    @property
    def processes(self) -> int:
        """How many processes it has, also those that are known but could not be searched for."""
        return len(self.found) + len(self.unseen)
