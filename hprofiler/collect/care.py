"""For the sake of the hosts: a busy one is left alone, and the agent takes little of any."""

from __future__ import annotations

from dataclasses import dataclass

from hprofiler.agent import MAX_RECORDED
from hprofiler.base.errors import HostError
from hprofiler.model import HostFacts

BUSY = 200.0
"""Tasks that want to run, for each processor, from which on a host is left alone."""
LITTLE_MEMORY = 64 << 20
"""Bytes that are to be free."""

AGENT_CPU = 1.0
"""Processors that an agent uses on average, where nobody says otherwise."""
_ATTACH = 0.5  # seconds for each process, where none answers: more than agents give them
_MOST_PROCESSES = MAX_RECORDED  # whatever a host says that it has found
_STEPS_TO_FETCH = 10  # a link of a megabit a second carries 75 MB in the 10 minutes that these usually are
_STEPS_AFTER_STOP = 2
_AGENT_GIVES_WAY = 2.0  # how much longer the end of a recording may take on a host that has much to do


@dataclass(frozen=True)
class Care:
    """`canary`: of each kind of JVM one is recorded alone first. `busy`: busy hosts are not left alone.

    `agent_cpu`: processors that an agent may use on average.
    """

    canary: bool = False
    busy: bool = False
    agent_cpu: float = AGENT_CPU

    def attaching(self, timeout: float, processes: int) -> float:
        """Seconds for a step in which so many processes are attached to: not all at once."""
        return timeout + _ATTACH * min(processes, _MOST_PROCESSES)

    def folding(self, timeout: float, processes: int) -> float:
        """Seconds, after the recording or one of its results, until the next result."""
        return self.attaching(_AGENT_GIVES_WAY * timeout / min(1.0, self.agent_cpu), processes)

    def fetching(self, timeout: float, processes: int) -> float:
        """Seconds, after the recording, for all of its results; none that comes gives the others more."""
        return self.folding(_STEPS_TO_FETCH * timeout, processes)

    def fetching_after_stop(self, timeout: float, processes: int) -> float:
        """The same for somebody who waits for the end."""
        return self.folding(_STEPS_AFTER_STOP * timeout, processes)


USUAL = Care()


def refuse_busy(facts: HostFacts) -> None:
    """Raises HostError for a host that has neither time nor room for anything more."""
    anyway = "or record all the same with --force-busy"
    if facts.load > BUSY * facts.cpus:
        busy = f"the host is busy: load {facts.load:.0f} on {facts.cpus} processors"
        raise HostError("find", busy, f"wait until it has less to do, {anyway}")
    free = facts.memory_available
    if free is not None and free < LITTLE_MEMORY:
        short = f"the host has only {free >> 20} MiB of memory free"
        raise HostError("find", short, f"free some of its memory, {anyway}")
