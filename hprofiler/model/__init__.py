"""The core types: target, sampling, recording, outcome. Frozen, no I/O.

The same names stand in `agents/PROTOCOL.md`, in `run.json` and in the documentation.
"""

from hprofiler.model.outcome import DOING, Outcome, Status
from hprofiler.model.recording import HostFacts, HostResult, Recording, Samples
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
    "Host",
    "HostFacts",
    "HostResult",
    "Labels",
    "Outcome",
    "Process",
    "Recording",
    "Samples",
    "Sampling",
    "Selector",
    "Status",
    "Target",
]
