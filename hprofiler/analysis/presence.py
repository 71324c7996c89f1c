"""When each process was recorded, and what ended its recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hprofiler.model import HostRecord, Process

RUN, PROCESS, CUT = "run", "process", "cut"
"""What ended a recording: the end of the run, that of its process, or the agent, which cut it short."""


class Presence(NamedTuple):
    """From when to when a process was recorded, in seconds since the run's start."""

    host: str
    process: Process
    joined: float
    ended: float
    ended_by: str


def presences(hosts: Sequence[HostRecord]) -> list[Presence]:
    """Those of all recorded processes, in the order in which they joined."""
    found = []
    for host in hosts:
        gone = {one.pid for one in host.outcomes if one.gone}
        cut = {one.pid for one in host.short}
        known = {one.pid: one for one in host.recordings}
        for pid, one in known.items():
            by = PROCESS if pid in gone else CUT if pid in cut else RUN
            found.append(Presence(host.name, one.process, one.joined, one.ended, by))
    return sorted(found, key=lambda one: (one.joined, one.host, one.process.pid))
