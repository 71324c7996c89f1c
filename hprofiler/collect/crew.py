"""What the visits of one command share: how hosts are reached, who may connect now, and who is told of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from hprofiler.agent import AgentBinaries
from hprofiler.collect.audit import Audit
from hprofiler.collect.beside import Beside
from hprofiler.collect.machines import Machines
from hprofiler.collect.stop import Stop
from hprofiler.collect.teller import Teller
from hprofiler.collect.watchdog import Watchdog
from hprofiler.model import Host
from hprofiler.transport import Transport


@dataclass(frozen=True)
class Reach:
    """How hosts are reached: `parallel` connects at once, `timeout` seconds for each step on each host.

    With an `audit` everything that is done to them is recorded there.
    """

    transport_for: Callable[[Host], Transport]
    binaries: AgentBinaries
    parallel: int = 32
    timeout: float = 30.0
    audit: Audit | None = None


@dataclass(frozen=True)
class HostProgress:
    """One step of one host: an outcome's `stage`, or `wait` (for the others), `idle`, `failed`, `done`.

    A host that is `lost` is sought for so many `seconds`. `stop` is of no host: the user ends the run.
    """

    host: str
    stage: str
    detail: str = ""
    processes: int = 0
    seconds: float = 0.0


Listener = Callable[[HostProgress], None]


def silent(progress: HostProgress) -> None:
    """A listener that does not care."""


class Crew:
    """What the visits of one command share."""

    def __init__(
        self, reach: Reach, listener: Listener, stop: Stop, under_way: Callable[[], None] = lambda: None
    ) -> None:
        self.reach = reach
        self.turns = threading.BoundedSemaphore(max(1, reach.parallel))
        self.beside = Beside()
        self.watchdog = Watchdog(self.beside)
        self.machines = Machines()
        self.stop = stop
        self.under_way = under_way
        self.finished = threading.Event()
        self.teller = Teller(listener)
        self._left = 0
        self._counting = threading.Lock()

    def expect(self, visits: int) -> None:
        """So many visits are about to begin."""
        self._left = visits
        if not visits:
            self.finished.set()

    def ended(self) -> None:
        """One visit is over."""
        with self._counting:
            self._left -= 1
            if not self._left:
                self.finished.set()
