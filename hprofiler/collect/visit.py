"""What all visits to hosts have in common: a turn to connect, stages with time limits, an agent, an end."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hprofiler.agent import AgentSession, Found, Ignored, Listed
from hprofiler.agent.pipe import pids_of_pipe
from hprofiler.base.errors import HostError, HprofilerError, TimedOut
from hprofiler.collect import machines
from hprofiler.collect.audit import VisitAudit
from hprofiler.collect.beside import no_thread
from hprofiler.collect.contained import Contained
from hprofiler.collect.crew import Crew, HostProgress
from hprofiler.collect.machines import Visitor
from hprofiler.collect.stop import AT_ONCE
from hprofiler.model import DOING, Host, HostFacts, Outcome, Process, Selector, Status
from hprofiler.transport import LocalTransport, NoShell, Transport

_LAST_WORDS = 3.0
_PIPE_IS_HERE = "it runs here, on the container's processes; try it on some of them: ps -ef | {}"

_log = logging.getLogger(__name__)


class Visit(ABC):
    """One host's visit. The worker thread owns it; the watchdog and the stop thread may close it."""

    interrupted = "interrupted"
    """What is told of a host where the user ended the run before its work was done."""
    gives_up = False
    """Whether it costs something to leave to another visit what that one has not."""

    def __init__(self, host: Host, crew: Crew, selector: Selector | None = None) -> None:
        self.host = host
        self._contained = Contained(host)
        self._all_meant = selector is not None and selector.kind == "containers"
        self.reach = crew.reach
        self.stage = "connect"
        self.facts: HostFacts | None = None
        self.outcomes: list[Outcome] = []
        self.left: Mapping[int, str] = {}  # the hosts that have what was found here as well, by pid
        self.timings: dict[str, float] = {}
        self.processes = 0
        self._looked = False
        self.needless = False
        self.audit = VisitAudit(crew.reach.audit, host.name)
        self.transport = self._transport()
        self._moved = (0, 0)
        self.session: AgentSession | None = None
        self._beside: LocalTransport | None = None
        self._crew = crew
        self._queued = True
        self._lock = threading.RLock()
        self._since = time.monotonic()
        self._limit: int | None = None
        self._limited = object()
        self._why: HostError | None = None
        self._running = ""
        self._failed = False
        self.ended = False

    # Stages

    def enter(self, stage: str, seconds: float | None = None, detail: str = "") -> None:
        """Go on to `stage`, which may take `seconds` (None: as long as it takes)."""
        with self._lock:
            self._clock(stage)
            self.stage = stage
            self.limit(seconds)
        self.tell(stage, detail)

    def limit(self, seconds: float | None) -> None:
        """Give the present stage another time limit, from now on."""
        with self._lock:
            self._crew.watchdog.cancel(self._limit)
            self._limit = None
            token = self._limited = object()
            if seconds is not None:
                self._limit = self._crew.watchdog.after(seconds, lambda: self._expire(token, seconds))

    def tell(self, stage: str, detail: str = "", seconds: float = 0.0) -> None:
        self._crew.teller.tell(HostProgress(self.host.name, stage, detail, self.processes, seconds))

    def _clock(self, stage: str) -> None:
        now = time.monotonic()
        if self._running:
            self.timings[self._running] = self.timings.get(self._running, 0.0) + now - self._since
        self._running, self._since = stage, now

    def _expire(self, token: object, seconds: float) -> None:
        with self._lock:
            if token is not self._limited:
                return  # the worker went on in the very moment
            remedy = "give it more time with --timeout, or leave the host out"
            reason = f"timed out after {seconds:.3g} s while {DOING[self.ledger_stage]}"
            why = TimedOut(self.ledger_stage, reason, remedy)
        self.overdue(why)

    def overdue(self, why: HostError) -> None:
        """A time limit is over."""
        self.abort(why)

    def abort(self, why: HostError) -> None:
        """Close the connection from another thread; the worker ends with `why`."""
        with self._lock:
            self._why = self._why or why
            beside, transport, session = self._beside, self.transport, self.session
        if beside:
            beside.close()
        if session:
            with _told_if_it_can_be():
                session.let_go()
        transport.close()

    def interrupt(self, reason: str) -> None:
        """Abort because the user says so; does not wait for the connection to close."""
        error = HostError(self.ledger_stage, reason)
        self._crew.beside.do(lambda: self.abort(error), "hprofiler-abort")

    def stop(self, level: int) -> None:
        """The user ends the run, for the `level`th time. On the stop thread, which must not wait."""
        self.interrupt(self.interrupted)

    # The end in the middle

    def given_up(self, error: HprofilerError) -> HprofilerError:
        """What there is to tell of what ended the work."""
        why = self._why or error
        if isinstance(why, TimedOut) and self.session:
            remedy = f"{why.remedy}; run `hprofiler cleanup` for what may be left"
            return HostError(why.stage, f"{why.reason}; its agent may be there yet", remedy)
        return why

    def begin_anew(self) -> None:
        """Work is to be done after the visit was aborted, unless all of the run ends at once."""
        with self._lock:
            why, self._why = self._why, None
            if self._crew.stop.level >= AT_ONCE:
                self._why = why
                raise HostError(self.ledger_stage, "interrupted")

    # Connections

    def _transport(self) -> Transport:
        return self.audit.transport(self.reach.transport_for(self.host))

    def renew_transport(self) -> Transport:
        """One that is not connected yet takes the place of the present one, which is closed."""
        transport = self._transport()
        with self._lock:
            old, self.transport = self.transport, transport
            self._moved = (self._moved[0] + old.bytes_sent, self._moved[1] + old.bytes_received)
            why = self._why
        old.close()
        if why:
            raise why
        return transport

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes sent and received by all connections."""
        return self._moved[0] + self.transport.bytes_sent, self._moved[1] + self.transport.bytes_received

    def talk(self, transport: Transport, to_resume: bool = False) -> AgentSession:
        """A session with an agent over a connected transport. One `to_resume` has no part in the stages."""
        return AgentSession.open(
            transport,
            self.reach.binaries,
            enter=(lambda stage: None) if to_resume else self._push,
            witness=self.audit.witness(),
            to_resume=to_resume,
        )

    def _push(self, stage: str) -> None:
        """A push begins, or another mebibyte of it, which has a time limit of its own."""
        if self.stage == stage:
            self.limit(self.reach.timeout)
        else:
            self.enter(stage, self.reach.timeout)

    # Steps that every visit takes

    def open_session(self) -> AgentSession:
        """Connect when it is this host's turn, and start the agent."""
        with self._crew.turns:
            if self._queued:
                self._queued = False
                self._crew.under_way()
            self.check()
            self.enter("connect")  # the transport keeps its own time: a passphrase may be asked for
            self.transport.connect()
            self.check()
            self.limit(self.reach.timeout)
            self.session = self.talk(self.transport)
        self.facts = self.session.hello.facts
        return self.session

    def find(self, session: AgentSession, selector: Selector) -> Found:
        """The processes that the selector means on this host."""
        self.enter("find", self.reach.timeout)
        query: Mapping[str, Any] | None = None if selector.kind == "containers" else selector.query
        overlooked: tuple[Ignored, ...] = ()
        if selector.kind == "pipe":
            listing = session.list()
            pipe = str(selector.query.get("pipe", selector.text))
            self.limit(2 * self.reach.timeout)  # the pipe keeps its own time, and says more when it is over
            query = {"kind": "pids", "pids": self._pids_of_pipe(pipe, listing.processes)}
            overlooked = listing.ignored
        vouched = self._contained.vouched()
        found = session.find(query, selector.native, self.host.containers, self.transport.inside, vouched)
        self._looked = True
        if query is None and found.processes:
            self.outcomes += self._contained.empty(found.processes)
        processes = tuple(self._contained.known(one) for one in found.processes if self._is_believed(one))
        told = {one.pid for one in found.ignored}
        ignored = (*(one for one in overlooked if one.pid not in told), *found.ignored)
        ignored = tuple(replace(one, reason=self._contained.named(one.reason)) for one in ignored)
        found = self._without_others(session, replace(found, processes=processes, ignored=ignored))
        self.processes = len(found.processes)
        return found

    def _without_others(self, session: AgentSession, found: Found) -> Found:
        """What this visit is to have where the machine is visited under another name as well."""
        me = Visitor(self.host.name, session.hello.uid, session.hello.session)
        others = self._crew.machines.take(self.facts, me, found.processes)
        if others and self.gives_up:
            self._crew.machines.doubt(me.host, others - self._seen(session, others))
        self.left = self._crew.machines.elsewhere(self.facts, found.processes)
        ignored = (Ignored(pid, f"{name} is the same machine and has it") for pid, name in self.left.items())
        processes = tuple(one for one in found.processes if one.pid not in self.left)
        return replace(found, processes=processes, ignored=(*ignored, *found.ignored))

    def _seen(self, session: AgentSession, others: set[Visitor]) -> set[Visitor]:
        """Those whose agents this machine has: of the others it is only said that they are on it."""
        self.limit(self.reach.timeout)
        query = {"kind": "pids", "pids": machines.pids(others)}
        return machines.seen(others, session.find(query, native=True).processes)

    def _is_believed(self, process: Process) -> bool:
        doubt = self._contained.doubt(process)
        self.outcomes += [doubt] if doubt else []
        return doubt is None

    def _pids_of_pipe(self, pipe: str, listed: Sequence[Listed]) -> list[int]:
        if not self.transport.leaves_nothing:
            return pids_of_pipe(self.transport, pipe, listed, self.reach.timeout)
        # An image may have no grep; and the pipe is our user's own, as is this machine.
        here = LocalTransport(self.host)
        with self._lock:
            self._beside = here
        self.check()  # who aborted before that did not know of it
        return pids_of_pipe(here, pipe, listed, self.reach.timeout, _PIPE_IS_HERE)

    def check(self) -> None:
        """Raises HostError once the user has stopped the run, or when the visit was aborted."""
        self.check_aborted()
        if self._crew.stop.level:
            raise HostError(self.ledger_stage, self.interrupted)

    def check_aborted(self) -> None:
        """Raises HostError when the visit was aborted: what a closed connection still has is not kept."""
        if self._why:
            raise self._why

    def failed(self, why: HprofilerError) -> None:
        """The ledger line of a host that could not do its part: the first word is the one that explains."""
        with self._lock:
            if self._failed or self.ended:
                return
            self._failed = True
            self._note_failure(why)
        self.tell("failed", why.reason)

    def left_behind(self) -> None:
        """Nobody waits for it any longer. Its worker may go on, and is not heard any more."""
        with self._lock:
            self.failed(HostError(self.ledger_stage, "interrupted"))
            self.ended = True

    def _note_failure(self, why: HprofilerError) -> None:
        stage = why.stage if isinstance(why, HostError) else self.ledger_stage
        self.needless = self.host.optional and isinstance(why, NoShell)
        status = Status.DEGRADED if self.needless else Status.FAILED
        reason = f"{why.reason}{self._contained.missing(self.unseen())}"
        self.outcomes.append(Outcome(self.host.name, status, stage, reason, why.remedy))

    def unseen(self) -> tuple[str, ...]:
        """Who is known to be in the host's containers (pods, where there are some), while nobody has looked.

        Of a selector that narrows them it is not known whom it means; of containers that nobody named
        not whether there is anybody.
        """
        if self._looked or self.needless or not self._all_meant:
            return ()
        return self._contained.pods()

    def finish(self, session: AgentSession) -> None:
        """Say goodbye. What goes wrong here takes nothing away from what was done."""
        self.enter("clean", self.reach.timeout)
        try:
            self.tell_left(session.bye())
        except HostError as error:
            why = self.given_up(error)
            remedy = why.remedy or "run `hprofiler cleanup`"
            self.outcomes.append(Outcome(self.host.name, Status.DEGRADED, "clean", why.reason, remedy))

    def tell_left(self, left: Sequence[str]) -> None:
        if left:
            reason = f"left behind: {', '.join(left[:10])}"
            remedy = "run `hprofiler cleanup` for what is not said to go by itself"
            self.outcomes.append(Outcome(self.host.name, Status.DEGRADED, "clean", reason, remedy))

    @property
    def ledger_stage(self) -> str:
        """The stage in the words of an outcome: who waits for the others is about to start."""
        return "start" if self.stage == "wait" else self.stage

    @abstractmethod
    def work(self) -> None:
        """All of the visit, step by step; HostError ends it."""

    def _work_or_give_up(self) -> None:
        try:
            self.work()
        except HprofilerError as error:
            raise self.given_up(error) from None
        except RuntimeError as error:
            raise self.given_up(no_thread(error, self.ledger_stage)) from None

    def run(self) -> None:
        """Do the work; whatever goes wrong becomes a line of the ledger."""
        try:
            self._work_or_give_up()
        except HprofilerError as error:
            self.failed(error)
        except Exception as error:  # a mistake of ours must not lose the other hosts
            _log.exception("visiting %s", self.host.name)
            self.failed(HostError(self.ledger_stage, f"unexpected {type(error).__name__}: {error}"))
        finally:
            with self._lock:
                self._clock("")
                self.limit(None)
            try:
                self._close()
            finally:
                self._end_it()

    def left_out(self, why: HostError) -> None:
        """Instead of `run`, where there is no thread for it."""
        self._crew.under_way()
        self.failed(why)
        self._end_it()

    def _end_it(self) -> None:
        with self._lock:
            self.ended = True
        self._crew.ended()

    def _close(self) -> None:
        try:
            if self.session:
                with _told_if_it_can_be():
                    if self._failed and self.reach.audit:  # to hear what the agent cleans up
                        self.session.last_words(_LAST_WORDS)
                    self.session.let_go(0.0)
            self.transport.close()
        except HostError:
            _log.debug("closing %s", self.host.name, exc_info=True)


@contextmanager
def _told_if_it_can_be() -> Iterator[None]:
    """To tell an agent takes a thread; one that is not told sees its stdin close."""
    try:
        yield
    except RuntimeError as error:
        _log.debug("an agent is not told: %s", no_thread(error, "clean"))


def idle_reason(found: Found, host: Host) -> str:
    """Why a host has nothing to offer, with the first process that nearly was something."""
    count = len(host.containers)
    where = f" in {'its container' if count == 1 else f'any of its {count} containers'}" if count else ""
    ignored = f"; left out: {found.ignored[0].pid} ({found.ignored[0].reason})" if found.ignored else ""
    looked = f"{found.searched} {'process' if found.searched == 1 else 'processes'} searched"
    if not found.searched:
        looked = "there are none to be seen but those of this connection"
    return f"no process matches{where} ({looked}{ignored})"
