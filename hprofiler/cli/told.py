"""What the terminal tells of the ledger: each thing once, whomever it happened to."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, Iterable, List, Sequence, Tuple

from hprofiler.model import Status

if TYPE_CHECKING:
    from hprofiler.model import HostResult, Outcome

SHOWN = 5
FAILURES_SHOWN = 20
_NAMED = 3

_DETAIL = re.compile(r" \([^()]*\)|(?<=\bTID )\d+")
"""In what reasons may differ and still be one to tell."""


def print_failures(failed: Sequence[Tuple[str, str, str]], page: str) -> None:
    """What was not recorded: (where, reason, remedy), and the page with all of it."""
    alike: Dict[Tuple[str, str], List[str]] = {}
    for where, reason, remedy in failed:
        alike.setdefault((reason, remedy), []).append(where)
    if alike:
        print("not recorded:", file=sys.stderr)
    for (reason, remedy), names in list(alike.items())[:FAILURES_SHOWN]:
        print(f"  {_some(names)}: {reason}" + (f"\n    {remedy}" if remedy else ""), file=sys.stderr)
    more = sum(map(len, list(alike.values())[FAILURES_SHOWN:]))
    if more:
        print(f"  … and {more} more: see the ledger in {page}", file=sys.stderr)


def print_degraded(results: Sequence[HostResult]) -> None:
    """What was recorded less well than was asked for."""
    _print_notes(one for host in results for one in host.outcomes if one.status is Status.DEGRADED)


def print_reasons(results: Sequence[HostResult]) -> None:
    """Why recorded processes were recorded as they were; each reason by itself, for it is shared by many."""
    _print_notes(
        replace(one, reason=reason)
        for host in results
        for one in host.outcomes
        if one.status is Status.OK and one.pid and one.reason
        for reason in one.reason.split("; ")
    )


def _print_notes(outcomes: Iterable[Outcome]) -> None:
    """One line for all that differ in details only."""
    alike: Dict[Tuple[str, str], List[Outcome]] = {}
    for outcome in outcomes:
        alike.setdefault((_DETAIL.sub(_short, outcome.reason), outcome.remedy), []).append(outcome)
    for (short, remedy), same in list(alike.items())[:SHOWN]:
        reasons = {outcome.reason for outcome in same}
        print(f"note: {_who(same)}: {reasons.pop() if len(reasons) == 1 else short}", file=sys.stderr)
        if remedy:
            print(f"    {remedy}", file=sys.stderr)
    if len(alike) > SHOWN:
        print(f"note: {len(alike) - SHOWN} more such notes are in the ledger", file=sys.stderr)


def _short(detail: re.Match[str]) -> str:
    return "…" if detail[0].isdigit() else " (…)"


def _who(outcomes: Sequence[Outcome]) -> str:
    if len(outcomes) > 1 and all(outcome.pid for outcome in outcomes):
        return f"{len(outcomes)} processes"
    return _some([outcome.where for outcome in outcomes])


def _some(names: Sequence[str]) -> str:
    """The first of them by name."""
    more = len(names) - _NAMED
    if more <= 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {more} more"


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
