"""What the threads of a process were doing at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from hprofiler.model.recording import Name, Seconds
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
