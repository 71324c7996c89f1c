"""Processes of one host that start during the recording, and join it."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from hprofiler.agent.messages import ProcessOutcome, Started
from hprofiler.agent.session import AgentSession, Appeared, Found
from hprofiler.collect.clearing import Clearing
from hprofiler.collect.ledger import Ledger, doubts
from hprofiler.collect.limits import first_processes
from hprofiler.collect.visit import Visit
from hprofiler.model import Host, Outcome

_OVER = "recording-over"
"""The code of a process that was to join after the end."""


class Joining:
    """Lets processes join the recording of a `visit`.

    `running` are the pids that are being recorded; it `began` once there was one.
    """

    def __init__(self, visit: Visit, ledger: Ledger, clearing: Clearing | None) -> None:
        self.running: set[int] = set()
        self.began = False
        self._visit = visit
        self._ledger = ledger
        self._clearing = clearing
        self._session: AgentSession | None = None
        self._asking = threading.Lock()

    def follow(self, session: AgentSession) -> None:
        """From the start of the recording, have the agent look for further processes."""
        with self._asking:
            self._session = session
            self._ask(session)

    def learned(self, before: Host) -> None:
        """More is known of the visit's host than `before`, such as further containers. From any thread."""
        visit = self._visit
        with self._asking:
            self._ledger.rename(visit.search.contained.known)
            if self._session and not visit.host.containers.keys() <= before.containers.keys():
                self._ask(self._session)

    def _ask(self, session: AgentSession) -> None:
        session.follow(self._visit.search.request(self._visit.transport.inside))

    def appeared(self, session: AgentSession, appeared: Appeared) -> list[ProcessOutcome]:
        """Let those join that are meant; returns outcomes of the others."""
        earlier = self._ledger.processes
        found = self._visit.sift(Found(0, appeared.processes, appeared.ignored), earlier=earlier)
        self._visit.outcomes += doubts(self._visit.host.name, found)
        processes, refused = first_processes(found.processes, len(earlier))
        outcomes = list(refused)
        engines: Mapping[int, str] = {}
        if self._clearing:
            processes, engines, refused = self._clearing.during(session, processes)
            outcomes += refused
        known = {outcome.pid for outcome in outcomes}
        joins = session.join(processes, engines)
        self._ledger.found([one for one in found.processes if joins or one.pid in known])
        return outcomes

    def started(self, event: Started, seconds: float) -> None:
        """The recording of a process began, `seconds` after that of the run."""
        self.running.add(event.pid)
        self.began = True
        self._ledger.started(event, seconds)

    def ended(self, outcome: ProcessOutcome) -> bool:
        """The recording of a process is over. False for one that was to join after the end: it has no part in
        the run."""
        if outcome.pid is None:
            return True
        self.running.discard(outcome.pid)
        if outcome.code != _OVER:
            return True
        self._ledger.forget(outcome.pid)
        return False

    def missed(self) -> list[Outcome]:
        """Outcomes of containers in which nothing was found in all the time."""
        if self._session is None or self._visit.search.selector.kind != "containers":
            return []
        return self._visit.search.contained.empty(self._ledger.processes)
