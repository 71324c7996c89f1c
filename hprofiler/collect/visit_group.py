"""All visits of a command, each on its own thread, and what they share."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.base.errors import HostError
from hprofiler.collect.audit import Audit
from hprofiler.collect.limits import allow_many_open_files, allow_many_threads
from hprofiler.collect.stop import AT_ONCE, Stop, on_interrupt
from hprofiler.model import Host, HostFacts, Process
from hprofiler.transport.base import Transport

if TYPE_CHECKING:
    from hprofiler.collect.visit import Visit

_TICK = 0.1
_VISITS_OF_TICK = 1000
_LAST_STEPS = 3.0
_WAKE_EACH_OTHER = 8
_SWITCH_SECONDS = 40e-6
_LONGEST_SWITCH = 0.2
_REMEDY = (
    "raise the limits (`ulimit -u`; `pids.max` and TasksMax of the control group), "
    "or visit fewer hosts in one run"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reach:
    """How hosts are reached: `parallel` connects at once, `timeout` seconds for each step on each host.

    With an `audit` everything that is done to them is recorded there.
    """

    transport_for: Callable[[Host], Transport]
    binaries: AgentBinaries
    parallel: int = 32
    timeout: float = 30.0
    audit: Audit | None = None


@dataclass(frozen=True)
class HostProgress:
    """One step of one host: an outcome's `stage`, or `wait` (for the others), `idle`, `failed`, `done`.

    A host that is `lost` is reconnected to for up to `seconds`. `stop` has no host: the user ends the run.
    """

    host: str
    stage: str
    detail: str = ""
    processes: int = 0
    seconds: float = 0.0


Listener = Callable[[HostProgress], None]


def silent(progress: HostProgress) -> None:
    """A listener that ignores everything."""


class Machines:
    """The visit that finds a process first records it.

    A pid is unique only within a pid namespace and a boot. Without these, nothing is known. Machines that
    were cloned while running share a boot id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[tuple[str, str, str, int, int, int], str] = {}

    def claim(self, facts: HostFacts | None, host: str, processes: Sequence[Process]) -> dict[int, str]:
        """Register the processes that a visit found; returns the hosts of those that another visit found
        first."""
        if facts is None or not facts.boot_id or not facts.pid_namespace:
            return {}
        machine = facts.boot_id, facts.pid_namespace, facts.name
        with self._lock:
            holders = {
                one.pid: self._holders.setdefault((*machine, one.uid, one.pid, one.start_time), host)
                for one in processes
            }
        return {pid: holder for pid, holder in holders.items() if holder != host}


class StartGate:
    """Opens when every host is ready or failed, or `patience` seconds after the last one began to connect.

    A host that is ready later starts at once, and is late.
    """

    def __init__(self, hosts: int, patience: float) -> None:
        self._not_ready = hosts
        self._queued = hosts
        self._patience = patience
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._opened_at: float | None = None
        self.found = False
        """Whether a host that was ready in time has a process to record."""

    @property
    def seconds(self) -> float:
        """Since it opened; 0 before."""
        return 0.0 if self._opened_at is None else time.monotonic() - self._opened_at

    def connecting(self) -> None:
        """One more host has left the queue and connects."""
        with self._changed:
            self._queued -= 1
            if self._queued == 0:
                self._deadline = time.monotonic() + self._patience
                self._changed.notify()  # one looks at the clock for all

    def leave(self) -> None:
        """One host is ready, or has failed."""
        with self._changed:
            self._not_ready -= 1
            if self._not_ready == 0:
                self.open()

    def wait(self, found: bool = True) -> float:
        """Wait for the start as a host that is ready; returns the seconds by which it is late.

        `found`: it has a process to record.
        """
        with self._changed:
            late = self.seconds
            self.found = self.found or found
            self.leave()
            while self._opened_at is None:
                left = None if self._deadline is None else self._deadline - time.monotonic()
                if left is not None and left <= 0:
                    self.open()
                else:
                    self._changed.wait(None if left is None else min(left, 1.0))
            self._changed.notify()  # and so on: thousands that wake at once get in each other's way
        return late

    def open(self) -> None:
        """Let everyone go who is ready."""
        with self._changed:
            if self._opened_at is None:
                self._opened_at = time.monotonic()
                self._changed.notify(_WAKE_EACH_OTHER)


class VisitGroup:
    """What the visits of one command share: turns to connect, time limits, requests to stop, progress."""

    def __init__(
        self,
        reach: Reach,
        listener: Listener = silent,
        stop: Stop | None = None,
        connecting: Callable[[], None] = lambda: None,
    ) -> None:
        """`connecting` is called when a host's turn to connect comes."""
        self.reach = reach
        self.connecting = connecting
        self.turns = threading.BoundedSemaphore(max(1, reach.parallel))
        self.machines = Machines()
        self.stop = stop or Stop()
        self._listener = listener
        self._progress: queue.SimpleQueue[HostProgress | None] = queue.SimpleQueue()
        self._visits: list[Visit] = []
        self._running = 0
        self.alone = False
        self._lock = threading.Lock()
        self._finished = threading.Event()

    def run(self, visits: Sequence[Visit], on_stop: Callable[[int], None] = lambda level: None) -> None:
        """Run all visits to their ends. Ctrl-C counts as a request to stop.

        At each request every visit's `stop` is called, then `on_stop`. After the second one nobody waits
        longer than a few seconds. The listener is called on this thread.
        """
        allow_many_open_files()
        allow_many_threads(len(visits))
        self._visits = list(visits)
        self._running += len(visits)
        self.alone = len(visits) == 1
        if not visits:
            return
        with on_interrupt(self.stop.request), _many_threads(len(visits)):
            try:
                self._start(lambda: self._supervise(on_stop), "hprofiler-visits")
            except RuntimeError as error:  # nothing has begun
                raise no_thread(error, "connect") from error
            for visit in visits:
                self._begin(visit)
            while not self._finished.is_set() or not self._progress.empty():
                self._show_progress()
        for visit in self._visits:
            visit.leave_behind()

    def hold(self) -> None:
        """Do not end with the last visit, since others may be added, but with `visit_ended`."""
        with self._lock:
            self._running += 1

    def add(self, visit: Visit) -> bool:
        """Run one more visit beside the others; False if all have ended."""
        with self._lock:
            if self._running == 0 or self._finished.is_set():
                return False
            self._running += 1
            self._visits.append(visit)
        self._begin(visit)
        return True

    def wait(self, seconds: float) -> bool:
        """Whether all visits have ended, after `seconds` at the latest."""
        return self._finished.wait(seconds)

    def _begin(self, visit: Visit) -> None:
        try:
            self._start(visit.run, f"hprofiler-{visit.host.name}")
        except RuntimeError as error:
            visit.leave_out(no_thread(error, visit.ledger_stage))

    def report(self, progress: HostProgress) -> None:
        """Show a step to the listener; from any thread, does not wait."""
        self._progress.put(progress)

    def visit_ended(self) -> None:
        with self._lock:
            self._running -= 1
            last = self._running == 0
        if last:
            self._finish()

    def in_background(self, action: Callable[[], None]) -> None:
        """Do what may block on a thread of its own; here, where none can be started."""
        try:
            self._start(action, "hprofiler-background")
        except RuntimeError:
            action()

    def _show_progress(self) -> None:
        try:
            # With a timeout, because a thread that sleeps on a lock for good may not see a signal.
            progress = self._progress.get(timeout=_TICK)
        except queue.Empty:
            return
        if progress is None:
            return
        try:
            self._listener(progress)
        except Exception:  # a closed terminal must not lose a host
            _log.exception("reporting %s", progress)
            self._listener = silent

    def _supervise(self, on_stop: Callable[[int], None]) -> None:
        """Watch time limits and requests to stop until all visits have ended."""
        stopped = 0
        while not self._finished.wait(_TICK * max(1.0, len(self._visits) / _VISITS_OF_TICK)):
            visits = tuple(self._visits)
            while stopped < min(self.stop.level, AT_ONCE):
                stopped += 1
                for visit in visits:
                    try:
                        visit.stop(stopped)
                    except Exception:  # the other visits have to stop too
                        _log.exception("stopping %s", visit.host.name)
                on_stop(stopped)
                if stopped == AT_ONCE:
                    self._finished.wait(_LAST_STEPS)
                    self._finish()
            for visit in visits:
                visit.enforce_limits()

    def _finish(self) -> None:
        self._finished.set()
        self._progress.put(None)

    @staticmethod
    def _start(action: Callable[[], None], name: str) -> None:
        threading.Thread(target=action, name=name, daemon=True).start()


@contextmanager
def _many_threads(count: int) -> Iterator[None]:
    """Keeps the cost of waiting in bounds: every thread that waits for the interpreter wakes once in a switch
    interval, which with thousands of them takes more time than their work."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(max(usual, min(_SWITCH_SECONDS * count, _LONGEST_SWITCH)))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def no_thread(error: RuntimeError, stage: str) -> HostError:
    return HostError(stage, f"this machine cannot start more threads: {error}", _REMEDY)
