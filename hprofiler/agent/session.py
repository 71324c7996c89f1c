"""A session with an agent: typed requests and answers.

Calls block without a time limit. The caller closes the transport after its own limit (`hprofiler.collect`
does); then every call raises HostError.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from hprofiler.agent import bootstrap, messages, requests, visiting
from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.agent.messages import (
    Checked,
    Done,
    Hello,
    Ignored,
    Leftovers,
    Listing,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    RecordEvent,
)
from hprofiler.agent.requests import LEASE_SECONDS, Plan
from hprofiler.agent.talk import Talk, Witness
from hprofiler.agent.wire import Wire
from hprofiler.base.errors import HostError
from hprofiler.base.resources import Blob
from hprofiler.model import Process, Sampling
from hprofiler.transport.base import Transport

_EXTRA_EVENTS = 1000
_EXTRA_SECONDS = 61
"""By which a recording may be longer than was asked for: the agent's own deadline."""
CANARY_SECONDS = 2.0
"""How long a canary is recorded, in seconds."""
NOTHING: Mapping[Any, str] = {}
_STAGE_OF: Mapping[type, str] = {messages.Recording: "record", ProfileHeader: "fetch", RawHeader: "fetch"}


@dataclass(frozen=True)
class Found:
    """What a selector found among `searched` processes."""

    searched: int
    processes: tuple[Process, ...]
    ignored: tuple[Ignored, ...]


class AgentSession(Talk):
    """Made by `AgentSession.open`."""

    def __init__(
        self,
        transport: Transport,
        launched: bootstrap.Launched,
        witness: Witness | None,
        token: str,
    ) -> None:
        super().__init__(transport, launched, witness, token)
        self._prepared: tuple[int, ...] = ()
        self._sampling: Sampling | None = None
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

        `enter` hears "push" before a push and as it goes on. A `witness` hears of every request before it is
        sent, and has the agent tell what it does. With `to_resume` nothing is sent from here before `resume`
        is called.
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

    def find(
        self,
        query: Mapping[str, Any] | None,
        native: bool = False,
        containers: Iterable[str] = (),
        own: str | None = None,
        owners: Mapping[str, str] = NOTHING,
        manager_port: int | None = None,
    ) -> Found:
        """The processes that the protocol's selector object `query` means; see `requests.Find`."""
        self.stage = "find"
        ids = list(containers)
        self._send(
            requests.Find(
                selector=query,
                native=native,
                containers=ids or None,
                own=own,
                owners=owners,
                manager_port=manager_port,
            )
        )
        found = self._answer(messages.FoundMessage)
        if ids and not {process.labels.get("container", "") for process in found.processes} <= set(ids):
            raise self._nonsense("it found a process outside the containers asked for")
        host = self._transport.host.name
        return Found(found.searched, tuple(one.on(host) for one in found.processes), found.ignored)

    def prepare(
        self, plan: Plan, processes: Sequence[Process], engines: Mapping[int, str] = NOTHING
    ) -> tuple[tuple[int, ...], tuple[ProcessOutcome, ...]]:
        """Get everything ready to sample; gives the pids that are, and an outcome for each that cannot be.

        `engines` are the only ones that may record, by pid.
        """
        self.stage = "prepare"
        self._sampling = plan.sampling
        asked = {process.pid for process in processes}
        self._send(requests.Prepare(processes=_chosen(processes, engines), **vars(plan)))
        outcomes: list[ProcessOutcome] = []
        while isinstance(event := self._receive(), ProcessOutcome):
            outcomes.append(event)
            if event.pid is not None and event.pid not in asked:
                raise self._nonsense("an outcome of a process that was not asked for")
            if len(outcomes) > len(asked) + _EXTRA_EVENTS:
                raise self._nonsense("too many outcomes")
        if not isinstance(event, messages.Ready):
            raise self._nonsense(f"{messages.tag_of(type(event))!r} instead of outcome or ready")
        self._prepared = tuple(one.pid for one in event.processes)
        if not asked.issuperset(self._prepared) or len(set(self._prepared)) != len(self._prepared):
            raise self._nonsense("it prepared processes that were not asked for")
        return self._prepared, tuple(outcomes)

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
        self._send(requests.Start())

    def events(self) -> Iterator[RecordEvent]:
        """Events from `start` to the final `Done`; `payload` reads what a header announces."""
        asked = set(self._prepared)
        came: set[tuple[int, str]] = set()
        events_of_each = 4 + 2 * len(self._sampling.events if self._sampling else ())
        for _ in range(events_of_each * len(asked) + _EXTRA_EVENTS):
            event = self._receive()
            if not isinstance(event, RecordEvent):
                raise self._nonsense(f"unexpected event {messages.tag_of(type(event))!r}")
            self.stage = _STAGE_OF.get(type(event), self.stage)
            pid = getattr(event, "pid", None)
            if pid is not None and pid not in asked:
                raise self._nonsense("an event of a process that was not asked for")
            if isinstance(event, (ProfileHeader, RawHeader)):
                self._check_header(event, came)
            if isinstance(event, Done):
                self._acknowledge()
                self._wire.lost = None  # there is nothing left to fetch
            yield event
            if isinstance(event, Done):
                return
        raise self._nonsense("too many events")

    def _check_header(self, header: ProfileHeader | RawHeader, came: set[tuple[int, str]]) -> None:
        """Accepts only requested profiles, each once."""
        assert self._sampling is not None
        what: str
        if isinstance(header, RawHeader):
            what, asked = header.name, self._sampling.keep_raw
        else:
            what, asked = header.event, header.event in self._sampling.events
            if len(header.timeline) > self._sampling.duration + _EXTRA_SECONDS:
                raise self._nonsense("the timeline is longer than the recording")
        if not asked:
            raise self._nonsense(f"{what!r} was not asked for")
        if (header.pid, what) in came:
            raise self._nonsense(f"{what!r} of process {header.pid} came twice")
        came.add((header.pid, what))

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

    def stop(self) -> None:
        """End the recording early; from any thread."""
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

        Gives its outcome, and the files that could not be deleted.
        """
        brief = replace(plan, sampling=replace(plan.sampling, duration=CANARY_SECONDS, keep_raw=False))
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


def _chosen(processes: Sequence[Process], engines: Mapping[int, str] = NOTHING) -> list[requests.Chosen]:
    return [
        requests.Chosen(one.pid, one.start_time, one.label, one.labels, engines.get(one.pid))
        for one in processes
    ]
