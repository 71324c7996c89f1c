"""One agent at work: typed requests and answers, and the lease that is renewed behind them.

Calls block without a time limit; whoever makes them closes the transport when it has waited long enough
(`hprofiler.collect` does), which sets every call free with a HostError.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import asdict
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from hprofiler.agent import bootstrap, events, visiting
from hprofiler.agent.bootstrap import AgentBinaries, Blob
from hprofiler.agent.checks import AuditEntry, Checked, parse_audited, parse_checked
from hprofiler.agent.coordinator import own_processes
from hprofiler.agent.events import (
    Done,
    Found,
    Hello,
    Listed,
    ProcessOutcome,
    ProfileHeader,
    RawHeader,
    RecordEvent,
)
from hprofiler.agent.leftovers import Cleaned, Leftovers, parse_cleaned, parse_leftovers
from hprofiler.agent.wire import BadEvent, Wire
from hprofiler.errors import HostError
from hprofiler.model import Process, Sampling
from hprofiler.transports.base import Channel, Transport
from hprofiler.transports.text import printable

PROTOCOL = 2
LEASE_SECONDS = 30
_EXTRA_EVENTS = 1000
_EXTRA_SECONDS = 61  # of a recording, at most: the agent's own deadline
_EXIT_WAIT = 5.0
NO_VERSIONS: Mapping[str, str] = {}
_STAGE_OF: Mapping[type, str] = {events.Recording: "record", ProfileHeader: "fetch", RawHeader: "fetch"}

Parsed = TypeVar("Parsed")


class AgentSession:
    """Made by `AgentSession.open`; a context manager whose end lets go of the agent."""

    def __init__(
        self, transport: Transport, launched: bootstrap.Launched, told: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._told = told
        self._transport = transport
        self._channel: Channel = launched.channel
        self._wire = launched.wire
        self._closed = threading.Event()
        self._prepared: Tuple[int, ...] = ()
        self._sampling: Optional[Sampling] = None
        self.stage = "connect"
        self.arch = launched.arch
        self.pushed = launched.pushed
        self.hello = self._greeted()
        self._lease = threading.Thread(target=self._renew, name="hprofiler-lease", daemon=True)
        self._lease.start()

    @classmethod
    def open(
        cls,
        transport: Transport,
        binaries: AgentBinaries,
        enter: Callable[[str], None] = lambda stage: None,
        told: Optional[Callable[[Mapping[str, Any]], None]] = None,
    ) -> AgentSession:
        """Start the agent over a connected transport and greet it. `enter` hears "push" before a push.

        `told` hears of every request before it is sent, and has the agent keep what it does.
        """
        greeting = {
            "type": "hello",
            "protocol": PROTOCOL,
            "lease_seconds": LEASE_SECONDS,
            "exclude": own_processes(),
            "audit": told is not None,
        }

        def greet(wire: Wire) -> None:
            if told:
                told(greeting)
            wire.send(greeting)

        launch = visiting.launch if transport.leaves_nothing else bootstrap.launch
        launched = launch(transport, binaries, greet, enter)
        try:
            return cls(transport, launched, told or (lambda request: None))
        except BaseException:
            launched.channel.close()
            raise

    def _greeted(self) -> Hello:
        event = self._answer("hello")
        if event.get("protocol") != PROTOCOL:
            raise HostError(
                "connect", "the agent speaks another version of the protocol", "run `hprofiler cleanup`"
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
            raise HostError("push", f"{name} did not arrive whole", "try again")

    def list(self) -> Tuple[Listed, ...]:
        """Every process the agent can see."""
        self.stage = "find"
        self._send({"type": "list"})
        return self._parsed(events.parse_listed, self._answer("processes"))

    def find(
        self,
        query: Optional[Mapping[str, Any]],
        native: bool = False,
        containers: Iterable[str] = (),
        own: Optional[str] = None,
    ) -> Found:
        """The processes that the protocol's selector object `query` means; `native`: not only JVMs.

        With `containers` (ids) only what is in them, each process with its container's id as a label; there
        `query` may be None for all of it. `own` is the one of them that the agent itself is in.
        """
        self.stage = "find"
        ids = list(containers)
        request: Dict[str, Any] = {"type": "find", "selector": query and dict(query), "native": native}
        if ids:
            request["containers"] = ids
        if own is not None:
            request["own"] = own
        self._send(request)
        event = self._answer("found")
        found = self._parsed(lambda found: events.parse_found(found, self._transport.host.name), event)
        if ids and not {process.labels.get("container", "") for process in found.processes} <= set(ids):
            raise self._nonsense("it found a process of no container that it was asked for")
        return found

    def prepare(
        self,
        sampling: Sampling,
        blobs: Mapping[str, str],
        processes: Sequence[Process],
        versions: Mapping[str, str] = NO_VERSIONS,
        cores: float = 1.0,
    ) -> Tuple[Tuple[int, ...], Tuple[ProcessOutcome, ...]]:
        """Get everything ready to sample; gives the pids that are, and an outcome for each that cannot be.

        `blobs` are the SHA-256 of what the engines load into processes, by the protocol's names, and
        `versions` their releases, where these are known. `cores` are the processors that the agent may use.
        """
        self.stage = "prepare"
        self._sampling = sampling
        asked = {process.pid for process in processes}
        self._send({"type": "prepare", **_request(sampling, blobs, versions, processes, cores)})
        outcomes: List[ProcessOutcome] = []
        while (event := self._answer("outcome", "ready"))["type"] == "outcome":
            outcomes.append(self._parsed(events.parse_outcome, event))
            self._check_outcome(outcomes, asked)
        self._prepared = self._parsed(events.parse_ready, event)
        if not asked.issuperset(self._prepared) or len(set(self._prepared)) != len(self._prepared):
            raise self._nonsense("it prepared processes that it was not asked for")
        return self._prepared, tuple(outcomes)

    def _check_outcome(self, outcomes: Sequence[ProcessOutcome], asked: set[int]) -> None:
        if outcomes[-1].pid is not None and outcomes[-1].pid not in asked:
            raise self._nonsense("an outcome of a process that it was not asked for")
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
        self._send({"type": "check", **_request(sampling, blobs, versions, processes, cores)})
        checked = self._parsed(parse_checked, self._answer("checked"))
        if [one.outcome.pid for one in checked.processes] != [process.pid for process in processes]:
            raise self._nonsense("it checked other processes than it was asked for")
        return checked

    def start(self) -> None:
        """Begin sampling; `events` tells what becomes of it."""
        self.stage = "start"
        self._send({"type": "start"})

    def events(self) -> Iterator[RecordEvent]:
        """What happens from `start` to the final `Done`; what a header announces is read with `payload`."""
        asked = set(self._prepared)
        came: Set[Tuple[int, str]] = set()
        events_of_each = 4 + 2 * len(self._sampling.events if self._sampling else ())
        for _ in range(events_of_each * len(asked) + _EXTRA_EVENTS):
            event = self._parsed(events.parse_record_event, self._receive())
            self.stage = _STAGE_OF.get(type(event), self.stage)
            pid = getattr(event, "pid", None)
            if pid is not None and pid not in asked:
                raise self._nonsense("an event of a process that it was not asked for")
            if isinstance(event, (ProfileHeader, RawHeader)):
                self._check_header(event, came)
            yield event
            if isinstance(event, Done):
                return
        raise self._nonsense("too many events")

    def _check_header(self, header: Union[ProfileHeader, RawHeader], came: Set[Tuple[int, str]]) -> None:
        """Only what was asked for is taken, and each thing once."""
        assert self._sampling is not None
        if isinstance(header, RawHeader):
            what, asked = header.name, self._sampling.keep_raw
        else:
            what, asked = header.event, header.event in self._sampling.events
            if len(header.timeline) > self._sampling.duration + _EXTRA_SECONDS:
                raise self._nonsense("a timeline longer than the recording")
        if not asked:
            raise self._nonsense(f"{what!r} was not asked for")
        if (header.pid, what) in came:
            raise self._nonsense(f"{what!r} of process {header.pid} came twice")
        came.add((header.pid, what))

    def payload(self, header: Union[ProfileHeader, RawHeader]) -> Iterator[bytes]:
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
        if digest.hexdigest() != header.sha256:
            what = header.name if isinstance(header, RawHeader) else f"{header.event} profile"
            raise HostError("fetch", f"the {what} of process {header.pid} arrived damaged", "record again")

    def stop(self) -> None:
        """End the recording early; from any thread."""
        self._send({"type": "stop"})

    def clean(self, kept: bool, only: Optional[Sequence[str]] = None) -> Cleaned:
        """Remove what earlier sessions left, or `only` these ids of it; private folders too unless `kept`."""
        self.stage = "clean"
        self._send({"type": "clean", "kept": kept, **({} if only is None else {"only": list(only)})})
        return self._parsed(parse_cleaned, self._answer("cleaned"))

    def leftovers(self) -> Leftovers:
        """What earlier sessions left, and what looks like it; nothing is touched."""
        self.stage = "clean"
        self._send({"type": "clean", "kept": False, "dry": True})
        return self._parsed(parse_leftovers, self._answer("leftovers"))

    def canary(
        self,
        sampling: Sampling,
        blobs: Mapping[str, str],
        versions: Mapping[str, str],
        process: Process,
        cores: float = 1.0,
    ) -> Tuple[ProcessOutcome, Tuple[str, ...]]:
        """Record one process alone for a moment. It went badly where it failed at the stage "record".

        The second are files that could not be deleted.
        """
        self.stage = "prepare"
        self._send({"type": "canary", **_request(sampling, blobs, versions, [process], cores)})
        outcome, left = self._parsed(events.parse_watched, self._answer("watched"))
        if outcome.pid != process.pid:
            raise self._nonsense("it watched another process than it was asked for")
        return outcome, left

    def audited(self) -> Tuple[Tuple[AuditEntry, ...], int]:
        """What the agent did since it was last asked, and how much more than it could keep."""
        self._send({"type": "audit"})
        return self._parsed(parse_audited, self._answer("audited"))

    def bye(self) -> None:
        """Let the agent clean up, and wait until it has ended."""
        self.stage = "clean"
        self._closed.set()
        with contextlib.suppress(HostError):  # it ends by itself when its work is done
            self._send({"type": "bye"})
        try:
            while self._wire.receive() is not None:
                pass
        except BadEvent as error:
            raise self._nonsense(str(error)) from error
        status = self._channel.exit_status(_EXIT_WAIT)
        if status not in (0, None):
            raise self._ended("clean")
        self.close()

    def close(self) -> None:
        """Let go: the agent sees its stdin close, and cleans up by itself. From any thread."""
        self._closed.set()
        self._channel.close()

    # Talking

    def _renew(self) -> None:
        while not self._closed.wait(LEASE_SECONDS / 3):
            try:
                self._wire.send({"type": "ping"})
            except HostError:
                return  # whoever reads will be told

    def _send(self, request: Mapping[str, Any], payload: Iterable[bytes] = ()) -> None:
        self._told(request)
        try:
            self._wire.send(request, payload)
        except HostError as error:
            raise HostError(self.stage, error.reason, error.remedy) from error

    def _receive(self) -> Dict[str, Any]:
        """The next event; an `error` event, the end and nonsense become HostError."""
        try:
            event = self._wire.receive()
        except BadEvent as error:
            raise self._nonsense(str(error)) from error
        except HostError as error:
            raise HostError(self.stage, error.reason, error.remedy) from error
        if event is None:
            raise self._ended(self.stage)
        if event["type"] == "error":
            raise HostError(self.stage, *self._parsed(_error, event))
        return event

    def _answer(self, *types: str) -> Dict[str, Any]:
        event = self._receive()
        if event["type"] not in types:
            raise self._nonsense(f"{printable(event['type'][:40])!r} where {' or '.join(types)} was due")
        return event

    def _parsed(self, parse: Callable[[Dict[str, Any]], Parsed], event: Dict[str, Any]) -> Parsed:
        try:
            return parse(event)
        except BadEvent as error:
            raise self._nonsense(f"{printable(event['type'][:40])}: {error}") from error

    def _nonsense(self, what: str) -> HostError:
        return HostError(
            self.stage, f"the agent does not keep to the protocol: {what}", "run `hprofiler cleanup`"
        )

    def _ended(self, stage: str) -> HostError:
        said = self._channel.stderr_tail()
        refusal = bootstrap.sudo_refusal(said) if self._transport.become and stage == "connect" else None
        if refusal:
            return HostError(stage, *refusal)
        status = self._channel.exit_status(0.2)
        how = "the connection was lost" if status is None else f"the agent ended with status {status}"
        return HostError(stage, f"{how}: {printable(said[-500:])}" if said else how)

    def __enter__(self) -> AgentSession:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.close()


def _error(event: Mapping[str, Any]) -> Tuple[str, str]:
    reason = event.get("reason"), event.get("remedy")
    texts = [printable(text[:4096]) if isinstance(text, str) else "" for text in reason]
    return texts[0] or "the agent gave up", texts[1]


def _request(
    sampling: Sampling,
    blobs: Mapping[str, str],
    versions: Mapping[str, str],
    processes: Sequence[Process],
    cores: float,
) -> Dict[str, Any]:
    return {
        "agent_cpu": cores,
        "sampling": asdict(sampling),
        "blobs": dict(blobs),
        "versions": dict(versions),
        "processes": [_process(process) for process in processes],
    }


def _process(process: Process) -> Dict[str, Any]:
    return {
        "pid": process.pid,
        "start_time": process.start_time,
        "label": process.label,
        "labels": dict(process.labels),
    }
