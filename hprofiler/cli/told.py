"""What went well but is worth a word: how processes were recorded, and with which intervals."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Dict, List, Sequence

from hprofiler.model import Status

if TYPE_CHECKING:
    from hprofiler.model import HostResult, Outcome

SHOWN = 5

_DETAIL = re.compile(r" \([^()]*\)")


def print_reasons(results: Sequence[HostResult]) -> None:
    """Why recorded processes were recorded as they were; one line for all that differ in details only."""
    alike: Dict[str, List[Outcome]] = {}
    for outcome in (one for host in results for one in host.outcomes):
        if outcome.status is Status.OK and outcome.pid and outcome.reason:
            alike.setdefault(_DETAIL.sub(" (…)", outcome.reason), []).append(outcome)
    for short, outcomes in list(alike.items())[:SHOWN]:
        reasons = {outcome.reason for outcome in outcomes}
        print(f"note: {_who(outcomes)}: {reasons.pop() if len(reasons) == 1 else short}", file=sys.stderr)
    if len(alike) > SHOWN:
        print(f"note: {len(alike) - SHOWN} more such notes are in the ledger", file=sys.stderr)


def _who(outcomes: Sequence[Outcome]) -> str:
    if len(outcomes) > 1:
        return f"{len(outcomes)} processes"
    return f"{outcomes[0].host} pid {outcomes[0].pid}"


def host_records(results: Sequence[HostResult]) -> List[Dict[str, object]]:
    """For `--json`: the ledger's lines of each host, and what each recording was made with."""
    return [
        {
            "host": host.host.name,
            "outcomes": [
                {"pid": o.pid, "status": o.status.value, "reason": o.reason, "remedy": o.remedy}
                for o in host.outcomes
            ],
            "recordings": [
                {
                    "pid": recording.process.pid,
                    "event": recording.event,
                    "engine": recording.engine,
                    "source": recording.source,
                    "interval": recording.interval,
                }
                for recording in host.recordings
            ],
        }
        for host in results
    ]
