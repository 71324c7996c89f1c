"""JVMs in trouble of their own while they are recorded."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from typing import List, Optional, Type

from tests.lab import attach, procs
from tests.lab.chaos.fault import BEFORE, Circumstances, Excuse, Fault, Moment, any_moment
from tests.lab.chaos.ground import Ground
from tests.lab.coordinator import Running


class StoppedJvm(Fault):
    """A debugger holds it for a while: attaching hangs, and nothing is sampled."""

    name = "JVM stopped"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.lasts = chance.uniform(0.2, 8.0)
        self._stopped: Optional[procs.Identity] = None

    def choose_moment(self) -> Optional[Moment]:
        before = self.chance.random() < 0.3
        return BEFORE if before else any_moment(self.chance, Circumstances.duration)

    def begin(self, running: Optional[Running]) -> None:
        self._stopped = self.ground.burners[self.host].outer
        self._stopped.kill(signal.SIGSTOP)

    def end(self) -> None:
        if self._stopped:
            self._stopped.kill(signal.SIGCONT)

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, still=here)


class EndedJvm(Fault):
    """It ends in good order, at any moment."""

    name = "JVM ended"

    def begin(self, running: Optional[Running]) -> None:
        self.ground.burners[self.host].finish()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}), ended=frozenset({self.host}))


class GcStorm(Fault):
    """One full collection after the other, asked for through the same door that the profiler comes by."""

    name = "GC storm"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self._over = threading.Event()
        self._storm: Optional[threading.Thread] = None

    def choose_moment(self) -> Optional[Moment]:
        return BEFORE

    def begin(self, running: Optional[Running]) -> None:
        self._storm = threading.Thread(target=self._collect, daemon=True)
        self._storm.start()

    def _collect(self) -> None:
        pid = self.ground.burners[self.host].outer.pid
        with contextlib.suppress(OSError, TimeoutError):  # another fault may end the JVM
            while not self._over.is_set():
                attach.execute(pid, "jcmd", "GC.run")

    def end(self) -> None:
        self._over.set()
        if self._storm:
            self._storm.join(procs.PATIENCE)


FAULTS: List[Type[Fault]] = [StoppedJvm, EndedJvm, GcStorm]
