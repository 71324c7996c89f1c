"""The core types: target, sampling, recording, outcome. Frozen, no I/O.

The same names stand in `agents/PROTOCOL.md`, in `run.json` and in the documentation.
"""

from hprofiler.model.outcome import DOING, VAGUE_CODES, Note, Outcome, Params, Status
from hprofiler.model.recording import Count, HostFacts, HostResult, Recording, Samples, Seconds
from hprofiler.model.sampling import Sampling
from hprofiler.model.target import (
    MANAGER_PORT,
    OWNER,
    PROCESS,
    RUN_FOR,
    Host,
    Labels,
    Process,
    Selector,
    Target,
)

__all__ = [
    "DOING",
    "MANAGER_PORT",
    "OWNER",
    "PROCESS",
    "RUN_FOR",
    "VAGUE_CODES",
    "Count",
    "Host",
    "HostFacts",
    "HostResult",
    "Labels",
    "Note",
    "Outcome",
    "Params",
    "Process",
    "Recording",
    "Samples",
    "Sampling",
    "Seconds",
    "Selector",
    "Status",
    "Target",
]
