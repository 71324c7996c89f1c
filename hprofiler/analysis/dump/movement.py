"""What did not move between looks, and what used the CPU meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hprofiler.analysis.dump.reading import Kind, Looked, Moment, Reading, key_of, stage_of
from hprofiler.analysis.dump.result import Still, ThreadOf
from hprofiler.analysis.waits import SLEEP, Wait

# A thread with a larger share of a processor runs: it does not hang, even if it does not move.
_BUSY = 0.1
# What the main threads of programs are called: of Java, of Spark in a cluster, of Python.
_MAIN = {"main", "Driver", "MainThread"}
# Kinds of waits in which they are while others work.
_FOR_OTHERS = {"thread", "queue", "other"}


@dataclass
class _Sum:
    kind: Kind
    first: ThreadOf
    threads: int = 0
    tasks: int = 0
    main: int = 0
    seconds: float = 0.0
    cpu: float | None = None
    processes: set[tuple[str, int]] = field(default_factory=set)

    def still(self, sure: bool) -> Still:
        wait = self.kind.wait
        of_main = self.main == self.threads and wait.doing.kind in _FOR_OTHERS
        return Still(
            wait,
            self.kind.frames,
            self.threads,
            len(self.processes),
            self.tasks,
            self.seconds,
            self.cpu,
            self.first,
            sure,
            rest=not self.tasks and (wait.code == SLEEP or of_main),
        )


class Movement:
    """Adds up process after process. Idle threads are neither busy nor stuck."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        # By what threads do, and whether it is sure that they did not move.
        self._unmoved: dict[tuple[Wait, bool], _Sum] = {}
        self._busy: dict[tuple[Wait, bool], _Sum] = {}

    def add(self, looked: Looked) -> None:
        seconds = looked.seconds
        if len(looked.moments) < 2 or seconds <= 0:
            return
        for place, thread in enumerate(looked.threads):
            key = key_of(thread)
            seen = [moments.get(key) for _, moments in looked.moments]
            moments = [one for one in seen if one is not None]
            if len(moments) < len(seen):
                continue
            kind = self._reading.kind(thread.group)
            cpu = _used(moments)
            is_busy = cpu is not None and cpu > _BUSY * seconds
            same = all((one.stack, one.state) == (moments[0].stack, moments[0].state) for one in moments)
            if not is_busy and (kind.idle or not same or not kind.frames):
                continue
            sums = self._busy if is_busy else self._unmoved
            key_of_sum = (kind.wait, not is_busy and _slept(moments))
            one = sums.setdefault(key_of_sum, _Sum(kind, looked.thread(place)))
            one.threads += 1
            one.main += thread.name in _MAIN
            one.tasks += stage_of(thread.name) is not None
            one.processes.add((looked.process.host, looked.process.pid))
            one.seconds = max(one.seconds, seconds)
            if cpu is not None:
                one.cpu = (one.cpu or 0.0) + cpu

    @property
    def unmoved(self) -> list[Still]:
        """What did not move, those with the most tasks first, those that rest last."""
        still = (one.still(sure) for (_, sure), one in self._unmoved.items())
        return sorted(still, key=lambda one: (-one.tasks, one.rest, not one.sure, -one.threads))

    @property
    def busy(self) -> list[Still]:
        """Those that used the CPU, the busiest first."""
        still = (one.still(sure=False) for one in self._busy.values())
        return sorted(still, key=lambda one: -(one.cpu_seconds or 0))


def _used(moments: Sequence[Moment]) -> float | None:
    first, last = moments[0].cpu, moments[-1].cpu
    return None if first is None or last is None else max(last - first, 0.0)


def _slept(moments: Sequence[Moment]) -> bool:
    """Whether a thread used no CPU time at all. One that is to enter a monitor may have: JDKs up to 23 look
    again each second whether it is free."""
    if moments[0].state == "BLOCKED":
        return True
    exact = [one.exact for one in moments]
    used = exact if None not in exact else [one.cpu for one in moments]
    return None not in used and len(set(used)) == 1
