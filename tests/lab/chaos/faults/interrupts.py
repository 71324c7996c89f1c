"""Ctrl-C, from before the first connection to while the report is made."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass

from tests.lab.chaos.fault import Circumstances, Excuse, Fault, Moment
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running

_CODES = frozenset({130, -signal.SIGINT})
"""A shell says 130 either way; the second is that of an interpreter that begins or has done its work."""


class Interrupt(Fault):
    """Ctrl-C: what was recorded is kept, and can be made into a report."""

    name = "Ctrl-C"
    weight = 2.0

    def begin(self, running: Running | None) -> None:
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

    def begin(self, running: Running | None) -> None:
        super().begin(running)
        self.lasts = self.chance.uniform(0.0, 0.5)
        self._running = running

    def end(self) -> None:
        if self.struck and self._running and self._running.process.poll() is None:
            self._running.signal(signal.SIGINT)


@dataclass(frozen=True)
class Stage:
    """A part of a run: from `least` to `most` seconds after so many lines of stderr match `pattern`."""

    pattern: str
    least: float
    most: float
    times: int = 1


_END = Circumstances.duration
STAGES: dict[str, Stage] = {
    "it starts": Stage("", 0.03, 0.25),
    "it connects": Stage("^note: -j", 0.0, 0.3),
    "agents come and look": Stage("^note: -j", 0.3, 0.6),
    "they prepare": Stage(": ready", 0.0, 0.1),
    "sampling begins": Stage(": recording", 0.0, 0.2),
    "the first half": Stage(": recording", 0.2, 0.5 * _END),
    "the second half": Stage(": recording", 0.5 * _END, 0.9 * _END),
    "sampling ends, profiles come": Stage(": recording", 0.95 * _END, 1.05 * _END),
    "the report begins": Stage(": done", 0.0, 0.08, times=3),
    "the report ends": Stage(": done", 0.08, 0.2, times=3),
}
"""Ten parts of a run, which are all of it."""


class InterruptIn(Interrupt):
    """Ctrl-C at a moment of one of the stages."""

    def __init__(self, stage: str, ground: Ground, chance: random.Random) -> None:
        self._stage = stage
        super().__init__(ground, chance)

    def choose_moment(self) -> Moment | None:
        stage = STAGES[self._stage]
        return Moment(stage.pattern, self.chance.uniform(stage.least, stage.most), stage.times)

    def where(self) -> str:
        return f"the coordinator, when {self._stage}"


FAULTS: list[type[Fault]] = [Interrupt, InterruptTwice]
