"""JVMs in trouble of their own while they are recorded."""

from __future__ import annotations

import contextlib
import random
import signal
import threading

from tests.lab import attach, procs
from tests.lab.chaos import debugger
from tests.lab.chaos.debugger import Debugger, JvmGone
from tests.lab.chaos.fault import BEFORE, Circumstances, Excuse, Fault, Moment, any_moment
from tests.lab.chaos.ground import TIED, Ground
from tests.lab.coordinator import Running

STALLED = "/data/stalled"
STALLING = ("-XX:-UseCountedLoopSafepoints", f"-Dstalling={STALLED}")


class StoppedJvm(Fault):
    """It stands still for a while (SIGSTOP): attaching hangs, and nothing is sampled."""

    name = "JVM stopped"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.lasts = chance.uniform(0.2, 8.0)
        self._stopped: procs.Identity | None = None

    def choose_moment(self) -> Moment | None:
        before = self.chance.random() < 0.3
        return BEFORE if before else any_moment(self.chance, Circumstances.duration)

    def begin(self, running: Running | None) -> None:
        self._stopped = self.ground.burners[self.host].outer
        self._stopped.kill(signal.SIGSTOP)

    def end(self) -> None:
        if self._stopped:
            self._stopped.kill(signal.SIGCONT)

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, still=here)


class DebuggedJvm(Fault):
    """A debugger suspends all its threads for a while; who did not attach before has to wait."""

    name = "JVM held by a debugger"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self.lasts = chance.uniform(0.2, 8.0)
        self._debugger: Debugger | None = None

    def choose_moment(self) -> Moment | None:
        before = self.chance.random() < 0.3
        return BEFORE if before else any_moment(self.chance, Circumstances.duration)

    def settle(self) -> None:
        self.ground.replace(self.host, debugger.OPTION)

    def arrange(self, circumstances: Circumstances) -> None:
        network = ["nsenter", "-t", str(self.ground.host(self.host).init.pid), "-n"]
        self._debugger = Debugger([*TIED, *network])

    def begin(self, running: Running | None) -> None:
        assert self._debugger
        with contextlib.suppress(JvmGone):  # by another fault
            self._debugger.hold()

    def end(self) -> None:
        if self._debugger:
            self._debugger.kill()

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, still=here)


class LongSafepoint(Fault):
    """Whatever needs all threads to stop takes seconds, and then they all wait: attaching is such a thing."""

    name = "long safepoints"

    def choose_moment(self) -> Moment | None:
        return BEFORE

    def settle(self) -> None:
        self.ground.replace(self.host, *STALLING, main="Stalling")

    def begin(self, running: Running | None) -> None:
        self.ground.host(self.host).path(STALLED).touch()

    def end(self) -> None:
        self.ground.host(self.host).path(STALLED).unlink(missing_ok=True)

    def excuse(self) -> Excuse:
        here = frozenset({self.host})
        return Excuse(here, still=here)


class EndedJvm(Fault):
    """It ends in good order, at any moment."""

    name = "JVM ended"

    def begin(self, running: Running | None) -> None:
        self.ground.burners[self.host].finish()

    def excuse(self) -> Excuse:
        return Excuse(frozenset({self.host}), ended=frozenset({self.host}))


class GcStorm(Fault):
    """One full collection after the other, asked for through the same door that the profiler comes by."""

    name = "GC storm"

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        super().__init__(ground, chance)
        self._over = threading.Event()
        self._storm: threading.Thread | None = None

    def choose_moment(self) -> Moment | None:
        return BEFORE

    def begin(self, running: Running | None) -> None:
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


FAULTS: list[type[Fault]] = [StoppedJvm, DebuggedJvm, LongSafepoint, EndedJvm, GcStorm]
