"""Common parts of visits: the queue to connect, stages with time limits, an agent, the end."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf

from hprofiler.agent.messages import Ignored, Listed
from hprofiler.agent.pipe import pids_of_pipe
from hprofiler.agent.session import AgentSession, Found
from hprofiler.base.errors import AgentEnded, HostError, HprofilerError, TimedOut
from hprofiler.collect.audit import VisitAudit
from hprofiler.collect.finding import Search, idle_reason, near_names, one_by_one
from hprofiler.collect.visit_group import HostProgress, VisitGroup
from hprofiler.model import DOING, HERE, Host, HostFacts, Outcome, Params, Process, Selector, Status
from hprofiler.transport.base import NoShell, Transport
from hprofiler.transport.local import LocalTransport

_LAST_WORDS = 3.0
_PIPE_IS_HERE = "it runs here, on the list of the container's processes; test it with: ps -ef | {}"

_log = logging.getLogger(__name__)


class Visit(ABC):
    """The visit of one host. Its own thread runs it; the group's thread may abort it."""

    interrupted = "interrupted"
    """The reason for a host if the user ends the run before its work is done."""

    def __init__(self, host: Host, group: VisitGroup, selector: Selector | None = None) -> None:
        self.host = host
        self.reach = group.reach
        self.stage = "connect"
        self.facts: HostFacts | None = None
        self.outcomes: list[Outcome] = []
        self.left: Mapping[int, str] = {}  # the host names that have some of these processes, by pid
        self.timings: dict[str, float] = {}
        self.processes = 0
        self.needless = False
        self.audit = VisitAudit(group.reach.audit, host.name) if group.reach.audit else None
        self.transport = self._transport()
        self.session: AgentSession | None = None
        self._local_pipe: LocalTransport | None = None
        self._group = group
        self.search = Search(host, selector or Selector("", "text", {}))
        self._looked = False
        self._queued = True
        self._lock = threading.RLock()
        self._since = time.monotonic()
        self._seconds = 0.0
        self._deadline = inf
        self._last_deadline = inf
        self._last_why: HostError | None = None
        self._why: HostError | None = None
        self._running = ""
        self._failed = False
        self.ended = False

    # Stages and time limits

    def enter(self, stage: str, seconds: float | None = None, detail: str = "") -> None:
        """Go on to `stage`, which may take `seconds` (None: no limit)."""
        with self._lock:
            self._clock(stage)
            self.stage = stage
            self.limit(seconds)
        self.report(stage, detail)

    def limit(self, seconds: float | None) -> None:
        """Give the present stage another time limit, from now on."""
        with self._lock:
            self._seconds = inf if seconds is None else seconds
            self._deadline = time.monotonic() + self._seconds

    def limit_all(self, seconds: float, why: HostError) -> None:
        """Limit all that is left of the visit, whatever its stages may take. The earliest limit counts."""
        with self._lock:
            deadline = time.monotonic() + seconds
            if deadline < self._last_deadline:
                self._last_deadline, self._last_why = deadline, why

    @contextmanager
    def without_limits(self) -> Iterator[None]:
        """Suspends the limits while this machine works, not the host."""
        began = time.monotonic()
        with self._lock:
            last, self._last_deadline, self._deadline = self._last_deadline, inf, inf
        try:
            yield
        finally:
            with self._lock:
                self._last_deadline = min(self._last_deadline, last + time.monotonic() - began)

    def enforce_limits(self) -> None:
        """Abort the visit if a limit is over. On the group's thread."""
        with self._lock:
            now = time.monotonic()
            if now < self._deadline and now < self._last_deadline:
                return
            why = self._last_why if now >= self._last_deadline else None
            if why is None:
                remedy = "raise --timeout, or leave the host out"
                reason = f"timed out after {self._seconds:.3g} s while {DOING[self.ledger_stage]}"
                why = TimedOut(self.ledger_stage, reason, remedy, parameters={"seconds": self._seconds})
            self._deadline = self._last_deadline = inf
        self._abort_in_background(why)

    def report(self, stage: str, detail: str = "", seconds: float = 0.0) -> None:
        self._group.report(HostProgress(self.host.name, stage, detail, self.processes, seconds))

    def _clock(self, stage: str) -> None:
        now = time.monotonic()
        if self._running:
            self.timings[self._running] = self.timings.get(self._running, 0.0) + now - self._since
        self._running, self._since = stage, now

    # An early end

    def abort(self, why: HostError) -> None:
        """Close the connection from another thread; the worker ends with `why`."""
        with self._lock:
            self._why = self._why or why
            transport, session, local_pipe = self.transport, self.session, self._local_pipe
        if local_pipe:
            local_pipe.close()
        if session:
            session.let_go()
        transport.close()

    def _abort_in_background(self, why: HostError) -> None:
        """Closing a connection may block."""
        self._group.in_background(lambda: self.abort(why))

    def stop(self, level: int) -> None:
        """The user ends the run, for the `level`th time. On the group's thread, which must not wait."""
        self._abort_in_background(HostError(self.ledger_stage, self.interrupted, code="interrupted"))

    def _explained(self, error: HprofilerError) -> HprofilerError:
        """The failure to report for an error that ended the work."""
        why = self._why or error
        if self.session and isinstance(why, (TimedOut, AgentEnded)):
            return why.reworded(why.reason, "run `hprofiler cleanup` to remove possible leftovers")
        return why

    # Connections

    def _transport(self) -> Transport:
        transport = self.reach.transport_for(self.host)
        if self.audit:
            transport.told = self.audit.note
        return transport

    def renew_transport(self) -> Transport:
        """A new connection replaces the present one, which is closed, and goes on counting bytes."""
        transport = self._transport()
        with self._lock:
            old, self.transport = self.transport, transport
            transport.bytes_sent, transport.bytes_received = old.bytes_sent, old.bytes_received
            why = self._why
        old.close()
        if why:
            raise why
        return transport

    def talk(self, transport: Transport, to_resume: bool = False) -> AgentSession:
        """A session with an agent over a connected transport. With `to_resume` it does not change the
        stage."""
        return AgentSession.open(
            transport,
            self.reach.binaries,
            enter=(lambda stage: None) if to_resume else self._push,
            witness=self.audit,
            to_resume=to_resume,
        )

    def _push(self, stage: str) -> None:
        """A push starts, or continues with another mebibyte; each has its own time limit."""
        if self.stage == stage:
            self.limit(self.reach.timeout)
        else:
            self.enter(stage, self.reach.timeout)

    def learn(self, host: Host) -> None:
        """What the target has here now: further containers, and more labels of the known ones. From any
        thread."""
        before = self.host.containers
        now = {name: {**labels, **before.get(name, {})} for name, labels in host.containers.items()}
        self.host = replace(self.host, containers={**before, **now}, prefixes=host.prefixes)
        self.search = Search(self.host, self.search.selector)

    # Steps that every visit takes

    def open_session(self) -> AgentSession:
        """Connect when it is this host's turn, and start the agent."""
        with self._group.turns:
            if self._queued:
                self._queued = False
                self._group.connecting()
            self.check()
            self.enter("connect")  # the transport keeps its own time: a passphrase may be asked for
            self.transport.connect()
            self.check()
            self.limit(self.reach.timeout)
            self.session = self.talk(self.transport)
        self.facts = self.session.hello.host
        return self.session

    def find(self, session: AgentSession) -> Found:
        """The processes of this host that the selector matches."""
        self.enter("find", self.reach.timeout)
        selector = self.search.selector
        pids: list[int] | None = None
        overlooked: tuple[Ignored, ...] = ()
        if selector.kind == "pipe":
            listing = session.list()
            self.limit(2 * self.reach.timeout)  # the pipe has its own time limit, with a better message
            pids = self._pids_of_pipe(self.search.pipe, listing.processes)
            overlooked = listing.ignored
        found = session.find(self.search.request(self.transport.inside, pids))
        self._looked = True
        if selector.kind == "containers" and found.processes:
            self.outcomes += self.search.contained.empty(found.processes)
        self.left = {}
        found = self.sift(found, overlooked)
        self.processes = len(found.processes)
        if not found.processes:
            if selector.kind == "text" and not found.ignored and self._group.alone:
                with suppress(HostError):  # it is a hint only
                    found = replace(found, ignored=near_names(selector, session.list().processes))
            self.note(Status.IDLE, "find", idle_reason(found, self.host, selector), code="no-match")
        elif selector.kind == "pids" and self._group.alone:  # of several hosts, another may have it
            missing = [one for one in found.ignored if not one.doubtful]
            if missing:
                self.note(Status.DEGRADED, "find", one_by_one(missing), code="pid-missing")
        return found

    def sift(
        self, found: Found, overlooked: Sequence[Ignored] = (), earlier: Sequence[Process] = ()
    ) -> Found:
        """What is meant of an answer, without what another visit has: the machine is known under several
        names. For `earlier` see `Search.sift`."""
        found, doubts = self.search.sift(found, overlooked, earlier)
        self.outcomes += doubts
        left = self._group.machines.claim(self.facts, self.host.name, found.processes)
        self.left = {**self.left, **left}
        others = (
            Ignored(pid, f"it is left to {name}, which is the same machine") for pid, name in left.items()
        )
        processes = tuple(one for one in found.processes if one.pid not in left)
        doubtful_first = sorted((*others, *found.ignored), key=lambda one: not one.doubtful)
        return replace(found, processes=processes, ignored=tuple(doubtful_first))

    def left_to_others(self) -> list[Outcome]:
        """An outcome for each other name of the machine, with its number of processes."""
        return [
            Outcome(
                self.host.name,
                Status.DEGRADED,
                "find",
                f"{'1 process is' if count == 1 else f'{count} processes are'} left to {other}, "
                "which is the same machine",
                "to avoid this, name the machine only once",
                code="recorded-elsewhere",
            )
            for other, count in Counter(self.left.values()).items()
        ]

    def _pids_of_pipe(self, pipe: str, listed: Sequence[Listed]) -> list[int]:
        if not self.transport.leaves_nothing:
            return pids_of_pipe(self.transport, pipe, listed, self.reach.timeout)
        # An image may have no grep; the pipe is the user's own text and runs on this machine.
        here = LocalTransport(self.host)
        with self._lock:
            self._local_pipe = here
        self.check()  # an abort before this point did not close it
        return pids_of_pipe(here, pipe, listed, self.reach.timeout, _PIPE_IS_HERE)

    def check(self) -> None:
        """Raises HostError once the user has stopped the run, or when the visit was aborted."""
        self.check_aborted()
        if self._group.stop.level:
            raise HostError(self.ledger_stage, self.interrupted, code="interrupted")

    def check_aborted(self) -> None:
        """Raises HostError when the visit was aborted: what a closed connection still has is not kept."""
        if self._why:
            raise self._why

    def note(
        self,
        status: Status,
        stage: str,
        reason: str,
        remedy: str = "",
        code: str = "",
        parameters: Params | None = None,
    ) -> None:
        """A ledger line of the host."""
        line = Outcome(self.host.name, status, stage, reason, remedy, code=code, parameters=parameters or {})
        self.outcomes.append(line)

    def failed(self, why: HprofilerError) -> None:
        """The outcome of a failed host; the first failure is the cause."""
        with self._lock:
            if self._failed or self.ended:
                return
            self._failed = True
            stage = why.stage if isinstance(why, HostError) else self.ledger_stage
            self.needless = self.host.optional and isinstance(why, NoShell)
            status = Status.DEGRADED if self.needless else Status.FAILED
            reason = f"{why.reason}{self.search.contained.missing(self.unseen())}"
            self.note(status, stage, reason, why.remedy, why.code, why.parameters)
        self.report("failed", why.reason)

    def leave_behind(self) -> None:
        """The visit is abandoned; its worker may continue and is ignored."""
        with self._lock:
            self.failed(HostError(self.ledger_stage, "interrupted", code="interrupted"))
            self.ended = True

    def unseen(self) -> tuple[str, ...]:
        """Names of the host's containers (or pods), before anything was searched.

        Empty if a selector narrows them, or if nobody named the containers.
        """
        if self._looked or self.needless or self.search.selector.kind != "containers":
            return ()
        return self.search.contained.pods()

    def finish(self, session: AgentSession) -> None:
        """End the session. A failure here does not affect the results."""
        self.enter("clean", self.reach.timeout)
        try:
            self.note_left(session.bye())
        except HostError as error:
            why = self._explained(error)
            remedy = why.remedy or "run `hprofiler cleanup`"
            self.note(Status.DEGRADED, "clean", why.reason, remedy, why.code, why.parameters)

    def note_left(self, left: Sequence[str]) -> None:
        if left:
            reason = f"left behind: {', '.join(left[:10])}"
            kinds = {"/.attach_pid" in path for path in left}
            remedies = {
                False: "run `hprofiler cleanup` later to remove what is still there",
                True: "delete an .attach_pid file that is still there by hand once its process has ended",
            }
            remedy = "; ".join(remedies[kind] for kind in sorted(kinds))
            self.note(Status.DEGRADED, "clean", reason, remedy, code="left-behind")

    @property
    def ledger_stage(self) -> str:
        """The stage of an outcome; while waiting for the others it is `start`."""
        return "start" if self.stage == "wait" else self.stage

    @abstractmethod
    def work(self) -> None:
        """All of the visit, step by step; HostError ends it."""

    def run(self) -> None:
        """Do the work; every failure becomes an outcome."""
        try:
            self.work()
        except HprofilerError as error:
            self.failed(self._explained(error))
        except Exception as error:  # a bug must not affect the other hosts
            _log.exception("visiting %s", self.host.name)
            reason = f"unexpected {type(error).__name__}: {error}"
            self.failed(HostError(self.ledger_stage, reason, code="internal-error"))
        finally:
            with self._lock:
                self._clock("")
                self._deadline = self._last_deadline = inf
            try:
                self._close()
            finally:
                self._end_it()

    def leave_out(self, why: HostError) -> None:
        """Instead of `run`, if no thread can be started for it."""
        self._group.connecting()
        self.failed(why)
        self._end_it()

    def _end_it(self) -> None:
        with self._lock:
            self.ended = True
        self._group.visit_ended()

    def _close(self) -> None:
        try:
            if self.session:
                if self._failed and self.audit:  # to receive the agent's last events
                    self.session.last_words(_LAST_WORDS)
                self.session.let_go(0.0)
            self.transport.close()
        except HostError:
            _log.debug("closing %s", self.host.name, exc_info=True)


def remedy_here(host: Host, facts: HostFacts | None, code: str, user: str) -> str:
    """What to do on this machine, where nobody connects, about a process of another user; else ""."""
    other = facts is not None and facts.user not in ("root", user)
    if code != "not-permitted" or host.address != HERE or not other:
        return ""
    return f"put `sudo -u {user}` before the command, or use --become sudo"
