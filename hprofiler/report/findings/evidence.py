"""What is remembered of each host while its profiles are read: the JVM's own work, and the kernel's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hprofiler._flamegraph import Profile, category_patterns
from hprofiler.report.facts import HostFacts, RecordingFacts, RunFacts


@dataclass
class Work:
    """Parts of `total`, in the value that is shown: garbage collection, the JIT compilers, kernel code."""

    total: int = 0
    gc: int = 0
    jit: int = 0
    kernel: int = 0

    def share(self, kind: str) -> float:
        part: int = getattr(self, kind)
        return part / self.total if self.total else 0.0

    def add(self, other: Work) -> None:
        self.total += other.total
        self.gc += other.gc
        self.jit += other.jit
        self.kernel += other.kernel


class Evidence:
    """Takes the profiles of an event's processes one by one, and keeps sums a host only.

    Threads that wait are in garbage collection or compilers all the time: only CPU time tells.
    """

    def __init__(self, facts: RunFacts) -> None:
        self._tells = facts.event == "cpu"
        self.hosts: dict[str, Work] = {}

    def add(self, host: HostFacts, recording: RecordingFacts, profile: Profile) -> None:
        """A process's profile, the value shown first; groups of threads may be its outermost frames."""
        if not self._tells or not profile.total():
            return
        kernel = sum(frame.self_value for frame in profile.frames() if frame.kind == "kernel")
        gc, jit = (profile.filter(include=category_patterns(work)).total() for work in ("gc", "jit"))
        self.hosts.setdefault(host.key, Work()).add(Work(profile.total(), gc, jit, kernel))

    def cluster(self) -> Work:
        return summed(self.hosts.values())


def summed(works: Iterable[Work]) -> Work:
    whole = Work()
    for work in works:
        whole.add(work)
    return whole
