"""A session with an agent: typed requests and answers.

Calls block without a time limit. The caller closes the transport after its own limit (`hprofiler.collect`
does); then every call raises HostError.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from hprofiler.agent import bootstrap, messages, requests, visiting
from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.agent.messages import (
    Action,
    BadEvent,
    Checked,
    ClockTold,
    Done,
    Dumped,
    DumpEvent,
    DumpHeader,
    Error,
    Event,
    Hello,
    Ignored,
    Left,
    Leftovers,
    Listing,
    M,
    MemoryMessage,
    MetricsMessage,
    PausesMessage,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    RecordEvent,
    Resumed,
    tag_of,
)
from hprofiler.agent.requests import LEASE_SECONDS, Plan, Request
from hprofiler.agent.wire import Wire
from hprofiler.base.errors import AgentEnded, ConnectionLost, HostError
from hprofiler.base.resources import Blob
from hprofiler.base.text import printable
from hprofiler.model import Clock, ClockReading, Process, Sampling
from hprofiler.model.metrics import Metrics
from hprofiler.transport.base import SOME_SIGNAL, Channel, Transport

_EXTRA_EVENTS = 1000
CANARY_SECONDS = 2.0
"""How long a canary is recorded, in seconds."""
_PING_SECONDS = LEASE_SECONDS / 10
"""Short, so that most of the lease remains for a broken link."""
_CLOCK_READINGS = 3
_LAST_WORD = 1.0
_END_WAIT = 2.0
_KILLED = (
    "if nobody killed it, memory may have run out: look into `dmesg` on the host, and at the limits of the "
    "login (`ulimit -a`, its control group)"
)
_EXIT_WAIT = 5.0


NOTHING: Mapping[Any, str] = {}
_STAGE_OF: Mapping[type, str] = {messages.Recording: "record", ProfileHeader: "fetch", RawHeader: "fetch"}


class Witness(Protocol):
    """Receives requests before they are sent (not `ping`, `clock`, `received`), and the agent's reports."""

    def asks(self, request: Mapping[str, Any]) -> None: ...
    def did(self, action: Action) -> None: ...


@dataclass(frozen=True)
class Found:
    """What a selector found among `searched` processes."""

    searched: int
    processes: tuple[Process, ...]
    ignored: tuple[Ignored, ...]


@dataclass(frozen=True)
class Appeared:
    """What a `follow` found since. The session has named none of the processes before."""

    processes: tuple[Process, ...]
    ignored: tuple[Ignored, ...]


class AgentSession:
    """Made by `AgentSession.open`. `stage` is the stage of its errors."""

    def __init__(
        self,
        transport: Transport,
        launched: bootstrap.Launched,
        witness: Witness | None,
        token: str,
    ) -> None:
        self.stage = "connect"
        self._witness = witness
        self._token = token
        self._comes_back: Callable[[HostError], None] | None = None
        self._gone: HostError | None = None
        self._transport = transport
        self._channel: Channel = launched.channel
        self._wire = launched.wire
        self._wire.count()
        self._closed = threading.Event()
        self._renews = False
        self._is_left = False
        self._containers: set[str] = set()
        self._named: set[int] = set()
        self._follow: requests.Follow | None = None
        self._joining = threading.Lock()
        self._asked: set[int] = set()
        self._unanswered: dict[int, requests.Chosen] = {}
        self._records = False
        self._sampling: Sampling | None = None
        self.clock: Clock | None = None
        self.arch = launched.arch
        self.pushed = launched.pushed
        self.hello = self._answer(Hello)
        if self.hello.protocol != requests.PROTOCOL:
            reason = "the agent speaks another version of the protocol"
            raise HostError("connect", reason, "run `hprofiler cleanup`", code="version-mismatch")

    @classmethod
    def open(
        cls,
        transport: Transport,
        binaries: AgentBinaries,
        enter: Callable[[str], None] = lambda stage: None,
        witness: Witness | None = None,
        to_resume: bool = False,
    ) -> AgentSession:
        """Start the agent over a connected transport and greet it.

        `enter` is called with "push" before a push and during it. A `witness` gets each request before it is
        sent, and the agent's reports of what it does. With `to_resume` nothing is sent before `resume` is
        called.
        """
        token = secrets.token_hex(16)
        greeting = requests.Hello(lease_seconds=LEASE_SECONDS, audit=witness is not None, resume=token)

        def greet(wire: Wire) -> None:
            if witness:
                witness.asks(msgspec.to_builtins(greeting))
            wire.send(greeting)

        launch = visiting.launch if transport.leaves_nothing else bootstrap.launch
        launched = launch(transport, binaries, greet, enter)
        try:
            session = cls(transport, launched, witness, token)
            if not to_resume:
                session._begin_lease()
            return session
        except BaseException:
            launched.channel.close()
            raise

    # Requests

    def put(self, name: str, blob: Blob) -> None:
        """Send a file; not needed where `hello.blobs` has its SHA-256."""
        self.stage = "push"
        size = blob.path.stat().st_size
        self._send(requests.Put(name=name, sha256=blob.sha256, size=size), bootstrap.pieces(Path(blob.path)))
        if self._answer(messages.Stored).sha256 != blob.sha256:
            raise HostError("push", f"{name} arrived incomplete", "try again", code="damaged-transfer")

    def list(self) -> Listing:
        """Every process the agent can see."""
        self.stage = "find"
        self._send(requests.List())
        return self._answer(Listing)

    def find(self, meant: requests.Find) -> Found:
        """The processes that are meant."""
        self.stage = "find"
        self._send(meant)
        found = self._answer(messages.FoundMessage)
        self._containers.update(meant.containers or ())
        return Found(found.searched, self._name(found.processes), found.ignored)

    def _name(self, found: Sequence[messages.FoundProcess]) -> tuple[Process, ...]:
        self._named.update(one.pid for one in found)
        named = {one.labels.get("container", "") for one in found} - self._containers
        begins = tuple(one[:-1] for one in self._containers if one.endswith("*"))
        if self._containers and not all(one.startswith(begins) for one in named):
            raise self._nonsense("it found a process outside the containers asked for")
        return tuple(one.on(self._transport.host.name) for one in found)

    def follow(self, meant: requests.Find) -> None:
        """Let `events` have `Appeared` for processes that are meant and start during the recording.

        Call it after `prepare`. It replaces an earlier call. Thread-safe; `events` raises its errors.
        """
        self._containers.update(meant.containers or ())
        self._follow = requests.Follow(**msgspec.structs.asdict(meant))
        with contextlib.suppress(HostError):  # the reader gets the error, or the request is repeated
            self._send(self._follow)

    def join(self, processes: Sequence[Process], engines: Mapping[int, str] = NOTHING) -> bool:
        """Record these processes too, until the recording ends. Thread-safe.

        `events` has `Started` or an outcome for each. A pid that is a part of the recording already is left
        out. False if the recording is over: then none is recorded.
        """
        with self._joining:
            if not self._records:
                return False
            new = [one for one in _chosen(processes, engines) if one.pid not in self._asked]
            self._asked.update(one.pid for one in new)
            self._unanswered.update((one.pid, one) for one in new)
            if new:
                with contextlib.suppress(HostError):  # as above
                    self._send(requests.Join(processes=new))
            return True

    def prepare(
        self, plan: Plan, processes: Sequence[Process], engines: Mapping[int, str] = NOTHING
    ) -> tuple[tuple[int, ...], tuple[ProcessOutcome, ...]]:
        """Get everything ready to sample; returns the pids that are ready, and outcomes of the others.

        `engines` are the only ones that may record, by pid.
        """
        self.stage = "prepare"
        self._sampling = plan.sampling
        asked = {process.pid for process in processes}
        self.clock = self.clock or self._read_clock()
        offset = self.clock.offset
        self._send(requests.Prepare(processes=_chosen(processes, engines), clock_offset=offset, **vars(plan)))
        outcomes: list[ProcessOutcome] = []
        while isinstance(event := self._receive(), ProcessOutcome):
            outcomes.append(event)
            if event.pid is not None and event.pid not in asked:
                raise self._nonsense("an outcome of a process that was not asked for")
            if len(outcomes) > len(asked) + _EXTRA_EVENTS:
                raise self._nonsense("too many outcomes")
        if not isinstance(event, messages.Ready):
            raise self._nonsense(f"{tag_of(type(event))!r} instead of outcome or ready")
        prepared = tuple(one.pid for one in event.processes)
        if not asked.issuperset(prepared) or len(set(prepared)) != len(prepared):
            raise self._nonsense("it prepared processes that were not asked for")
        self._asked = set(prepared)
        return prepared, tuple(outcomes)

    def _read_clock(self) -> Clock:
        readings = []
        for _ in range(_CLOCK_READINGS):
            asked, began = time.time(), time.monotonic()
            try:
                self._wire.send(requests.Clock())
            except HostError as error:
                raise error.at(self.stage) from error
            there = self._answer(ClockTold).time
            readings.append(ClockReading(asked, there, asked + time.monotonic() - began))
        return Clock.of(readings)

    def check(self, plan: Plan, processes: Sequence[Process]) -> Checked:
        """What `prepare` and `start` would do, for each process in order; nothing is touched."""
        self.stage = "prepare"
        self._send(requests.Check(processes=_chosen(processes), **vars(plan)))
        checked = self._answer(Checked)
        if [one.pid for one in checked.processes] != [process.pid for process in processes]:
            raise self._nonsense("it checked processes that were not asked for")
        return checked

    def start(self) -> None:
        """Start sampling; `events` returns the results."""
        self.stage = "start"
        self._records = True
        self._send(requests.Start())

    def events(self) -> Iterator[RecordEvent | Appeared]:
        """Events from `start` to the final `Done`; `payload` reads what a header announces."""
        came: set[tuple[int | None, str]] = set()
        kinds = len(self._sampling.events if self._sampling else ())
        part = self._sampling.part if self._sampling else None
        begin, count = time.monotonic(), 0
        done: Done | None = None
        while done is None or self._unanswered:
            event = self._receive()
            if isinstance(event, messages.AppearedMessage):
                yield self._appeared(event)
                continue
            if not isinstance(event, RecordEvent):
                raise self._nonsense(f"unexpected event {tag_of(type(event))!r}")
            self.stage = _STAGE_OF.get(type(event), self.stage)
            pid = getattr(event, "pid", None)
            if pid is not None and pid not in self._asked:
                raise self._nonsense("an event of a process that was not asked for")
            count += 1
            parts = 1 + (time.monotonic() - begin) / part if part else 0
            of_process = 5 + 2 * kinds + parts * (kinds + 1)  # profiles and pauses
            if count > of_process * len(self._asked) + parts + _EXTRA_EVENTS:
                raise self._nonsense("too many events")
            if isinstance(event, (ProfileHeader, RawHeader, PausesMessage, MetricsMessage)):
                self._check_header(event, came)
            if isinstance(event, (PausesMessage, MetricsMessage)) and event.more:
                self._acknowledge()
            if isinstance(event, (messages.Started, ProcessOutcome)) and pid is not None:
                self._unanswered.pop(pid, None)
            if not isinstance(event, Done):
                yield event
                continue
            done = event
            with self._joining:
                self._records = False  # what was to join until now gets its outcomes after this
            self._acknowledge()
        self._wire.lost = None  # there is nothing left to fetch
        yield done

    def _appeared(self, event: messages.AppearedMessage) -> Appeared:
        pids = {one.pid for one in event.processes}
        if not self._follow or len(pids) != len(event.processes) or pids & self._named:
            raise self._nonsense("it named a process twice, or was not asked to follow")
        if len(self._named) > messages.MAX_FOLLOWED:
            raise self._nonsense("too many processes appeared")
        return Appeared(self._name(event.processes), event.ignored)

    def _check_header(
        self,
        header: ProfileHeader | RawHeader | PausesMessage | MetricsMessage,
        came: set[tuple[int | None, str]],
    ) -> None:
        """Accepts only what was requested, each once."""
        assert self._sampling is not None
        what: str
        pid = None if isinstance(header, MetricsMessage) else header.pid
        if isinstance(header, MetricsMessage):
            what, asked = "metrics", self._sampling.metrics
        elif isinstance(header, RawHeader):
            what, asked = header.name, self._sampling.keep_raw
        elif isinstance(header, PausesMessage):
            what, asked = "pauses", self._sampling.timeline
        else:
            what, asked = header.event, header.event in self._sampling.events
        if not asked:
            raise self._nonsense(f"{what!r} was not asked for")
        if (pid, what) in came:
            whose = "" if pid is None else f" of process {pid}"
            raise self._nonsense(f"{what!r}{whose} came twice")
        if not isinstance(header, RawHeader) and header.more:
            if self._sampling.part is None:
                raise self._nonsense(f"a part of {what!r} was not asked for")
            return  # others follow, and the last one
        came.add((pid, what))

    def payload(self, header: ProfileHeader | RawHeader) -> Iterator[bytes]:
        """The bytes that `header` announced; all are to be taken before the next event.

        Raises HostError (stage "fetch") after the last piece when the SHA-256 is another, so whoever
        keeps the pieces must not use them before the end.
        """
        digest = hashlib.sha256()
        try:
            for piece in self._wire.payload(header.size):
                digest.update(piece)
                yield piece
        except EOFError:
            raise self._ended("fetch") from None
        self._acknowledge()
        if digest.hexdigest() != header.sha256:
            what = header.name if isinstance(header, RawHeader) else f"{header.event} profile"
            raise HostError(
                "fetch",
                f"the {what} of process {header.pid} arrived damaged",
                "record again",
                code="damaged-transfer",
            )

    def watch(self, processes: Sequence[Process] | None = None, counters: Sequence[str] = ()) -> Metrics:
        """What was read since the last call, with the reading before; times are by the host's clock.

        With `processes`, those are read and counted from now on, besides the host. The first call needs
        them. An audit names these calls only.
        """
        chosen = None
        if processes is not None:
            chosen = [requests.Watched(one.pid, one.start_time) for one in processes]
        self._send(requests.Watch(processes=chosen, counters=tuple(counters)), audited=chosen is not None)
        return self._answer(MetricsMessage).metrics

    def memory(self, processes: Sequence[Process], heap: bool = False) -> MemoryMessage:
        """Where the memory of the processes is; with `heap`, JVMs stand still and count their objects."""
        self.stage = "measure"
        chosen = [requests.Watched(one.pid, one.start_time) for one in processes]
        self._send(requests.Memory(processes=chosen, heap=heap))
        measured = self._answer(MemoryMessage)
        if [one.pid for one in measured.processes] != [process.pid for process in processes]:
            raise self._nonsense("it measured processes that were not asked for")
        return measured

    def dump(
        self, processes: Sequence[Process], owners: bool = False, agent_cpu: float = 1.0
    ) -> Iterator[DumpEvent]:
        """Ask what all threads of the processes do now. The last event is `Dumped`.

        Each process has one outcome, perhaps after a text, whose `text` is to be taken before the next event.
        """
        self.stage = "dump"
        self.clock = self.clock or self._read_clock()
        chosen = [requests.Watched(one.pid, one.start_time) for one in processes]
        self._send(requests.Dump(processes=chosen, owners=owners, agent_cpu=agent_cpu))
        without_outcome = {one.pid for one in processes}
        without_text = set(without_outcome)
        while not isinstance(event := self._receive(), Dumped):
            if not isinstance(event, (DumpHeader, ProcessOutcome)):
                raise self._nonsense(f"unexpected event {tag_of(type(event))!r}")
            left = without_text if isinstance(event, DumpHeader) else without_outcome
            if event.pid not in without_outcome or event.pid not in left:
                raise self._nonsense("an event of a process that was not asked for, or twice")
            left.remove(event.pid)
            yield event
        if without_outcome:
            raise self._nonsense("a process that was asked has no outcome")
        yield event

    def text(self, header: DumpHeader) -> Iterator[bytes]:
        """The text that `header` announced. Raises HostError if it is damaged, or too long."""
        unpacker = zlib.decompressobj(wbits=31)
        left = messages.MAX_TEXT
        try:
            for piece in self._wire.payload(header.size):
                text = unpacker.decompress(piece, left + 1)
                left -= len(text)
                if left < 0:
                    raise self._nonsense("a text that is too long")
                yield text
        except EOFError:
            raise self._ended("dump") from None
        except zlib.error as error:
            raise self._nonsense(f"a damaged text: {error}") from error
        if not unpacker.eof:
            raise self._nonsense("a text that is cut off")

    def stop(self) -> None:
        """End the recording, or the dump, early; from any thread."""
        self._send(requests.Stop())

    def clean(self, dry: bool = False) -> Leftovers:
        """Remove what earlier sessions left, or only list it (`dry`)."""
        self.stage = "clean"
        self._begin_lease()  # JVMs that hang are waited for longer than a lease
        self._send(requests.Clean(dry=dry, brought=self.pushed))
        return self._answer(Leftovers)

    def record_briefly(
        self, plan: Plan, process: Process, engine: str
    ) -> tuple[ProcessOutcome, tuple[str, ...]]:
        """Record one process alone for `CANARY_SECONDS` by that engine; its profiles are thrown away.

        Returns its outcome, and the files that could not be deleted.
        """
        brief = replace(
            plan,
            sampling=replace(
                plan.sampling, duration=CANARY_SECONDS, keep_raw=False, metrics=False, counters=()
            ),
        )
        _, outcomes = self.prepare(brief, [process], {process.pid: engine})
        last = outcomes[-1] if outcomes else None
        left: tuple[str, ...] = ()
        self.start()
        for event in self.events():
            if isinstance(event, ProfileHeader):
                for _ in self.payload(event):
                    pass
            elif isinstance(event, ProcessOutcome):
                last = event
            elif isinstance(event, Done):
                left = event.left
        if last is None or last.pid != process.pid:
            raise self._nonsense("a recorded process has no outcome")
        return last, left

    # Reconnecting

    def on_loss(self, comes_back: Callable[[HostError], None]) -> None:
        """From now on, `comes_back` is called with the reason when reading fails.

        It lets another session `resume` this one and returns, or raises HostError.
        """
        self._comes_back = comes_back
        self._wire.lost = self._lost

    def _lost(self, error: HostError | None) -> None:
        if self._comes_back is None or self._closed.is_set():
            self._wire.lost = None
            return
        try:
            self._comes_back((error or self._ended(self.stage)).at(self.stage))
        except HostError as gone:
            self._gone = gone
            self._wire.lost = None
            raise

    def resume(self, former: AgentSession) -> bool:
        """Let `former`, whose connection was lost, continue over this connection.

        False if its agent is gone; then this session is an ordinary one.
        """
        self._send(requests.Resume(token=former._token, received=former._wire.received))
        found = self._answer(Resumed).found
        if found:
            former._transport, former._channel = self._transport, self._channel
            former._wire.go_on(self._wire)
            former._repeat()
        else:
            self._begin_lease()
        return found

    def _repeat(self) -> None:
        """Ask again for what the agent may not have received before the connection was lost."""
        with self._joining, contextlib.suppress(HostError):
            if self._follow and self._records:
                self._wire.send(self._follow)
            if self._unanswered:
                self._wire.send(requests.Join(processes=list(self._unanswered.values())))

    def _acknowledge(self) -> None:
        """Tell the agent what was received, so that it need not keep it."""
        with contextlib.suppress(HostError):  # the reader gets the error
            self._wire.send(requests.Received(bytes=self._wire.received))

    # The end

    def bye(self) -> tuple[str, ...]:
        """Let the agent clean up and wait for its end; returns leftovers and the reason.

        An agent that reports leftovers may stay for a while to remove them.
        """
        self.stage = "clean"
        self._closed.set()
        self._wire.lost = None
        with contextlib.suppress(HostError):  # it ends by itself when its work is done
            self._send(requests.Bye())
        try:
            while (event := self._wire.receive()) is not None:
                if not self._is_heard(event) and isinstance(event, Left):
                    self._is_left = True
                    self._channel.leave()
                    return event.left
        except BadEvent as error:
            raise self._nonsense(str(error)) from error
        status = self._channel.exit_status(_EXIT_WAIT)
        if status not in (0, None):
            raise self._ended("clean")
        self.close()
        return ()

    def let_go(self, wait: float = _LAST_WORD) -> None:
        """End the session early and tell the agent, so that it keeps nothing. Thread-safe.

        A reader may still receive its last events, within `wait` seconds.
        """
        if not self._closed.is_set():
            self._closed.set()
            self._wire.lost = None
            last = threading.Thread(target=self._say_bye, name="hprofiler-let-go", daemon=True)
            with contextlib.suppress(RuntimeError):  # without a thread the agent sees its stdin close
                last.start()
                last.join(_LAST_WORD)
                self._wire.ended.wait(wait)
        self._channel.close()

    def last_words(self, seconds: float) -> None:
        """End the session, and receive the agent's last events for up to `seconds`."""
        if self._is_left:
            return
        timer = threading.Timer(seconds, self._channel.close)
        timer.daemon = True
        timer.start()
        with contextlib.suppress(HostError):
            self.bye()
        timer.cancel()

    def _say_bye(self) -> None:
        with contextlib.suppress(HostError):
            self._wire.send(requests.Bye())
        if self._witness:  # last: it may take longer than anybody waits for this
            self._witness.asks({"type": "bye"})

    def close(self) -> None:
        """Close the channel: the agent sees its stdin close and cleans up. Thread-safe."""
        self._closed.set()
        self._channel.close()

    # Talking

    def _begin_lease(self) -> None:
        if self._renews:
            return
        self._renews = True
        threading.Thread(target=self._renew, name="hprofiler-lease", daemon=True).start()

    def _renew(self) -> None:
        while not self._closed.wait(_PING_SECONDS):
            with contextlib.suppress(HostError):  # the reader gets the error
                self._wire.send(requests.Ping())

    def _send(self, request: Request, payload: Iterable[bytes] = (), audited: bool = True) -> None:
        if self._witness and audited:
            self._witness.asks(msgspec.to_builtins(request))
        try:
            self._wire.send(request, payload)
        except HostError as error:
            raise error.at(self.stage) from error

    def _receive(self) -> Event:
        """The next event. Raises HostError for an `error` event, the end, and protocol errors."""
        while self._is_heard(event := self._event()):
            pass
        if isinstance(event, Error):
            code = "" if event.code == "failed" else event.code
            raise HostError(self.stage, event.reason, event.remedy, code, event.parameters)
        return event

    def _is_heard(self, event: Event) -> bool:
        """Whether the event was for the witness."""
        if self._witness is None or not isinstance(event, Action):
            return False
        self._witness.did(event)
        return True

    def _event(self) -> Event:
        try:
            event = self._wire.receive()
        except BadEvent as error:
            raise self._nonsense(str(error)) from error
        except HostError as error:
            raise error.at(self.stage) from error
        if event is None:
            raise self._ended(self.stage)
        return event

    def _answer(self, kind: type[M]) -> M:
        event = self._receive()
        if not isinstance(event, kind):
            raise self._nonsense(f"{tag_of(type(event))!r} instead of {tag_of(kind)}")
        return event

    def _nonsense(self, what: str) -> HostError:
        return HostError(
            self.stage,
            f"the agent broke the protocol: {what}",
            "run `hprofiler cleanup`",
            code="protocol-error",
        )

    def _ended(self, stage: str) -> HostError:
        if self._gone:
            return self._gone.at(stage)
        said = self._channel.stderr_tail()
        refused = bootstrap.sudo_refusal(said) if self._transport.become and stage == "connect" else None
        if refused:
            return HostError(stage, *refused)
        status = self._channel.exit_status(_END_WAIT)
        kind: type[HostError] = ConnectionLost if status is None else AgentEnded
        how, remedy = how_it_ended(status)
        return kind(stage, f"{how}: {printable(said[-500:])}" if said else how, remedy)


def how_it_ended(status: int | None) -> tuple[str, str]:
    """What an agent's exit status means, and what to do."""
    if status is None:
        return "the connection was lost", ""
    if status == SOME_SIGNAL:
        return "the agent was killed by a signal while the connection was up", _KILLED
    number = -status if status < 0 else status - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"the agent ended with status {status}", ""
    return f"the agent ended with status {status} ({name})", _KILLED if number == signal.SIGKILL else ""


def _chosen(processes: Sequence[Process], engines: Mapping[int, str] = NOTHING) -> list[requests.Chosen]:
    return [
        requests.Chosen(one.pid, one.start_time, one.label, one.labels, engines.get(one.pid))
        for one in processes
    ]
