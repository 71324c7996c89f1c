"""How much of what was asked for a picture is of, also of a run that was interrupted or cut short."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from hprofiler.agent import Ended, ProcessOutcome
from hprofiler.analysis.coverage import coverage
from hprofiler.analysis.facts import read_facts
from hprofiler.collect.ledger import Ledger
from hprofiler.model import Host, HostResult, Outcome, Process, Recording, Samples, Status
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.unit.test_page_data import described
from tests.viewer.made_run import MadeHost, content_of, coverage_of, make_run, record_of, rewrite


def run_of(path: Path, seconds: dict[int, float], interrupted: bool = False) -> RunFolder:
    """Two hosts of one process each, recorded for so long; n2 has one more that failed."""
    hosts = [MadeHost("n1", {11: "main;work 40\n"}), MadeHost("n2", {12: "main;work 2\n"})]
    hosts[1].fails("failed", "no room", pid=13)
    folder = make_run(path, hosts)
    run = content_of(folder)
    for host in run["hosts"]:
        for one in host["recordings"]:
            one["seconds"] = seconds[one["process"]["pid"]]
    rewrite(folder, {**run, "interrupted": interrupted})
    return folder


def subtitle(svg: str) -> str:
    found = re.search(r'id="subtitle"[^>]*>([^<]*)<', svg)
    assert found
    return unescape(found[1])


def test_a_host_that_was_cut_short_says_so_and_others_do_not(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", {11: 60.0, 12: 5.0})
    run = content_of(folder)
    line = {
        "status": "degraded",
        "pid": 12,
        "stage": "record",
        "reason": "ended after 5 s: lost",
        "seconds": 5,
    }
    run["hosts"][1]["outcomes"].append(line)
    rewrite(folder, run)
    page = make_report(folder.path).page
    told = {name: subtitle((folder.host_dir(name) / "cpu.svg").read_text()) for name in ("n1", "n2")}
    assert "300 Hz for 60 s" in told["n1"] and "300 Hz for 5 of 60 s" in told["n2"]
    assert "n2: 5 of 60 s" in subtitle((folder.cluster_dir / "cpu.svg").read_text())
    (coverage,) = described(page)["coverage"]
    assert coverage == {
        "runs": ["2 of 3 processes on 2 of 2 hosts, n2: 5 of 60 s · 300 Hz for 60 s"],
        "hosts": {
            "0": "1 of 1 process · 300 Hz for 60 s",
            "1": "1 of 2 processes, n2: 5 of 60 s · 300 Hz for 5 of 60 s",
        },
        "short": {"1": "5 of 60 s"},
    }


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
