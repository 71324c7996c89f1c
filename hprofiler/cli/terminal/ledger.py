"""Outcomes on the terminal: each reason once, for all hosts and processes that have it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from hprofiler.base.text import printable, without_pids
from hprofiler.cli.terminal.lines import say
from hprofiler.model import Status

if TYPE_CHECKING:
    from hprofiler.model import HostResult, Outcome

SHOWN = 5
FAILURES_SHOWN = 20
PROBLEMS_SHOWN = 10
_NAMED = 3

# Reasons are equal if they differ only in these: figures with a unit, brackets, thread ids.
_UNIT = r"(?:%|(?:[nµm]?s|min|h|Hz|bytes|[KMGT]i?B|samples|objects)\b)"
_FIGURE = re.compile(rf"(?<![\w.,])\d+(?:,\d{{3}})*(?:\.\d+)?(?= ?{_UNIT})")
_DETAIL = re.compile(r" \([^()]*\)|(?<=\bTID )\d+")

_Parts = tuple[str, ...]
"""The text between a reason's figures."""


def print_problems(what: str, problems: Sequence[Outcome]) -> None:
    """Stored profiles that could not be used, below the heading `what`."""
    if problems:
        print(f"{what}:", file=sys.stderr)
    for problem in problems[:PROBLEMS_SHOWN]:
        say("  ", printable(f"{problem.host} pid {problem.pid}: {problem.reason}"), sys.stderr)
    if len(problems) > PROBLEMS_SHOWN:
        more = len(problems) - PROBLEMS_SHOWN
        print(f"  … and {more} more: see the page", file=sys.stderr)


def print_failures(failed: Sequence[tuple[str, str, str]], page: str) -> None:
    """What was not recorded: (where, reason, remedy). Shortened only if there is a page."""
    alike: dict[tuple[_Parts, str], list[tuple[str, str]]] = {}
    for where, reason, remedy in failed:
        alike.setdefault((_without_details(reason), remedy), []).append((where, reason))
    if alike:
        print("not recorded:", file=sys.stderr)
    shown = FAILURES_SHOWN if page else len(alike)
    for (_, remedy), same in list(alike.items())[:shown]:
        names, reason = _some([where for where, _ in same]), _as_one([reason for _, reason in same])
        say("  ", f"{names}: {reason}", sys.stderr)
        if remedy:
            say("    ", remedy, sys.stderr)
    more = sum(map(len, list(alike.values())[shown:]))
    if more:
        print(f"  … and {more} more: see {page}", file=sys.stderr)


def print_degraded(results: Sequence[HostResult]) -> None:
    """Degraded recordings."""
    _print_notes(one for host in results for one in host.outcomes if one.status is Status.DEGRADED)


def print_reasons(results: Sequence[HostResult]) -> None:
    """Notes on recorded processes; each reason by itself, because many share it."""
    _print_notes(
        replace(one, reason=note.reason, remedy=note.remedy)
        for host in results
        for one in host.outcomes
        if one.status is Status.OK and one.pid
        for note in one.every_note
        if note.reason
    )


def _print_notes(outcomes: Iterable[Outcome]) -> None:
    """One line for outcomes that differ only in details."""
    alike: dict[tuple[_Parts, str], list[Outcome]] = {}
    for outcome in outcomes:
        alike.setdefault((_without_details(outcome.reason), outcome.remedy), []).append(outcome)
    for (_, remedy), same in list(alike.items())[:SHOWN]:
        say("note: ", f"{_who(same)}: {_as_one([outcome.reason for outcome in same])}", sys.stderr)
        if remedy:
            say("    ", remedy, sys.stderr)
    if len(alike) > SHOWN:
        print(f"note: {len(alike) - SHOWN} more such notes are in the report", file=sys.stderr)


def _without_details(reason: str) -> _Parts:
    """A key that equal reasons share. A list, because a placeholder could occur in a host's words."""
    return tuple(_FIGURE.split(_shortened(reason)))


def _as_one(reasons: Sequence[str]) -> str:
    """Merged text of reasons: "one sample stands for 10.3 to 10.4 ms"."""
    if len({tuple(_FIGURE.split(reason)) for reason in reasons}) > 1:
        reasons = [_shortened(reason) for reason in reasons]
    columns = zip(*(_FIGURE.findall(reason) for reason in reasons), strict=False)
    return _FIGURE.sub(lambda _: _range(next(columns)), reasons[0])


def _range(figures: Sequence[str]) -> str:
    told = sorted(set(figures), key=lambda figure: float(figure.replace(",", "")))
    return told[0] if len(told) == 1 else f"{told[0]} to {told[-1]}"


def _shortened(reason: str) -> str:
    return _DETAIL.sub(_short, without_pids(reason))


def _short(detail: re.Match[str]) -> str:
    return "…" if detail[0].isdigit() else " (…)"


def _who(outcomes: Sequence[Outcome]) -> str:
    if len(outcomes) > 1 and all(outcome.pid for outcome in outcomes):
        return f"{len(outcomes)} processes"
    return _some([outcome.where for outcome in outcomes])


def _some(names: Sequence[str]) -> str:
    """The first few by name."""
    more = len(names) - _NAMED
    if more <= 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {more} more"


def outcome_record(outcome: Outcome) -> dict[str, object]:
    """An outcome for `--json`; `pid` is null if it concerns the whole host."""
    return {
        "pid": outcome.pid,
        "status": outcome.status.value,
        "stage": outcome.stage,
        "code": outcome.code,
        "parameters": dict(outcome.parameters),
        "reason": outcome.reason,
        "remedy": outcome.remedy,
        "seconds": outcome.seconds,
    }


def host_records(results: Sequence[HostResult]) -> list[dict[str, object]]:
    """Hosts for `--json`: outcomes, recordings, timings."""
    return [
        {
            "host": host.host.name,
            "timings": {stage: round(seconds, 3) for stage, seconds in host.timings.items()},
            "bytes_sent": host.bytes_sent,
            "bytes_received": host.bytes_received,
            "outcomes": [outcome_record(line) for line in host.outcomes],
            "recordings": [
                {
                    "pid": recording.process.pid,
                    "event": recording.event,
                    "engine": recording.engine,
                    "source": recording.source,
                    "interval": recording.interval,
                    "seconds": recording.seconds,
                    "samples": asdict(recording.samples),
                    "attach_seconds": recording.attach_seconds,
                    "bytes_received": recording.bytes_received,
                }
                for recording in host.recordings
            ],
        }
        for host in results
    ]
