"""Of a host with more processes than one session records: who is recorded, and what is told of the others."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.agent import MAX_RECORDED, ProcessOutcome
from hprofiler.model import Process, Status

_REMEDY = "choose fewer with a narrower selector, or name those you want: -j pid:PID"


def chosen(processes: Sequence[Process]) -> tuple[Sequence[Process], Sequence[ProcessOutcome]]:
    """The first of them, and a failure for each of the others.

    Agents tell them in the order in which they are to be recorded: there users take turns, so that one who
    starts thousands keeps out none but their own.
    """
    reason = f"{len(processes)} processes are more than the {MAX_RECORDED} that are recorded of a host"
    return processes[:MAX_RECORDED], tuple(
        ProcessOutcome(one.pid, Status.FAILED, "prepare", reason, _REMEDY) for one in processes[MAX_RECORDED:]
    )
