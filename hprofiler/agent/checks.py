"""What a host says of a recording that nobody has begun; `parse_checked` makes types of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hprofiler.agent import fields
from hprofiler.agent.events import ENGINES, ProcessOutcome, parse_outcome, parse_sources
from hprofiler.agent.wire import BadEvent

SEVERITIES = ("error", "warning", "info", "ok")
"""The most important first."""
MOST_FINDINGS = 100
LAST_SECOND = 1e11
"""Later times are none that a clock tells."""


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing of a host or a process; `about` is one word (perf, jvm, clock …)."""

    severity: str
    about: str
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class CheckedProcess:
    """What the process's line of the ledger would be as far as it is known before anything is recorded.

    `engine` is what would record it, "" where nothing would; `sources` is what it would use for each event.
    """

    outcome: ProcessOutcome
    engine: str
    sources: Mapping[str, str]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Checked:
    """One host. `time` is its clock, in seconds since 1970."""

    time: float
    findings: tuple[Finding, ...]
    processes: tuple[CheckedProcess, ...]


@dataclass(frozen=True)
class Action:
    """Something that an agent did; `time` by its host's clock, in seconds since 1970."""

    time: float
    what: str
    pid: int | None
    detail: str


def parse_action(event: Mapping[str, Any]) -> Action:
    return Action(
        time=fields.seconds(event, "time", LAST_SECOND),
        what=fields.text(event, "what", 40),
        pid=fields.optional_pid(event),
        detail=fields.text(event, "detail"),
    )


def parse_checked(event: Mapping[str, Any]) -> Checked:
    return Checked(
        time=fields.seconds(event, "time", LAST_SECOND),
        findings=_findings(event),
        processes=tuple(_process(item) for item in fields.objects(event, "processes")),
    )


def _process(item: Mapping[str, Any]) -> CheckedProcess:
    outcome = parse_outcome(item)
    if outcome.pid is None:
        raise BadEvent("a process without a pid")
    return CheckedProcess(
        outcome=outcome,
        engine=fields.choice(item, "engine", ("", *ENGINES)),
        sources=parse_sources(item),
        findings=_findings(item),
    )


def _findings(item: Mapping[str, Any]) -> tuple[Finding, ...]:
    found = fields.objects(item, "findings", MOST_FINDINGS)
    return tuple(
        Finding(
            severity=fields.choice(finding, "severity", SEVERITIES),
            about=fields.text(finding, "about", 40),
            text=fields.text(finding, "text"),
            remedy=fields.text(finding, "remedy"),
        )
        for finding in found
    )
