"""Hosts that stand still for a while: SIGSTOP, then SIGCONT."""

from __future__ import annotations

import random
import signal

from tests.lab import procs
from tests.lab.chaos.fault import Circumstances, Excuse, Fault
from tests.lab.chaos.faults.processes import AGENT, SESSION, matching
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running


class FrozenSession(Fault):
    """The agent and its sshd stand still, for less time than the run waits."""

    name = "agent and sshd frozen"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.lasts = chance.uniform(0.5, 4.0)
        self._still: list[procs.Identity] = []

    def victims(self) -> list[procs.Identity]:
        host = self.ground.host(self.host)
        return matching(host, SESSION) + matching(host, AGENT)

    def begin(self, running: Running | None) -> None:
        self._still = self.victims()
        for process in self._still:
            process.kill(signal.SIGSTOP)

    def end(self) -> None:
        for process in reversed(self._still):
            process.kill(signal.SIGCONT)

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}), kept=frozenset({self.host}))


class FrozenHost(FrozenSession):
    """Everything on a host stands still, its JVM too.

    A host freezes and thaws as one: the JVM goes last, once nothing is left that could begin an agent, and
    comes back first. No agent ever sees it stand.
    """

    name = "host frozen"

    def victims(self) -> list[procs.Identity]:
        """All that still goes on but the JVM, sessions first."""
        host, first = self.ground.host(self.host), super().victims()
        everything = [procs.Identity.of(seen.pid) for seen in host.processes() if seen.inner_pid != 1]
        others = [identity for identity in everything if identity and identity not in first]
        left_out = [*self._still, self.ground.burners[self.host].outer]
        return [identity for identity in (*first, *others) if identity not in left_out]

    def begin(self, running: Running | None) -> None:
        self._still = []
        while going_on := self.victims():
            self._stop(going_on)
        self._stop([self.ground.burners[self.host].outer])

    def _stop(self, processes: list[procs.Identity]) -> None:
        for process in processes:
            process.kill(signal.SIGSTOP)
        self._still += processes

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, kept=here, still=here)


class FrozenForLong(FrozenHost):
    """A host that stands still for longer than the run waits for it."""

    name = "host frozen, for long"
    weight = 0.15

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.lasts = None

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.timeout = 10

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, still=here)


FAULTS: list[type[Fault]] = [FrozenSession, FrozenHost, FrozenForLong]
