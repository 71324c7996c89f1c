"""What all visits to hosts have in common: a turn to connect, stages with time limits, an agent, an end."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from hprofiler.agent import AgentBinaries, AgentSession, Found, Listed
from hprofiler.agent.pipe import pids_of_pipe
from hprofiler.collect.audit import Audit, VisitAudit
from hprofiler.collect.stop import AT_ONCE, Stop, on_interrupt
from hprofiler.collect.watchdog import Watchdog
from hprofiler.errors import HostError, HprofilerError
from hprofiler.model import OWNER, PROCESS, Host, HostFacts, Outcome, Process, Selector, Status
from hprofiler.transports import LocalTransport, NoShell, Transport

_LAST_WORDS = 3.0
_EMPTY_TOLD = 20
_UNSEEN_TOLD = 5
_PIPE_IS_HERE = "it runs here, on the container's processes; try it on some of them: ps -ef | {}"

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
    audit: Optional[Audit] = None


@dataclass(frozen=True)
class HostProgress:
    """One step of one host: an outcome's `stage`, or `wait` (for the others), `idle`, `failed`, `done`."""

    host: str
    stage: str
    detail: str = ""
    processes: int = 0


Listener = Callable[[HostProgress], None]


def silent(progress: HostProgress) -> None:
    """A listener that does not care."""


class Visit(ABC):
    """One host's visit. The worker thread owns it; the watchdog and the stop thread may close it."""

    def __init__(self, host: Host, crew: Crew, selector: Optional[Selector] = None) -> None:
        self.host = host
        self._all_meant = selector is not None and selector.kind == "containers"
        self.reach = crew.reach
        self.stage = "connect"
        self.facts: Optional[HostFacts] = None
        self.outcomes: List[Outcome] = []
        self.timings: Dict[str, float] = {}
        self.processes = 0
        self._looked = False
        self.needless = False
        self.audit = VisitAudit(crew.reach.audit, host.name)
        self.transport = self._transport()
        self._moved = (0, 0)
        self.session: Optional[AgentSession] = None
        self._beside: Optional[LocalTransport] = None
        self._crew = crew
        self._queued = True
        self._lock = threading.RLock()
        self._since = time.monotonic()
        self._limit: Optional[int] = None
        self._limited = object()
        self._why: Optional[HostError] = None
        self._running = ""
        self.ended = False

    # Stages

    def enter(self, stage: str, seconds: Optional[float] = None, detail: str = "") -> None:
        """Go on to `stage`, which may take `seconds` (None: as long as it takes)."""
        with self._lock:
            self._clock(stage)
            self.stage = stage
            self.limit(seconds)
        self.tell(stage, detail)

    def limit(self, seconds: Optional[float]) -> None:
        """Give the present stage another time limit, from now on."""
        with self._lock:
            self._crew.watchdog.cancel(self._limit)
            self._limit = None
            token = self._limited = object()
            if seconds is not None:
                self._limit = self._crew.watchdog.after(seconds, lambda: self._expire(token, seconds))

    def tell(self, stage: str, detail: str = "") -> None:
        self._crew.listener(HostProgress(self.host.name, stage, detail, self.processes))

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
            why = HostError(self.ledger_stage, f"timed out after {seconds:.3g} s", remedy)
        self.abort(why)

    def abort(self, why: HostError) -> None:
        """Close the connection from another thread; the worker ends with `why`."""
        with self._lock:
            self._why = self._why or why
            beside, transport, session = self._beside, self.transport, self.session
        if beside:
            beside.close()
        if session:
            session.let_go()
        transport.close()

    def interrupt(self, reason: str = "interrupted before anything was recorded") -> None:
        """Abort because the user says so; does not wait for the connection to close."""
        error = HostError(self.ledger_stage, reason)
        threading.Thread(target=self.abort, args=(error,), name="hprofiler-abort", daemon=True).start()

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
    def moved(self) -> Tuple[int, int]:
        """Bytes sent and received by all connections."""
        return self._moved[0] + self.transport.bytes_sent, self._moved[1] + self.transport.bytes_received

    def talk(self, transport: Transport, to_resume: bool = False) -> AgentSession:
        """A session with an agent over a connected transport. One `to_resume` has no part in the stages."""
        return AgentSession.open(
            transport,
            self.reach.binaries,
            enter=lambda stage: None if to_resume else self.enter(stage, self.reach.timeout),
            witness=self.audit.witness(of_another=to_resume),
            to_resume=to_resume,
        )

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
        query: Optional[Mapping[str, Any]] = None if selector.kind == "containers" else selector.query
        if selector.kind == "pipe":
            listed = session.list()
            pipe = str(selector.query.get("pipe", selector.text))
            self.limit(2 * self.reach.timeout)  # the pipe keeps its own time, and says more when it is over
            query = {"kind": "pids", "pids": self._pids_of_pipe(pipe, listed)}
        found = session.find(query, selector.native, self.host.containers, self.transport.inside)
        self._looked = True
        if query is None and found.processes:
            self._tell_empty(found.processes)
        processes = tuple(self._known(process) for process in found.processes if self._is_believed(process))
        self.processes = len(processes)
        ignored = tuple(replace(one, reason=self._named(one.reason)) for one in found.ignored)
        return replace(found, processes=processes, ignored=ignored)

    def _pids_of_pipe(self, pipe: str, listed: Sequence[Listed]) -> List[int]:
        if not self.transport.leaves_nothing:
            return pids_of_pipe(self.transport, pipe, listed, self.reach.timeout)
        # An image may have no grep; and the pipe is our user's own, as is this machine.
        here = LocalTransport(self.host)
        with self._lock:
            self._beside = here
        self.check()  # who aborted before that did not know of it
        return pids_of_pipe(here, pipe, listed, self.reach.timeout, _PIPE_IS_HERE)

    def _named(self, reason: str) -> str:
        """The agent's words with the pods' names in place of what the runtime calls containers."""
        for identity in self.host.containers:
            if identity in reason and self._pod(identity) != identity:
                return reason.replace(identity, self._name(identity))
        return reason

    def _is_believed(self, process: Process) -> bool:
        """Whether it may be of its container, as far as users are known by name; a ledger line where not."""
        owner = self.host.containers.get(process.labels.get("container", ""), {}).get(OWNER, "")
        if not owner or process.user == owner or process.user.isdecimal():
            return True
        reason = f"it runs as {process.user} and the application as {owner}: it may be another application's"
        remedy = f"if it is this one's, name it: -j pid:{process.pid} -h {self.host.name}"
        line = Outcome(self.host.name, Status.DEGRADED, "find", reason, remedy, process.pid, process.label)
        self.outcomes.append(line)
        return False

    def _known(self, process: Process) -> Process:
        """A process with what the resolver knows of its container, which goes before what was derived."""
        known = dict(self.host.containers.get(process.labels.get("container", ""), {}))
        known.pop(OWNER, None)
        label = known.pop(PROCESS, process.label)
        if not process.is_jvm and label != process.label:
            label = f"{process.label} of {label}"  # a worker or a helper beside the JVM that the name is of
        return replace(process, label=label, labels={**process.labels, **known})

    def _tell_empty(self, processes: Sequence[Process]) -> None:
        """Ledger lines of containers (of pods, where they have some) in which there is nothing to record."""
        known = self.host.containers
        full = {self._pod(process.labels.get("container", "")) for process in processes}
        for container in known:
            pod = self._pod(container)
            if pod not in full and len(self.outcomes) < _EMPTY_TOLD:
                full.add(pod)
                reason = f"no JVM of {self._pod_name(container)} was found"
                self.outcomes.append(Outcome(self.host.name, Status.DEGRADED, "find", reason))

    def _pod(self, container: str) -> str:
        """The pod that a container is of; itself, where there are no pods."""
        labels = self.host.containers.get(container, {})
        return "/".join(labels[name] for name in ("namespace", "pod") if name in labels) or container

    def _pod_name(self, container: str) -> str:
        """A container's pod, for people: by what Spark calls it, else as the run does ("shop/web")."""
        labels = self.host.containers[container]
        if "pod" not in labels or "role" in labels:
            return self._name(container, self._pod(container))
        known, own = labels.get(PROCESS, ""), "/{pod}/{container}".format(**labels)
        if f"/{known}".endswith(own):
            return known[: -len(labels["container"]) - 1]
        return known or self._pod(container)

    def _name(self, container: str, place: str = "") -> str:
        """A container, or the pod in its `place`, for people: "executor 3 (container_…)", "ns/pod/main"."""
        labels = self.host.containers[container]
        known = [labels[name] for name in ("namespace", "pod", "container") if name in labels]
        place = place or "/".join(known) or container
        label, pod = labels.get(PROCESS, ""), labels.get("pod")
        if not label or label == pod:
            return place
        return label if pod is not None and pod in label else f"{label} ({place})"

    def check(self) -> None:
        """Raises HostError once the user has stopped the run, or when the visit was aborted."""
        if self._why:
            raise self._why
        if self._crew.stop.level:
            raise HostError(self.ledger_stage, "interrupted before anything was recorded")

    def failed(self, error: HprofilerError) -> None:
        """The ledger line of a host that could not do its part."""
        why = self._why or error
        stage = why.stage if isinstance(why, HostError) else self.ledger_stage
        self.needless = self.host.optional and isinstance(why, NoShell)
        status = Status.DEGRADED if self.needless else Status.FAILED
        reason = f"{why.reason}{self._without()}"
        self.outcomes.append(Outcome(self.host.name, status, stage, reason, why.remedy))
        self.tell("failed", why.reason)

    def unseen(self) -> Tuple[str, ...]:
        """Who is known to be in the host's containers (pods, where there are some), while nobody has looked.

        Of a selector that narrows them it is not known whom it means; of containers that nobody named
        not whether there is anybody.
        """
        if self._looked or self.needless or not self._all_meant:
            return ()
        known = self.host.containers
        pods = {self._pod(one): self._unseen_name(one) for one in known}
        return tuple(pods.values())

    def _unseen_name(self, container: str) -> str:
        labels = self.host.containers[container]
        is_pod = "pod" in labels and "role" not in labels
        return self._pod_name(container) if is_pod else labels.get(PROCESS, self._pod(container))

    def _without(self) -> str:
        names = self.unseen()
        if not names or names == tuple(map(self._pod, self.host.containers))[:1]:
            return ""  # nobody, or one that has no name but its host's
        more = f" and {len(names) - _UNSEEN_TOLD} more" if len(names) > _UNSEEN_TOLD else ""
        are = "is" if len(names) == 1 else "are"
        return f"; {', '.join(names[:_UNSEEN_TOLD])}{more} {are} missing"

    def finish(self, session: AgentSession) -> None:
        """Say goodbye. What goes wrong here takes nothing away from what was done."""
        self.enter("clean", self.reach.timeout)
        try:
            session.bye()
        except HostError as error:
            why = self._why or error
            remedy = why.remedy or "run `hprofiler cleanup`"
            self.outcomes.append(Outcome(self.host.name, Status.DEGRADED, "clean", why.reason, remedy))

    @property
    def ledger_stage(self) -> str:
        """The stage in the words of an outcome: who waits for the others is about to start."""
        return "start" if self.stage == "wait" else self.stage

    @abstractmethod
    def work(self) -> None:
        """All of the visit, step by step; HostError ends it."""

    def run(self) -> None:
        """Do the work; whatever goes wrong becomes a line of the ledger."""
        try:
            self.work()
        except HprofilerError as error:
            self.failed(error)
        except Exception as error:  # a mistake of ours must not lose the other hosts
            _log.exception("visiting %s", self.host.name)
            self.failed(HprofilerError(f"unexpected {type(error).__name__}: {error}"))
        finally:
            with self._lock:
                self._clock("")
                self.limit(None)
            try:
                self._close()
                if self.session:
                    self.audit.end()
            finally:
                self.ended = True
                self._crew.ended()

    def _close(self) -> None:
        try:
            if self.session:
                if not self.audit.is_whole:
                    self.session.last_words(_LAST_WORDS)
                self.session.let_go(0.0)
            self.transport.close()
        except HostError:
            _log.debug("closing %s", self.host.name, exc_info=True)


class Crew:
    """What the visits of one command share."""

    def __init__(
        self, reach: Reach, listener: Listener, stop: Stop, under_way: Callable[[], None] = lambda: None
    ) -> None:
        self.reach = reach
        self.turns = threading.BoundedSemaphore(max(1, reach.parallel))
        self.watchdog = Watchdog()
        self.stop = stop
        self.under_way = under_way
        self.finished = threading.Event()
        self._left = 0
        self._listener = listener
        self._telling = threading.Lock()

    def expect(self, visits: int) -> None:
        """So many visits are about to begin."""
        self._left = visits
        if not visits:
            self.finished.set()

    def ended(self) -> None:
        """One visit is over."""
        with self._telling:
            self._left -= 1
            if not self._left:
                self.finished.set()

    def listener(self, progress: HostProgress) -> None:
        """One at a time, so that no listener has to think of threads; one that fails is not told again."""
        with self._telling:
            try:
                self._listener(progress)
            except Exception:  # a closed terminal must not lose a host
                _log.exception("telling of %s", progress)
                self._listener = silent


def visit_all(visits: Sequence[Visit], crew: Crew, on_stop: Callable[[int], None]) -> None:
    """Run all visits to their ends, each on its own thread. Ctrl-C counts as a request to stop.

    After the second stop nobody is waited for any longer than a few seconds.
    """
    crew.expect(len(visits))

    def stopped(level: int) -> None:
        if level >= AT_ONCE:
            crew.watchdog.after(_LAST_WORDS, crew.finished.set)
        on_stop(level)

    with crew.watchdog, crew.stop.telling(stopped), on_interrupt(crew.stop.request):
        for visit in visits:
            threading.Thread(target=visit.run, name=f"hprofiler-{visit.host.name}", daemon=True).start()
        crew.finished.wait()
    for visit in visits:
        if not visit.ended:
            visit.failed(HostError(visit.ledger_stage, "interrupted"))


def idle_reason(found: Found, host: Host) -> str:
    """Why a host has nothing to offer, with the first process that nearly was something."""
    count = len(host.containers)
    where = f" in {'its container' if count == 1 else f'any of its {count} containers'}" if count else ""
    ignored = f"; left out: {found.ignored[0].pid} ({found.ignored[0].reason})" if found.ignored else ""
    return f"no process matches{where} ({found.searched} searched{ignored})"
