"""Which processes may be recorded after the canaries of their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hprofiler.agent.messages import Ended, ProcessOutcome
from hprofiler.agent.requests import Plan
from hprofiler.agent.session import CANARY_SECONDS, AgentSession
from hprofiler.collect.canaries import NO_CANARY, Canaries, Kind, kind_of
from hprofiler.collect.visit import Visit
from hprofiler.model import Process, Status

_CANARY_STEPS = 3  # prepare, start, record

Cleared = tuple[Sequence[Process], Mapping[int, str], Sequence[ProcessOutcome]]
"""Processes that may be recorded, the only engines that may do it by pid, and outcomes of the others."""


class Clearing:
    """Clears the processes of one host."""

    def __init__(self, visit: Visit, canaries: Canaries) -> None:
        self._visit = visit
        self._canaries = canaries

    def before(self, session: AgentSession, plan: Plan, processes: Sequence[Process]) -> Cleared:
        """Before the recording: canaries are recorded."""
        self._visit.enter("prepare", self._visit.reach.timeout)
        checked = session.check(plan, processes).processes
        self._visit.limit(None)  # each following step has its own time limit
        cleared: list[Process] = []
        engines: dict[int, str] = {}
        refused: list[ProcessOutcome] = []
        for process, one in zip(processes, checked, strict=True):
            kind = kind_of(session.arch, process, one.engine)
            refusal: ProcessOutcome | None = None
            if kind and one.status is Status.FAILED:
                refusal = one
            elif kind:
                engines[process.pid] = kind.engine
                refusal = self._refused(session, plan, process, kind)
            if refusal:
                refused.append(refusal)
            else:
                cleared.append(process)
        return cleared, engines, refused

    def during(self, session: AgentSession, processes: Sequence[Process]) -> Cleared:
        """During the recording: JVMs of kinds whose canary went well."""
        cleared: list[Process] = []
        engines: dict[int, str] = {}
        refused: list[ProcessOutcome] = []
        for process in processes:
            kind = kind_of(session.arch, process, "")
            passed = self._canaries.passed(kind) if kind else ""
            if passed is None:
                why = f"no canary for JDK {process.jvm_version or 'unknown'} was recorded before it started"
                code = "canary-failed"
                refusal = ProcessOutcome(process.pid, Status.FAILED, "prepare", why, NO_CANARY, code=code)
                refused.append(refusal)
                continue
            cleared.append(process)
            if passed:
                engines[process.pid] = passed
        return cleared, engines, refused

    def _refused(
        self, session: AgentSession, plan: Plan, process: Process, kind: Kind
    ) -> ProcessOutcome | None:
        """Wait for the canary of the process's kind, or record the process as the canary."""
        own: ProcessOutcome | None = None
        visit = self._visit
        who = f"process {process.pid} of {visit.host.name}"

        def record() -> str | None:
            nonlocal own
            visit.limit(_CANARY_STEPS * visit.reach.timeout)
            own, left = session.record_briefly(plan, process, kind.engine)
            visit.limit(None)
            visit.note_left(left)
            if own.ended is Ended.PROCESS and own.stage != "prepare":
                reason = f"{who} ended while it was recorded"
                own = own.replace(status=Status.FAILED, stage="record", reason=reason)
            if own.status is not Status.FAILED:
                return ""
            return f"the canary for {kind}, {who}, failed: {own.reason}" if own.stage == "record" else None

        why = self._canaries.verdict(kind, who, record, visit.check)
        if own and own.status is Status.FAILED:
            return own.replace(reason=f"it was the canary: {own.reason}", remedy=own.remedy or NO_CANARY)
        if own:
            label = f" ({process.label})" if process.label else ""
            text = (
                f"canary: process {process.pid}{label} was recorded for {CANARY_SECONDS:g} s by {kind.engine}"
            )
            visit.note(Status.OK, "prepare", f"{text}: fine", code="canary-passed")
            visit.report("canary", f"{text}: fine")
        if not why:
            return None
        return ProcessOutcome(process.pid, Status.FAILED, "prepare", why, NO_CANARY, code="canary-failed")
