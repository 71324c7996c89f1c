"""Visits that clean up (`cleanup`): the first lists what is left, the second removes it if it is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hprofiler.agent import AgentSession, Cleaned, Leftover, Leftovers
from hprofiler.agent.leftovers import CLEANING_SECONDS
from hprofiler.collect.reach import Listener, Reach, silent
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit import Visit
from hprofiler.collect.visit_group import VisitGroup
from hprofiler.model import Host, Outcome, Status


@dataclass(frozen=True)
class HostLeft:
    """What was found on one host, and in `outcomes` what could not be looked at.

    `out_of_reach` are other users' JVMs, (user, how many), into which the connecting user may not look.
    """

    host: Host
    entries: tuple[Leftover, ...]
    outcomes: tuple[Outcome, ...]
    out_of_reach: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Removal:
    """What came of one thing that was to be removed.

    `result` is "removed" (a folder, a file), "emptied" (a folder that stays, with what is not ours),
    "ended" (a process), "stopped" (a profiler), "gone" (before it was its turn: with its agent, say),
    "spared" (a session uses it by now: `reason`), "failed" (`reason`) or "" (not known: its host failed, or
    what it is in could not be looked at).
    """

    entry: Leftover
    result: str
    reason: str = ""


@dataclass(frozen=True)
class HostCleaned:
    """What came of what was to be removed from one host, and in `outcomes` what could not be."""

    host: Host
    removals: tuple[Removal, ...]
    outcomes: tuple[Outcome, ...]


def look_for_leftovers(
    hosts: Sequence[Host],
    reach: Reach,
    listener: Listener = silent,
    stop: Stop | None = None,
) -> list[HostLeft]:
    """What earlier runs left, and what looks like it; nothing is removed. One result a host, in order."""
    group = VisitGroup(reach, listener, stop)
    visits = [_ListingVisit(host, group) for host in hosts]
    group.run(visits)
    return [visit.result() for visit in visits]


def clean(
    chosen: Sequence[tuple[Host, Sequence[Leftover]]],
    reach: Reach,
    listener: Listener = silent,
    stop: Stop | None = None,
) -> list[HostCleaned]:
    """Remove what was listed, where it is still the same and still left over."""
    group = VisitGroup(reach, listener, stop)
    visits = [_CleaningVisit(host, group, entries) for host, entries in chosen]
    group.run(visits)
    return [visit.result() for visit in visits]


class _HostVisit(Visit):
    """What both have in common: where no cache was before, none stays either."""

    def begin(self) -> AgentSession:
        session = self.open_session()
        self.enter("clean", self.reach.timeout + CLEANING_SECONDS)
        return session

    def without_own(self, session: AgentSession, found: Leftovers) -> tuple[Leftover, ...]:
        """What was there before this visit: a folder with nothing but the agent just sent is removed.

        Of a folder that the agent was added to nobody knows any more how old it was.
        """
        if not session.pushed:
            return found.entries
        size = self.reach.binaries.agents[session.arch].path.stat().st_size
        brought = [one for one in found.entries if one.own and one.state == "left" and one.bytes == size]
        if brought:
            self.fail(session.clean(kept=False, only=[one.id for one in brought]))
        return tuple(_grown(one) if one.own else one for one in found.entries if one not in brought)

    def fail(self, told: Cleaned | Leftovers) -> None:
        for failure in told.failed:
            reason = f"cannot clean up {failure.what}: {failure.reason}"
            self.outcomes.append(Outcome(self.host.name, Status.FAILED, "clean", reason))


def _grown(own: Leftover) -> Leftover:
    return replace(own, seconds=None, reason=f"{own.reason}; this command has just added its agent")


class _ListingVisit(_HostVisit):
    def __init__(self, host: Host, group: VisitGroup) -> None:
        super().__init__(host, group)
        self._entries: tuple[Leftover, ...] = ()
        self._out_of_reach: tuple[tuple[str, int], ...] = ()

    def work(self) -> None:
        session = self.begin()
        found = session.leftovers()
        self._out_of_reach = found.out_of_reach
        self.fail(found)
        self._entries = self.without_own(session, found)
        self.finish(session)
        self.report("done")

    def result(self) -> HostLeft:
        return HostLeft(self.host, self._entries, tuple(self.outcomes), self._out_of_reach)


class _CleaningVisit(_HostVisit):
    def __init__(self, host: Host, group: VisitGroup, entries: Sequence[Leftover]) -> None:
        super().__init__(host, group)
        self._entries = entries
        self._cleaned: Cleaned | None = None

    def work(self) -> None:
        session = self.begin()
        self._cleaned = session.clean(kept=False, only=sorted(one.id for one in self._entries))
        self.fail(self._cleaned)
        if session.pushed:
            self.without_own(session, session.leftovers())
        self.finish(session)
        self.report("done")

    def result(self) -> HostCleaned:
        removals = tuple(Removal(one, "") for one in self._entries)
        if self._cleaned is not None:
            removals = results(self._entries, self._cleaned)
        return HostCleaned(self.host, removals, tuple(self.outcomes))


def results(entries: Sequence[Leftover], cleaned: Cleaned) -> tuple[Removal, ...]:
    """What came of each. Containers may have several things of one path: each of what was told is for one."""
    told: dict[str, Counter[object]] = {
        "removed": Counter(cleaned.removed),
        "stopped": Counter(cleaned.stopped),
        "ended": Counter(cleaned.ended),
    }
    excused = {
        (name, one.what): one.reason
        for name, those in (("spared", cleaned.spared), ("failed", cleaned.failed))
        for one in those
    }
    # A JVM that could not be looked at may hide folders, which nothing is told of.
    paths = {one.path for one in entries}
    untold = "" if any(one.what not in paths for one in cleaned.failed) else "gone"

    def removal(one: Leftover) -> Removal:
        name = {"profiler": "stopped", "agent": "ended", "program": "ended"}.get(one.kind, "removed")
        key = one.path if name == "removed" else one.pid
        if told[name][key] > 0:
            told[name][key] -= 1
            return Removal(one, name)
        what = one.path if one.pid is None else f"process {one.pid}"
        for excuse in ("spared", "failed"):
            if (excuse, what) in excused:
                return Removal(one, excuse, excused[excuse, what])
        if any(path.startswith(f"{one.path}/") for path in cleaned.removed):
            return Removal(one, "emptied")
        return Removal(one, untold)

    return tuple(removal(one) for one in entries)
