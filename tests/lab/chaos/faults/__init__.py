"""Every fault there is, by name. A new one is a class in a file here and a word in its list."""

from __future__ import annotations

from tests.lab.chaos.fault import Fault
from tests.lab.chaos.faults import (
    clocks,
    freezing,
    interrupts,
    jvms,
    limits,
    network,
    processes,
    scarce,
)

_EVERY: list[type[Fault]] = [
    *processes.FAULTS,
    *interrupts.FAULTS,
    *network.FAULTS,
    *freezing.FAULTS,
    *clocks.FAULTS,
    *scarce.FAULTS,
    *limits.FAULTS,
    *jvms.FAULTS,
]
ALL: dict[str, type[Fault]] = {fault.name: fault for fault in _EVERY}
