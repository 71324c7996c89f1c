"""What did not move between looks, and what used the CPU meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hprofiler.analysis.dump.reading import Kind, Looked, Moment, Reading, key_of, stage_of
from hprofiler.analysis.dump.result import Still, ThreadOf
from hprofiler.analysis.waits import Wait

# A thread with a larger share of a processor runs: it does not hang, even if it does not move.
_BUSY = 0.1


@dataclass
class _Sum:
    kind: Kind
    first: ThreadOf
    threads: int = 0
    tasks: int = 0
    seconds: float = 0.0
    cpu: float | None = None
    processes: set[tuple[str, int]] = field(default_factory=set)

    def still(self) -> Still:
        return Still(
            self.kind.wait,
            self.kind.frames,
            self.threads,
            len(self.processes),
            self.tasks,
            self.seconds,
            self.cpu,
            self.first,
        )


class Movement:
    """Adds up process after process. Idle threads are neither busy nor stuck."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._unmoved: dict[Wait, _Sum] = {}
        self._busy: dict[Wait, _Sum] = {}

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
            one = sums.setdefault(kind.wait, _Sum(kind, looked.thread(place)))
            one.threads += 1
            one.tasks += stage_of(thread.name) is not None
            one.processes.add((looked.process.host, looked.process.pid))
            one.seconds = max(one.seconds, seconds)
            if cpu is not None:
                one.cpu = (one.cpu or 0.0) + cpu

    @property
    def unmoved(self) -> list[Still]:
        """What did not move, those with the most tasks first."""
        still = (one.still() for one in self._unmoved.values())
        return sorted(still, key=lambda one: (-one.tasks, -one.threads))

    @property
    def busy(self) -> list[Still]:
        """Those that used the CPU, the busiest first."""
        return sorted((one.still() for one in self._busy.values()), key=lambda one: -(one.cpu_seconds or 0))


def _used(moments: Sequence[Moment]) -> float | None:
    first, last = moments[0].cpu, moments[-1].cpu
    return None if first is None or last is None else max(last - first, 0.0)
