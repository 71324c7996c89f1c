"""The core types: target, sampling, recording, outcome. Frozen, no I/O.

`agents/PROTOCOL.md`, `run.json` and the documentation use the same names.
"""

from hprofiler.model.host_record import HostPart, HostRecord
from hprofiler.model.outcome import DOING, VAGUE_CODES, Note, Outcome, Params, Status, number_of
from hprofiler.model.recording import (
    Clock,
    ClockReading,
    Count,
    HostFacts,
    Name,
    Pauses,
    Recording,
    Samples,
    SampleTimes,
    Sampling,
    Seconds,
)
from hprofiler.model.target import (
    HERE,
    MANAGER_PORT,
    OWNER,
    PARENT,
    PROCESS,
    PROGRAM,
    RUN_FOR,
    STARTED,
    Host,
    Labels,
    Process,
    Selector,
    SliceRule,
    Target,
)

__all__ = [
    "DOING",
    "HERE",
    "MANAGER_PORT",
    "OWNER",
    "PARENT",
    "PROCESS",
    "PROGRAM",
    "RUN_FOR",
    "STARTED",
    "VAGUE_CODES",
    "Clock",
    "ClockReading",
    "Count",
    "Host",
    "HostFacts",
    "HostPart",
    "HostRecord",
    "Labels",
    "Name",
    "Note",
    "Outcome",
    "Params",
    "Pauses",
    "Process",
    "Recording",
    "SampleTimes",
    "Samples",
    "Sampling",
    "Seconds",
    "Selector",
    "SliceRule",
    "Status",
    "Target",
    "number_of",
]
