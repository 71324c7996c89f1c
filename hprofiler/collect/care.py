"""For the sake of the hosts: a busy one is left alone, and one process goes before all like it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Callable, Counter, Dict, Optional, Set, Tuple

from hprofiler.errors import HostError
from hprofiler.model import HostFacts

BUSY = 200.0
"""Tasks that want to run, for each processor, from which on a host is left alone."""
LITTLE_MEMORY = 64 << 20
"""Bytes that are to be free."""

TRIES = 5
"""Canaries of one kind, on all hosts, of which nothing was learnt: then no more are tried."""
NO_CANARY = "look at the first before others are recorded; --no-canary records them all the same"

Kind = Tuple[str, str]


AGENT_CPU = 1.0
"""Processors that an agent uses on average, where nobody says otherwise."""
_ATTACH = 0.5  # seconds for each process, where none answers: more than agents give them
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
        return timeout + _ATTACH * processes

    def folding(self, timeout: float, processes: int) -> float:
        """Seconds, after the recording or one of its results, until the next result."""
        return self.attaching(_AGENT_GIVES_WAY * timeout / min(1.0, self.agent_cpu), processes)


USUAL = Care()


def refuse_busy(facts: HostFacts) -> None:
    """Raises HostError for a host that has neither time nor room for anything more."""
    remedy = "wait until it has less to do, or record all the same with --force-busy"
    if facts.load > BUSY * facts.cpus:
        raise HostError("find", f"the host is busy: load {facts.load:.0f} on {facts.cpus} processors", remedy)
    free = facts.memory_available
    if free is not None and free < LITTLE_MEMORY:
        raise HostError("find", f"the host has only {free >> 20} MiB of memory free", remedy)


class Canaries:
    """Which kinds of JVM may be recorded. A kind is an architecture and a JVM's version."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: Set[Kind] = set()
        self._verdicts: Dict[Kind, str] = {}
        self._in_vain: Counter[Kind] = Counter()

    def known(self, kind: Kind) -> Optional[str]:
        """Why processes of this kind are not to be recorded, "" where they may be; None: not known yet."""
        with self._changed:
            return self._verdicts.get(kind)

    def verdict(
        self, kind: Kind, watch: Callable[[], Optional[str]], check: Callable[[], None]
    ) -> Optional[str]:
        """The same, for certain: who asks first has a process of its own watched.

        `watch` gives the verdict, or None where nothing was learnt, and so does this. Then the next who asks
        is the first again, `TRIES` times. A host that is lost meanwhile speaks against the kind. The
        others wait; `check` raises where they shall wait no longer.
        """
        with self._changed:
            while kind in self._under_way:
                self._changed.wait(1.0)
                check()
            if kind in self._verdicts:
                return self._verdicts[kind]
            self._under_way.add(kind)
        learnt: Optional[str] = None
        try:
            learnt = watch()
        except HostError as lost:
            learnt = f"none like it is recorded after the host of the first was lost: {lost.reason}"
            raise
        finally:
            self._learn(kind, learnt)
        return learnt

    def _learn(self, kind: Kind, learnt: Optional[str]) -> None:
        with self._changed:
            self._under_way.discard(kind)
            if learnt is None:
                self._in_vain[kind] += 1
                if self._in_vain[kind] == TRIES:
                    learnt = f"none like it is recorded: {TRIES} were tried alone first, and not one could be"
            if learnt is not None:
                self._verdicts[kind] = learnt
            self._changed.notify_all()
