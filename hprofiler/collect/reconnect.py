"""Reconnect to a host whose connection was lost: its agent keeps what it recorded for a lease."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING

from hprofiler.agent.messages import Ended, Interrupted, ProcessOutcome
from hprofiler.agent.requests import LEASE_SECONDS
from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import ConnectionLost, ContainerEnded, HostError
from hprofiler.collect.visit_group import VisitGroup
from hprofiler.model import Outcome, Status

if TYPE_CHECKING:
    from hprofiler.collect.visit import Visit

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0
_FIRST_LIMIT = 5.0
"""Seconds of the first attempt; each may take as much longer than the one before."""


class Reconnect:
    """One host's; `give_up` may be called from any thread."""

    def __init__(self, visit: Visit, group: VisitGroup) -> None:
        self._visit = visit
        self._group = group
        self._enough = threading.Event()
        self._away: float | None = None
        self._interrupted: Interrupted | None = None

    def give_up(self) -> None:
        """Do not try any longer."""
        self._enough.set()

    def interrupted(self, event: Interrupted) -> None:
        """The agent had ended the recording, as it reports now."""
        self._interrupted = self._interrupted or event

    def explained(self, outcome: ProcessOutcome) -> ProcessOutcome:
        """The outcome of a process, with the reason if the lost connection ended its recording early."""
        if self._interrupted is None or outcome.pid is None or outcome.status is Status.FAILED:
            return outcome
        what = f"the connection was lost: {self._interrupted.reason}"
        if self._away is not None:
            what = f"the connection was lost; the recording was fetched {self._away:.0f} s later"
        reason = f"ended after {self._interrupted.seconds:.0f} s: {what}"
        reason = "; ".join(filter(None, (reason, outcome.reason)))
        if not outcome.ended:
            outcome = outcome.replace(ended=Ended.CUT, seconds=self._interrupted.seconds)
        return outcome.replace(status=Status.DEGRADED, reason=reason)

    def lines(self) -> list[Outcome]:
        """The host's line, if nothing of its processes is missing."""
        if self._away is None or self._interrupted:
            return []
        reason = f"the connection was lost for {self._away:.0f} s; nothing is missing"
        return [Outcome(self._visit.host.name, Status.OK, "fetch", reason, code="reconnected")]

    def run(self, session: AgentSession, why: HostError, over: float) -> None:
        """Have the session go on over a new connection, or raise HostError.

        Tries for one lease; while the recording still goes on (until `over`) for up to two, because the agent
        may notice the loss late. After a request to stop one lease is enough.
        """
        lost = time.monotonic()
        one, two = lost + LEASE_SECONDS, lost + 2 * LEASE_SECONDS

        def end() -> float:
            return one if self._group.stop.level else max(one, min(over, two))

        self._visit.report("lost", why.reason, end() - lost)
        if self._visit.audit:
            self._visit.audit.note("lost", why.reason)
        limit, pause = _FIRST_LIMIT, _FIRST_PAUSE
        while True:
            try:
                self._attempt(session, why, limit)
                break
            except _Failed as failed:
                left = end() - time.monotonic()
                spread = pause * random.uniform(0.5, 1.5)  # other hosts were lost in the same moment
                if self._enough.wait(min(spread, max(0.0, left))) or left <= spread:
                    raise self._given_up(why, time.monotonic() - lost, failed.why) from failed
            limit, pause = limit + _FIRST_LIMIT, min(2 * pause, _LONGEST_PAUSE)
        away = time.monotonic() - lost
        self._away = (self._away or 0.0) + away
        self._visit.report(self._visit.stage, f"reconnected after {away:.0f} s")

    def _attempt(self, session: AgentSession, why: HostError, limit: float) -> None:
        if not self._group.turns.acquire(timeout=limit):
            raise _Failed(HostError("connect", "waiting for its turn to connect"))
        other: AgentSession | None = None
        try:
            transport = self._visit.renew_transport()
            timer = threading.Timer(limit, transport.close)
            timer.daemon = True
            timer.start()
            try:
                transport.connect()
                other = self._visit.talk(transport, to_resume=True)
                found = other.resume(session)
            finally:
                timer.cancel()
        except ContainerEnded as ended:
            raise ended.at(why.stage).reworded("the container ended during the recording") from why
        except HostError as error:
            if other:
                other.close()
            raise _Failed(error) from error
        finally:
            self._group.turns.release()
        if not found:
            with contextlib.suppress(HostError):
                self._visit.note_left(other.bye())
            reason = f"{why.reason}; the agent ended, and what was not fetched before is lost"
            remedies = (why.remedy, "run `hprofiler cleanup`, then record again")
            raise HostError(why.stage, reason, "; ".join(filter(None, remedies)), why.code, why.parameters)

    def _given_up(self, why: HostError, waited: float, last: HostError) -> HostError:
        reason = f"{why.reason}, and could not be restored within {waited:.0f} s: {last.reason}"
        remedy = "check that the host is up; its agent ends within a minute"
        if self._enough.is_set():
            reason = f"{why.reason}; you interrupted the wait for it"
        return ConnectionLost(why.stage, reason, remedy)


class _Failed(Exception):
    """An attempt failed; the next one may succeed."""

    def __init__(self, why: HostError) -> None:
        super().__init__(why.reason)
        self.why = why
