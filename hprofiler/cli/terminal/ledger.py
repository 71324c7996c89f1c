"""Prints the ledger on the terminal, one line for outcomes with the same codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from hprofiler.analysis.words import percent, plain
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.cli.terminal.lines import say
from hprofiler.model import VAGUE_CODES, HostRecord, Outcome, Status, number_of
from hprofiler.model.measures import duration, size

SHOWN = 5
FAILURES_SHOWN = 20
PROBLEMS_SHOWN = 10
_NAMED = 3
_LARGEST = 2**63
_FIGURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "share": ("share", lambda value: plain(percent(value, 1))),
    "bytes": ("bytes", lambda value: size(int(value))),
    "seconds": ("time", duration),
    "taken": ("samples", lambda value: f"{int(value):,}"),
}
"""Parameters of outcomes whose range says more than one value: in words, and how they are shown."""
_OF_RECORDING = (
    "pid",
    "event",
    "engine",
    "source",
    "interval",
    "seconds",
    "attach_seconds",
    "bytes_received",
    "callers_unsure",
)


def print_problems(what: str, problems: Sequence[Outcome]) -> None:
    """What could not be used or made, below the heading `what`."""
    if problems:
        print(f"{what}:", file=sys.stderr)
    for problem in problems[:PROBLEMS_SHOWN]:
        who = problem.host if problem.pid is None else f"{problem.host} pid {problem.pid}"
        say("  ", printable(f"{who}: {problem.reason}"), sys.stderr)
    if len(problems) > PROBLEMS_SHOWN:
        more = len(problems) - PROBLEMS_SHOWN
        print(f"  … and {more} more: see the page", file=sys.stderr)


def print_failures(failed: Sequence[Outcome], page: str, done: str = "recorded") -> None:
    """Print what was not `done`, all of it if there is no page."""
    groups = _grouped(failed)
    if groups:
        print(f"not {done}:", file=sys.stderr)
    shown = FAILURES_SHOWN if page else len(groups)
    for same in groups[:shown]:
        say("  ", f"{_who(same, some=True)}: {same[0].reason}", sys.stderr)
        if same[0].remedy:
            say("    ", same[0].remedy, sys.stderr)
    more = sum(map(len, groups[shown:]))
    if more:
        print(f"  … and {more} more: see {page}", file=sys.stderr)


def print_degraded(outcomes: Iterable[Outcome]) -> None:
    _print_notes(one for one in outcomes if one.status is Status.DEGRADED)


def print_reasons(results: Sequence[HostRecord]) -> None:
    """Notes on recorded processes; each reason by itself, because many share it."""
    _print_notes(
        replace(
            one,
            code=note.code,
            reason=note.reason,
            remedy=note.remedy,
            parameters=note.parameters,
            notes=(),
        )
        for host in results
        for one in host.outcomes
        if one.status is Status.OK and one.pid
        for note in one.every_note
        if note.reason
    )


def _print_notes(outcomes: Iterable[Outcome]) -> None:
    groups = _grouped(outcomes)
    for same in groups[:SHOWN]:
        say("note: ", f"{_who(same)}: {same[0].reason}", sys.stderr)
        if same[0].remedy:
            say("    ", same[0].remedy, sys.stderr)
    if len(groups) > SHOWN:
        print(f"note: {len(groups) - SHOWN} more such notes are in the report", file=sys.stderr)


def _grouped(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Groups by equal codes, about the same events. An outcome with a vague code is a group of its own."""
    groups: dict[object, list[Outcome]] = {}
    for number, outcome in enumerate(outcomes):
        notes = outcome.every_note
        vague = any(note.code in VAGUE_CODES for note in notes)
        key = number if vague else tuple((note.code, note.parameters.get("event")) for note in notes)
        groups.setdefault(key, []).append(outcome)
    return list(groups.values())


def _who(outcomes: Sequence[Outcome], some: bool = False) -> str:
    """The names of the outcomes, or their number; if the reasons differ, between what, with an example."""
    names = [outcome.where for outcome in outcomes]
    more = len(names) - _NAMED
    if len(names) > 1 and len({one.reason for one in outcomes}) > 1:
        return f"{len(names)} alike{_ranges(outcomes)}, such as {names[0]}"
    if not some and len(names) > 1 and all(outcome.pid for outcome in outcomes):
        return f"{len(names)} processes"
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_NAMED])} and {more} more"


def _ranges(outcomes: Sequence[Outcome]) -> str:
    """ " (bytes 512 KiB to 4 MiB)": the least and the most of each figure that differs."""
    ranges = []
    for name, (words, shown) in _FIGURES.items():
        given = (number_of(one.parameters, name, _LARGEST) for one in outcomes)
        values = [value for value in given if value is not None]
        if values and min(values) < max(values):
            ranges.append(f"{words} {shown(min(values))} to {shown(max(values))}")
    return f" ({', '.join(ranges)})" if ranges else ""


def outcome_record(outcome: Outcome) -> dict[str, object]:
    """An outcome for `--json`; `pid` is null if it concerns the whole host."""
    known = members(outcome, "pid", "status", "stage", "code", "parameters", "reason", "remedy", "seconds")
    return {**known, "status": outcome.status.value}


def host_records(results: Sequence[HostRecord]) -> list[dict[str, object]]:
    """Hosts for `--json`: outcomes, recordings, timings."""
    return [
        {
            "host": host.name,
            **members(host, "timings", "bytes_sent", "bytes_received"),
            "clock": None if host.clock is None else asdict(host.clock),
            "outcomes": [outcome_record(line) for line in host.outcomes],
            "recordings": [
                {
                    **members(recording, *_OF_RECORDING),
                    "samples": asdict(recording.samples),
                    "times": None if recording.times is None else asdict(recording.times),
                }
                for recording in host.recordings
            ],
        }
        for host in results
    ]
