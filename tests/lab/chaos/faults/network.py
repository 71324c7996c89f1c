"""The network: cables that are pulled and put back, packets that are lost, a link that is slow."""

from __future__ import annotations

import subprocess

from tests.lab.chaos.fault import LEASE, Circumstances, Excuse, Fault, Moment, any_moment, while_recording
from tests.lab.chaos.faults.processes import SESSION, matching
from tests.lab.coordinator import Running


class Unplugged(Fault):
    """The cable out for less time than the run waits for an answer: nobody notices."""

    name = "cable out, briefly"

    def choose_moment(self) -> Moment | None:
        self.lasts = self.chance.uniform(0.2, 3.0)
        return any_moment(self.chance, Circumstances.duration)

    def begin(self, running: Running | None) -> None:
        self._before = matching(self.ground.host(self.host), SESSION)
        self.ground.lab.plug(self.host, False)

    def end(self) -> None:
        self.ground.lab.plug(self.host, True)


class Cut(Unplugged):
    """The cable out until the run is over: the host's lease ends what is there."""

    name = "cable out"
    weight = 0.15

    def choose_moment(self) -> Moment | None:
        return any_moment(self.chance, Circumstances.duration)

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.timeout = 10

    def end(self) -> None:
        super().end()
        # the host's own sshd hangs on a connection that nobody has any more
        for session in matching(self.ground.host(self.host), SESSION):
            session.kill()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}))


class CutForLong(Unplugged):
    """The cable out for longer than a lease, and in again before the run is over."""

    name = "cable out, longer than a lease"
    weight = 0.1

    def choose_moment(self) -> Moment | None:
        self.lasts = LEASE + 8
        return while_recording(self.chance, 10)

    def arrange(self, circumstances: Circumstances) -> None:
        circumstances.duration = LEASE + 30
        circumstances.timeout = 10

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}), kept=frozenset({self.host}))


class _Rule(Fault):
    """A rule at the coordinator's end of the host's cable."""

    weight = 1.0

    def choose_moment(self) -> Moment | None:
        return None if self.chance.random() < 0.5 else any_moment(self.chance, Circumstances.duration)

    def tc(self, *words: str, check: bool = True) -> None:
        command = ["nsenter", "-t", str(self.ground.lab.coord.init.pid), "-n", "tc", *words]
        subprocess.run(command, check=check, capture_output=not check)

    @property
    def device(self) -> list[str]:
        return ["dev", f"v-{self.host}"]


class Lossy(_Rule):
    """A part of the packets is lost both ways; by a classifier, for the lab's kernel may have no netem.

    Four instructions of the kernel's packet filter: load a random number; below the limit drop, else pass.
    """

    name = "packets lost"

    def begin(self, running: Running | None) -> None:
        limit = int(self.chance.uniform(0.01, 0.1) * 2**32)
        program = f"4,32 0 0 4294963256,53 1 0 {limit},6 0 0 2,6 0 0 4294967295"
        self.tc("qdisc", "add", *self.device, "clsact")
        for way in ("ingress", "egress"):
            self.tc("filter", "add", *self.device, way, "bpf", "da", "bytecode", program)

    def end(self) -> None:
        self.tc("qdisc", "del", *self.device, "clsact", check=False)


class Slow(_Rule):
    """A narrow link with a long queue: what is sent waits. A run gives up one below 0.8 Mbit/s."""

    name = "slow link"

    def begin(self, running: Running | None) -> None:
        rate = f"{self.chance.choice((1, 2, 5))}mbit"
        self.tc("qdisc", "add", *self.device, "root", "tbf", "rate", rate, "burst", "3k", "limit", "500k")

    def end(self) -> None:
        self.tc("qdisc", "del", *self.device, "root", check=False)


FAULTS: list[type[Fault]] = [Unplugged, Cut, CutForLong, Lossy, Slow]
