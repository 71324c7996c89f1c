"""The conversation with an agent: renewing the lease, the end, reconnecting."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from hprofiler.agent import bootstrap, requests
from hprofiler.agent.messages import Action, BadEvent, Error, Event, Left, M, Resumed, tag_of
from hprofiler.agent.requests import LEASE_SECONDS, Request
from hprofiler.base.errors import AgentEnded, ConnectionLost, HostError
from hprofiler.base.text import printable
from hprofiler.transport.base import SOME_SIGNAL, Channel, Transport

_PING_SECONDS = LEASE_SECONDS / 10
"""Short, so that most of the lease remains for a broken link."""
_LAST_WORD = 1.0
_END_WAIT = 2.0
_KILLED = (
    "if nobody killed it, memory may have run out: look into `dmesg` on the host, and at the limits of the "
    "login (`ulimit -a`, its control group)"
)
_EXIT_WAIT = 5.0


class Witness(Protocol):
    """Receives each request before it is sent (but not `ping` and `received`), and what the agent reports."""

    def asks(self, request: Mapping[str, Any]) -> None: ...
    def did(self, action: Action) -> None: ...


class Talk:
    """What `AgentSession` is made on. `stage` is what errors are of."""

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

    # Going on by another connection

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

    def resume(self, former: Talk) -> bool:
        """Let `former`, whose connection was lost, continue over this connection.

        False if its agent is gone; then this session is an ordinary one.
        """
        self._send(requests.Resume(token=former._token, received=former._wire.received))
        found = self._answer(Resumed).found
        if found:
            former._transport, former._channel = self._transport, self._channel
            former._wire.go_on(self._wire)
        else:
            self._begin_lease()
        return found

    def _acknowledge(self) -> None:
        """The agent need not keep what was received."""
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
        """Have it end, and hear what it tells until then, for so long at most."""
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

    def _send(self, request: Request, payload: Iterable[bytes] = ()) -> None:
        if self._witness:
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
            raise HostError(self.stage, event.reason, event.remedy)
        return event

    def _is_heard(self, event: Event) -> bool:
        """Whether it was for the witness."""
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
