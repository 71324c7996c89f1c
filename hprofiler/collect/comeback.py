"""Coming back to a host whose connection was lost: its agent keeps what it recorded for a lease."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hprofiler.agent import AgentSession, Ended, Interrupted, ProcessOutcome
from hprofiler.agent.leftovers import CLEANING_SECONDS, Leftovers
from hprofiler.agent.talk import LEASE_SECONDS
from hprofiler.base.errors import ConnectionLost, HostError
from hprofiler.collect.beside import no_thread
from hprofiler.model import Outcome, Status

if TYPE_CHECKING:
    from hprofiler.collect.crew import Crew
    from hprofiler.collect.visit import Visit

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0
_FIRST_LIMIT = 5.0
"""Seconds of the first attempt; each may take as much longer than the one before."""


class Comeback:
    """One host's; `wait_no_longer` may be called from any thread."""

    def __init__(self, visit: Visit, crew: Crew) -> None:
        self._visit = visit
        self._crew = crew
        self._enough = threading.Event()
        self._away: float | None = None
        self._interrupted: Interrupted | None = None
        self.former: str | None = None
        """Of an agent whose connection is made again: it may have been killed, and so have left something."""
        self.has_looked = False
        """Whether it was tried to take away what a session left: what is told has come of it."""

    # What is told of it

    def interrupted(self, event: Interrupted) -> None:
        """The agent had ended the recording, as it tells now."""
        self._interrupted = self._interrupted or event

    def marked(self, outcome: ProcessOutcome) -> ProcessOutcome:
        """The outcome of a process; where its recording was ended early it says why."""
        if self._interrupted is None or outcome.status is Status.FAILED:
            return outcome
        what = f"the connection was lost: {self._interrupted.reason}"
        if self._away is not None:
            what = f"the connection was lost, and what there was fetched {self._away:.0f} s later"
        reason = f"ended after {self._interrupted.seconds:.0f} s: {what}"
        reason = "; ".join(filter(None, (reason, outcome.reason)))
        if not outcome.ended:  # by what came before the loss
            outcome = replace(outcome, ended=Ended.CUT, seconds=self._interrupted.seconds)
        return replace(outcome, status=Status.DEGRADED, reason=reason)

    def lines(self) -> list[Outcome]:
        """The host's line, where nothing is missing of its processes."""
        if self._away is None or self._interrupted:
            return []
        reason = f"the connection was lost for {self._away:.0f} s; nothing is missing"
        return [Outcome(self._visit.host.name, Status.OK, "fetch", reason)]

    # Coming back

    def wait_no_longer(self) -> None:
        self._enough.set()

    def come(self, session: AgentSession, why: HostError, over: float) -> None:
        """Have the session go on by another connection, or raise HostError."""
        lost = time.monotonic()
        self._visit.tell("lost", why.reason, self._until(lost, over) - lost)
        self._visit.audit.note("lost", why.reason)
        limit, pause = _FIRST_LIMIT, _FIRST_PAUSE
        while True:
            try:
                self._attempt(session, why, limit)
                break
            except _Tried as tried:
                left = self._until(lost, over) - time.monotonic()
                spread = pause * random.uniform(0.5, 1.5)  # other hosts were lost in the same moment
                if self._enough.wait(min(spread, max(0.0, left))) or left <= spread:
                    raise self._given_up(why, lost, tried.why) from tried
            limit, pause = limit + _FIRST_LIMIT, min(2 * pause, _LONGEST_PAUSE)
        away = time.monotonic() - lost
        self._away = (self._away or 0.0) + away
        self._visit.tell(self._visit.stage, f"connected again after {away:.0f} s")

    def _until(self, lost: float, over: float) -> float:
        """It is tried for one lease; while the recording would still go on (until `over`) for two.

        The agent may have noticed nothing for one. Who has ended the recording waits for what is kept, and
        not for more of it.
        """
        one, two = lost + LEASE_SECONDS, lost + 2 * LEASE_SECONDS
        return one if self._crew.stop.level else max(one, min(over, two))

    @contextmanager
    def _turn(self, patience: float) -> Iterator[None]:
        """One of the places of those that connect; without one in time it is a failed try."""
        if not self._crew.turns.acquire(timeout=patience):
            raise _Tried(HostError("connect", "other hosts were connected to first"))
        try:
            yield
        finally:
            self._crew.turns.release()

    def _attempt(self, session: AgentSession, why: HostError, limit: float) -> None:
        with self._turn(limit):
            transport = self._visit.renew_transport()
            expired = self._crew.watchdog.after(limit, transport.close)
            other: AgentSession | None = None
            try:
                transport.connect()
                other = self._visit.talk(transport, to_resume=True)
                found = other.resume(session)
            except HostError as error:
                if other:
                    other.close()
                raise _Tried(error) from error
            except RuntimeError as error:  # other hosts end, and there may be one in a moment
                raise _Tried(no_thread(error, "connect")) from error
            finally:
                self._crew.watchdog.cancel(expired)
        if not found:
            reason = f"{why.reason}; what was not fetched before is lost with its agent"
            raise self._nothing_there(other, session.trace, why, reason)

    @property
    def trace(self) -> str | None:
        """Of the agent that may have left something: only one of them has touched anything yet."""
        if self.former is not None:
            return self.former
        return self._visit.session.trace if self._visit.session else None

    def tidied(self, why: HostError) -> HostError:
        """What an agent left that ended before it recorded, or is not waited for any longer, is taken away.

        Gives what there is to tell.
        """
        trace = self.trace
        if trace is None:
            return why
        self.has_looked = True
        try:
            return self._taken_away(trace, why)
        except RuntimeError as error:
            return _not_known(why, no_thread(error, why.stage))

    def _taken_away(self, trace: str, why: HostError) -> HostError:
        visit = self._visit
        visit.audit.note("lost", why.reason)
        visit.limit(None)
        try:
            visit.begin_anew()
            with self._turn(visit.reach.timeout):
                visit.limit(visit.reach.timeout)
                transport = visit.renew_transport()
                transport.connect()
                other = visit.talk(transport, to_resume=True)
        except (HostError, _Tried) as error:
            return _not_known(why, error.why if isinstance(error, _Tried) else error)
        return self._nothing_there(other, trace, why, why.reason)

    def _nothing_there(
        self, other: AgentSession, trace: str | None, why: HostError, reason: str
    ) -> HostError:
        """The agent has ended, or stands still; what it could not take away is taken away now."""
        visit = self._visit
        self.has_looked = True
        visit.limit(visit.reach.timeout + CLEANING_SECONDS + LEASE_SECONDS)
        again = "" if why.stage == "clean" else "record again"  # all had come before it was cleaned up
        try:
            found = other.clean(kept=True) if trace is not None else Leftovers(())
            visit.tell_left(other.bye())
        except HostError as error:
            reason += f", and what it left there could not be removed: {error.reason}"
            return HostError(why.stage, reason, "run `hprofiler cleanup`")
        for failure in found.failed:
            reason += f", and {failure.what} could not be cleaned up: {failure.reason}"
            return HostError(why.stage, reason, "run `hprofiler cleanup`")
        for one in found.entries:
            of_agent = one.kind == "agent" and trace is not None and trace.startswith(f"{one.pid}-")
            if one.state == "unknown" or (of_agent and one.state == "used"):
                reason += f", and {'its agent' if of_agent else one.what} is there yet: {one.reason}"
                return HostError(why.stage, reason, "run `hprofiler cleanup` in a minute")
            if of_agent and one.result == "ended":
                reason += "; its agent, which stood still, was ended"
                return HostError(why.stage, reason, _then("see who stops it: root or its own user", again))
        if stopped := found.count("stopped"):
            reason += f"; its profiler in {stopped} of the processes was stopped"
        return HostError(why.stage, reason, _then(why.remedy, again))

    def _given_up(self, why: HostError, lost: float, last: HostError) -> HostError:
        waited = time.monotonic() - lost
        reason = f"{why.reason}, and could not be made again within {waited:.0f} s: {last.reason}"
        remedy = "see whether the host is up; its agent ends within a minute, or by `hprofiler cleanup`"
        if self._enough.is_set():
            reason = f"{why.reason}, and was not waited for any longer: interrupted"
        return ConnectionLost(why.stage, reason, remedy)


def _not_known(why: HostError, unknown: HostError) -> HostError:
    reason = f"{why.reason}, and whether it left anything is not known: {unknown.reason}"
    return HostError(why.stage, reason, "run `hprofiler cleanup`")


def _then(*remedies: str) -> str:
    return "; then ".join(filter(None, remedies))


class _Tried(Exception):
    """It may be tried again."""

    def __init__(self, why: HostError) -> None:
        super().__init__(why.reason)
        self.why = why
