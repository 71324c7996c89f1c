"""Safety limits: what hosts are asked for at most, and which hosts are skipped."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hprofiler.agent.messages import MAX_RECORDED, ProcessOutcome
from hprofiler.base.errors import HostError
from hprofiler.model import HostFacts, Process, Status

BUSY = 200.0
"""Runnable tasks per processor above which a host is left alone."""
LITTLE_MEMORY = 64 << 20
"""Bytes of memory that must be free."""

AGENT_CPU = 1.0
"""Processors that an agent uses on average by default."""
_ATTACH = 0.5  # seconds per process that does not answer; longer than the agent waits
_STEPS_TO_FETCH = 10  # 1 Mbit/s carries 75 MB in 10 minutes
_STEPS_AFTER_STOP = 2
_AGENT_GIVES_WAY = 2.0  # how much longer the end of a recording may take on a busy host

# Each host takes one open file, with a ProxyCommand three. macOS allows no more than OPEN_MAX. Elsewhere a
# million may be allowed, but some programs that we start close every file they could have inherited.
_OPEN_FILES = 10_240 if sys.platform == "darwin" else 65_536
# Of prctl, since Linux 6.16.
_FUTEX_HASH, _SET_SLOTS = 78, 1
_THREADS_OF_HOST = 4
_FEW_HOSTS = 100


@dataclass(frozen=True)
class Care:
    """`canary`: record one JVM of each kind alone first. `busy`: record on busy hosts too.

    `agent_cpu`: processors that an agent may use on average.
    """

    canary: bool = False
    busy: bool = False
    agent_cpu: float = AGENT_CPU

    def attaching(self, timeout: float, processes: int) -> float:
        """Seconds for a step that attaches to N processes: not all at once."""
        return timeout + _ATTACH * min(processes, MAX_RECORDED)

    def folding(self, timeout: float, processes: int) -> float:
        """Seconds, after the recording or one of its results, until the next result."""
        return self.attaching(_AGENT_GIVES_WAY * timeout / min(1.0, self.agent_cpu), processes)

    def fetching(self, timeout: float, processes: int) -> float:
        """Seconds, after the recording, for all of its results."""
        return self.folding(_STEPS_TO_FETCH * timeout, processes)

    def fetching_after_stop(self, timeout: float, processes: int) -> float:
        """The same, for a user who waits for the end."""
        return self.folding(_STEPS_AFTER_STOP * timeout, processes)


USUAL = Care()


def refuse_busy(facts: HostFacts) -> None:
    """Raises HostError for a host without free memory or with a very high load."""
    anyway = "or record anyway with --force-busy"
    if facts.load > BUSY * facts.cpus:
        busy = f"the host is busy: load {facts.load:.0f} on {facts.cpus} processors"
        raise HostError(
            "find",
            busy,
            f"wait until it has less to do, {anyway}",
            code="host-busy",
            parameters={"load": facts.load, "cpus": facts.cpus},
        )
    free = facts.memory_available
    if free is not None and free < LITTLE_MEMORY:
        short = f"the host has only {free >> 20} MiB of memory free"
        raise HostError(
            "find",
            short,
            f"free some of its memory, {anyway}",
            code="host-busy",
            parameters={"memory_available": free},
        )


def first_processes(
    processes: Sequence[Process], earlier: int = 0
) -> tuple[Sequence[Process], Sequence[ProcessOutcome]]:
    """As many processes as a session records after `earlier` ones, and a failure for each of the others.

    Users take turns, so one user with thousands of processes displaces nobody else.
    """
    room = max(0, MAX_RECORDED - earlier)
    turns: Counter[int] = Counter()

    def turn(process: Process) -> int:
        turns[process.uid] += 1
        return turns[process.uid]

    if len(processes) > room:
        processes = sorted(processes, key=turn)
    count = earlier + len(processes)
    reason = f"{count} processes exceed the limit of {MAX_RECORDED} per host"
    remedy = "use a narrower selector, or name processes: -j pid:PID"
    return processes[:room], tuple(
        ProcessOutcome(
            one.pid,
            Status.FAILED,
            "prepare",
            reason,
            remedy,
            code="too-many-processes",
            parameters={"processes": count, "most": MAX_RECORDED},
        )
        for one in processes[room:]
    )


def allow_many_open_files() -> None:
    """Raise the soft limit of open files, for very many hosts."""
    with contextlib.suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def allow_many_threads(hosts: int) -> None:
    """Have the kernel find a sleeping thread quickly, for very many hosts.

    Since Linux 6.16 a process keeps its sleeping threads in a few lists for each processor, and every wake
    walks along one: with thousands of threads that takes longer than their work.
    """
    if hosts <= _FEW_HOSTS:
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):  # another system
        import ctypes

        slots = 1 << (_THREADS_OF_HOST * hosts).bit_length()
        ctypes.CDLL(None).prctl(_FUTEX_HASH, _SET_SLOTS, slots, 0, 0)
