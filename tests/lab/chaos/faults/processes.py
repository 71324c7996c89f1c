"""Processes that are killed: agent, ssh session, JVM, coordinator; and a second coordinator."""

from __future__ import annotations

import random
import re
import signal

from tests.lab import procs
from tests.lab.chaos.fault import Circumstances, Excuse, Fault, Moment, any_moment, while_recording
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running
from tests.lab.hosts import Host

AGENT = re.compile(r"^\S*/agent-[0-9a-f]{64}\b")
SESSION = re.compile(r"^sshd: \S+@")


def matching(host: Host, pattern: re.Pattern[str]) -> list[procs.Identity]:
    """The host's processes whose command line matches."""
    found = [procs.Identity.of(seen.pid) for seen in host.processes() if pattern.search(seen.command)]
    return [identity for identity in found if identity]


class _KilledHelper(Fault):
    """kill -9 of what serves the run on a host, mostly while there is something to lose."""

    pattern = AGENT

    def choose_moment(self) -> Moment | None:
        mostly = self.chance.random() < 0.7
        return (while_recording if mostly else any_moment)(self.chance, Circumstances.duration)

    def begin(self, running: Running | None) -> None:
        self.struck = False
        for process in matching(self.ground.host(self.host), self.pattern):
            self.struck = True
            process.kill()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}))


class KilledAgent(_KilledHelper):
    """It cannot tidy up."""

    name = "agent killed"


class KilledSession(_KilledHelper):
    """The host's sshd that serves the connection."""

    name = "ssh session killed"
    pattern = SESSION

    def excuse(self) -> Excuse:
        """Another connection fetches what was recorded; before that there is nothing to fetch."""
        recorded = self.moment is not None and self.moment.times == len(self.ground.names)
        return Excuse(frozenset({self.host}), kept=frozenset({self.host} if recorded else ()))


class KilledJvm(Fault):
    """kill -9 of a JVM while it is recorded."""

    name = "JVM killed"

    def begin(self, running: Running | None) -> None:
        self.ground.burners[self.host].kill()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}), ended=frozenset({self.host}))


class _EndedCoordinator(Fault):
    """A signal that ends the coordinator; afterwards a second run works."""

    weight = 0.5  # hosts keep what they recorded for a lease, which is waited for
    number = signal.SIGKILL

    def begin(self, running: Running | None) -> None:
        assert running
        running.signal(self.number)

    def where(self) -> str:
        return "the coordinator"

    def excuse(self) -> Excuse:
        return Excuse(
            frozenset(self.ground.names), frozenset({-self.number, 128 + self.number}), everything=True
        )

    def complaints(self) -> list[str]:
        again = self.ground.run()
        return [] if again.code == 0 else [f"the run after it: {again}"]


class KilledCoordinator(_EndedCoordinator):
    name = "coordinator killed"


class TerminatedCoordinator(_EndedCoordinator):
    name = "coordinator terminated"
    number = signal.SIGTERM


class HungUpCoordinator(_EndedCoordinator):
    name = "coordinator hung up"
    number = signal.SIGHUP


class SecondCoordinator(Fault):
    """The same command from a second coordinator: each JVM is recorded by one of them at least."""

    name = "two coordinators"
    alone = True

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self._first: Running | None = None
        self._second: Running | None = None
        self._circumstances = Circumstances()

    def arrange(self, circumstances: Circumstances) -> None:
        self._circumstances = circumstances

    def begin(self, running: Running | None) -> None:
        self._first = running
        self._second = self.ground.start(self._circumstances.duration, self._circumstances.timeout)

    def end(self) -> None:
        if self._second:
            self._second.result()

    def where(self) -> str:
        return "all hosts"

    def excuse(self) -> Excuse:
        return Excuse(frozenset(self.ground.names))

    def complaints(self) -> list[str]:
        """A JVM that neither has, and one that the second has not and does not say why."""
        if not self._first or not self._second:
            return []
        first, second = self._first.result(), self._second.result()
        if second.folder is None:
            return [f"the second coordinator has no run folder: {second}"]
        silent = [
            f"{name}: the second coordinator does not say why it has no recording"
            for name in self.ground.names
            if not second.pids(name) and not second.outcomes(name, "failed")
        ]
        return silent + [
            f"{name}: neither coordinator has a recording"
            for name in self.ground.names
            if not first.pids(name) and not second.pids(name)
        ]


FAULTS: list[type[Fault]] = [
    KilledAgent,
    KilledSession,
    KilledJvm,
    KilledCoordinator,
    TerminatedCoordinator,
    HungUpCoordinator,
    SecondCoordinator,
]
