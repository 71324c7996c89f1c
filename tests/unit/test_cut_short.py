"""A recording that was cut short while its process went on: part of the run is missing, and all say so."""

from __future__ import annotations

from typing import Any

import pytest

from hprofiler.agent import Ended, ProcessOutcome
from hprofiler.analysis.coverage import coverage
from hprofiler.analysis.facts import read_facts
from hprofiler.collect.ledger import Ledger
from hprofiler.model import Host, HostResult, Outcome, Process, Recording, Samples, Status
from tests.viewer.made_run import coverage_of, record_of

PROCESS = Process("n1", 7, 1, 0, "u", "web")
WHOLE = Recording(PROCESS, "cpu", "perf", "perf_events", 1, Samples(9, 9, 0), 60.0)


def lines_of(status: Status, ended: Ended | None, recorded: bool = True) -> list[Outcome]:
    ledger = Ledger("n1", ["cpu"])
    ledger.found([PROCESS])
    if recorded:
        ledger.recorded(WHOLE)
    ledger.outcome(ProcessOutcome(7, status, "record", "ended after 9 s: so it says", "", ended, 3.5))
    return list(ledger.lines(None))


@pytest.mark.parametrize(
    ("status", "ended", "gone", "seconds"),
    [
        (Status.DEGRADED, Ended.CUT, False, 3.5),
        (Status.DEGRADED, Ended.PROCESS, True, None),
        (Status.DEGRADED, None, False, None),
        (Status.OK, Ended.CUT, False, None),
        (Status.OK, Ended.PROCESS, False, None),
        (Status.FAILED, Ended.PROCESS, True, None),
    ],
)
def test_it_is_known_how_long_it_lasted(
    status: Status, ended: Ended | None, gone: bool, seconds: float | None
) -> None:
    """By what the agent tells of it, whatever its words look like."""
    (line,) = lines_of(status, ended)
    assert (line.gone, line.seconds) == (gone, seconds)
    result = HostResult(Host("n1", "n1"), None, (WHOLE,), (line,))
    covered = coverage_of(result)
    assert (covered.processes.short, covered.complete) == (int(seconds is not None), seconds is None)


def test_one_of_which_nothing_came_is_not_recorded_and_not_short() -> None:
    (line,) = lines_of(Status.DEGRADED, Ended.CUT, recorded=False)
    covered = coverage_of(HostResult(Host("n1", "n1"), None, (), (line,)))
    assert (covered.processes.recorded, covered.processes.short, covered.complete) == (0, 0, False)


def host(name: str, *seconds: float | None) -> dict[str, Any]:
    pids = range(7, 7 + len(seconds))
    return {
        "name": name,
        "recordings": [{"event": "cpu", "process": {"pid": pid, "label": "web"}} for pid in pids],
        "outcomes": [
            {"pid": pid, "status": "degraded", "label": "web", "seconds": lasted}
            for pid, lasted in zip(pids, seconds, strict=False)
        ],
    }


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ([host("n1", 24.0), host("n2", None)], "2 of 2 processes on 2 of 2 hosts, n1: 24 of 60 s"),
        ([host("n1", None, 24.0)], "2 of 2 processes on 1 of 1 host, n1 pid 8 (web): 24 of 60 s"),
        ([host("n1", 24.0, 3.25)], "2 of 2 processes on 1 of 1 host, n1: 3.25 of 60 s"),
        (
            [host(f"n{number}", 24.0) for number in range(1, 6)],
            "5 of 5 processes on 5 of 5 hosts, "
            "n1: 24 of 60 s, n2: 24 of 60 s, n3: 24 of 60 s, 2 more cut short",
        ),
    ],
)
def test_the_report_says_for_how_long(hosts: list[dict[str, Any]], told: str) -> None:
    facts = read_facts(record_of({"sampling": {"events": ["cpu"], "duration": 60}, "hosts": hosts}))
    assert coverage(facts)[:2] == (told, False)
