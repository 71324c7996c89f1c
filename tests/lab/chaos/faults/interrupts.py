"""Ctrl-C, from before the first connection to while the report is made."""

from __future__ import annotations

import signal
from typing import List, Optional, Type

from tests.lab.chaos.fault import Excuse, Fault
from tests.lab.coordinator import Running

_CODES = frozenset({130, -signal.SIGINT})
"""A shell says 130 either way; the second is that of an interpreter that begins or has done its work."""


class Interrupt(Fault):
    """Ctrl-C: what was recorded is kept, and can be made into a report."""

    name = "Ctrl-C"
    weight = 2.0

    def begin(self, running: Optional[Running]) -> None:
        assert running
        running.signal(signal.SIGINT)

    def where(self) -> str:
        return "the coordinator"

    def excuse(self) -> Excuse:
        return Excuse(frozenset(self.ground.names), _CODES, everything=True)


class InterruptTwice(Interrupt):
    """Ctrl-C, and again soon after: it ends at once."""

    name = "Ctrl-C twice"
    weight = 1.0

    def begin(self, running: Optional[Running]) -> None:
        super().begin(running)
        self.lasts = self.chance.uniform(0.0, 0.5)
        self._running = running

    def end(self) -> None:
        if self.struck and self._running and self._running.process.poll() is None:
            self._running.signal(signal.SIGINT)


FAULTS: List[Type[Fault]] = [Interrupt, InterruptTwice]
