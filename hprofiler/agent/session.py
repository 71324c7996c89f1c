"""One agent at work: typed requests and answers.

Calls block without a time limit; whoever makes them closes the transport when it has waited long enough
(`hprofiler.collect` does), which sets every call free with a HostError.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hprofiler.agent import bootstrap, events, visiting
from hprofiler.agent.bootstrap import AgentBinaries, Blob
from hprofiler.agent.checks import Checked, parse_checked
from hprofiler.agent.coordinator import own_processes
from hprofiler.agent.events import (
    Done,
    Found,
    Hello,
    Listing,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    RecordEvent,
)
from hprofiler.agent.leftovers import Leftovers, parse_leftovers
from hprofiler.agent.requests import NO_ENGINES, to_record
from hprofiler.agent.talk import LEASE_SECONDS, Talk, Witness
from hprofiler.agent.wire import Wire
from hprofiler.base.errors import HostError
from hprofiler.model import Process, Sampling
from hprofiler.transport.base import Transport

PROTOCOL = 2
_EXTRA_EVENTS = 1000
CANARY_SECONDS = 2.0
"""How long a canary is recorded, in seconds."""
NO_VERSIONS: Mapping[str, str] = {}
_STAGE_OF: Mapping[type, str] = {events.Recording: "record", ProfileHeader: "fetch", RawHeader: "fetch"}


class AgentSession(Talk):
    """Made by `AgentSession.open`; a context manager whose end lets go of the agent."""

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
        self.hello = self._greeted()

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
        greeting = {
            "type": "hello",
            "protocol": PROTOCOL,
            "lease_seconds": LEASE_SECONDS,
            "exclude": own_processes(),
            "audit": witness is not None,
            "resume": token,
        }

        def greet(wire: Wire) -> None:
            if witness:
                witness.asks(greeting)
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

    def _greeted(self) -> Hello:
        event = self._answer("hello")
        if event.get("protocol") != PROTOCOL:
            raise HostError(
                "connect",
                "the agent speaks another version of the protocol",
                "run `hprofiler cleanup`",
                code="version-mismatch",
            )
        return self._parsed(events.parse_hello, event)

    # Requests

    def put(self, name: str, blob: Blob) -> None:
        """Send a file; not needed where `hello.blobs` has its SHA-256."""
        self.stage = "push"
        size = blob.path.stat().st_size
        request = {"type": "put", "name": name, "sha256": blob.sha256, "size": size}
        self._send(request, bootstrap.pieces(Path(blob.path)))
        if self._answer("stored").get("sha256") != blob.sha256:
            raise HostError("push", f"{name} arrived incomplete", "try again", code="damaged-transfer")

    def list(self) -> Listing:
        """Every process the agent can see."""
        self.stage = "find"
        self._send({"type": "list"})
        return self._parsed(events.parse_listing, self._answer("processes"))

    def find(
        self,
        query: Mapping[str, Any] | None,
        native: bool = False,
        containers: Iterable[str] = (),
        own: str | None = None,
        vouched: Mapping[str, Any] | None = None,
    ) -> Found:
        """The processes that the protocol's selector object `query` means; `native`: not only JVMs.

        With `containers` (ids) only what is in them, each process with its container's id as a label; there
        `query` may be None for all of it. `own` is the one of them that the agent itself is in; `vouched` are
        the protocol's `owners` and `manager_port`, as far as they are known.
        """
        self.stage = "find"
        ids = list(containers)
        request: dict[str, Any] = {"type": "find", "selector": query and dict(query), "native": native}
        if ids:
            request.update(vouched or {}, containers=ids)
        if own is not None:
            request["own"] = own
        self._send(request)
        event = self._answer("found")
        found = self._parsed(lambda found: events.parse_found(found, self._transport.host.name), event)
        if ids and not {process.labels.get("container", "") for process in found.processes} <= set(ids):
            raise self._nonsense("it found a process outside the containers asked for")
        return found

    def prepare(
        self,
        sampling: Sampling,
        blobs: Mapping[str, str],
        processes: Sequence[Process],
        versions: Mapping[str, str] = NO_VERSIONS,
        cores: float = 1.0,
        engines: Mapping[int, str] = NO_ENGINES,
    ) -> tuple[tuple[int, ...], tuple[ProcessOutcome, ...]]:
        """Get everything ready to sample; gives the pids that are, and an outcome for each that cannot be.

        `blobs` are the SHA-256 of what the engines load into processes, by the protocol's names, and
        `versions` their releases, where these are known. `cores` are the processors that the agent may use,
        and `engines` the only ones that may record, by pid.
        """
        self.stage = "prepare"
        self._sampling = sampling
        asked = {process.pid for process in processes}
        request = to_record(sampling, blobs, versions, processes, cores, engines)
        self._send({"type": "prepare", **request})
        outcomes: list[ProcessOutcome] = []
        while (event := self._answer("outcome", "ready"))["type"] == "outcome":
            outcomes.append(self._parsed(events.parse_outcome, event))
            self._check_outcome(outcomes, asked)
        self._prepared = self._parsed(events.parse_ready, event)
        if len(self._prepared) > events.MAX_RECORDED:
            raise self._nonsense(f"it prepared more than {events.MAX_RECORDED} processes")
        if not asked.issuperset(self._prepared) or len(set(self._prepared)) != len(self._prepared):
            raise self._nonsense("it prepared processes that were not asked for")
        return self._prepared, tuple(outcomes)

    def _check_outcome(self, outcomes: Sequence[ProcessOutcome], asked: set[int]) -> None:
        if outcomes[-1].pid is not None and outcomes[-1].pid not in asked:
            raise self._nonsense("an outcome of a process that was not asked for")
        if len(outcomes) > len(asked) + _EXTRA_EVENTS:
            raise self._nonsense("too many outcomes")

    def check(
        self,
        sampling: Sampling,
        blobs: Mapping[str, str],
        versions: Mapping[str, str],
        processes: Sequence[Process],
        cores: float = 1.0,
    ) -> Checked:
        """What `prepare` and `start` would come to, of each process in their order; nothing is touched."""
        self.stage = "prepare"
        self._send({"type": "check", **to_record(sampling, blobs, versions, processes, cores)})
        checked = self._parsed(parse_checked, self._answer("checked"))
        if [one.outcome.pid for one in checked.processes] != [process.pid for process in processes]:
            raise self._nonsense("it checked processes that were not asked for")
        return checked

    def start(self) -> None:
        """Begin sampling; `events` tells what becomes of it."""
        self.stage = "start"
        self._send({"type": "start"})

    def events(self) -> Iterator[RecordEvent]:
        """What happens from `start` to the final `Done`; what a header announces is read with `payload`."""
        asked = set(self._prepared)
        came: set[tuple[int, str]] = set()
        events_of_each = 4 + 2 * len(self._sampling.events if self._sampling else ())
        for _ in range(events_of_each * len(asked) + _EXTRA_EVENTS):
            event = self._parsed(events.parse_record_event, self._receive())
            self.stage = _STAGE_OF.get(type(event), self.stage)
            pid = getattr(event, "pid", None)
            if pid is not None and pid not in asked:
                raise self._nonsense("an event of a process that was not asked for")
            if isinstance(event, (ProfileHeader, RawHeader)):
                assert self._sampling is not None
                if unwanted := events.unwanted(event, self._sampling, came):
                    raise self._nonsense(unwanted)
            if isinstance(event, Done):
                self._acknowledge()
                self._wire.lost = None  # there is nothing left to come back for
            yield event
            if isinstance(event, Done):
                return
        raise self._nonsense("too many events")

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
        self._send({"type": "stop"})

    def clean(self, kept: bool = False, dry: bool = False) -> Leftovers:
        """Remove what earlier sessions left, or only list it (`dry`); caches stay where they are `kept`."""
        self.stage = "clean"
        self._begin_lease()  # JVMs that hang are waited for longer than a lease
        self._send({"type": "clean", "kept": kept, "dry": dry, "brought": self.pushed})
        return self._parsed(parse_leftovers, self._answer("leftovers"))

    def record_briefly(
        self,
        sampling: Sampling,
        blobs: Mapping[str, str],
        versions: Mapping[str, str],
        process: Process,
        cores: float,
        engine: str,
    ) -> tuple[ProcessOutcome, tuple[str, ...]]:
        """Record one process alone for `CANARY_SECONDS` by that engine; its profiles are thrown away.

        Gives its outcome, and the files that could not be deleted.
        """
        brief = replace(sampling, duration=CANARY_SECONDS, keep_raw=False)
        _, outcomes = self.prepare(brief, blobs, [process], versions, cores, {process.pid: engine})
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
