"""What a dump says of a job, in codes and numbers: groups of equal stacks, locks, and what did not move."""

from hprofiler.analysis.dump.result import (
    BUSY,
    DEADLOCK,
    DIFFERS,
    HOLDER,
    MOST,
    NOTHING,
    UNMOVED,
    Deadlock,
    DeadThread,
    DumpAnalysis,
    Group,
    Headline,
    Holder,
    Odd,
    Still,
    TaskCount,
    ThreadOf,
)
from hprofiler.analysis.dump.sums import analyse

__all__ = [
    "BUSY",
    "DEADLOCK",
    "DIFFERS",
    "HOLDER",
    "MOST",
    "NOTHING",
    "UNMOVED",
    "DeadThread",
    "Deadlock",
    "DumpAnalysis",
    "Group",
    "Headline",
    "Holder",
    "Odd",
    "Still",
    "TaskCount",
    "ThreadOf",
    "analyse",
]
