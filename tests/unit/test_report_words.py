"""The words of a report: shares, coverage, dates, names."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from hprofiler.agent.messages import Ended, ProcessOutcome
from hprofiler.analysis.coverage import coverage
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.words import moment
from hprofiler.collect.ledger import Ledger
from hprofiler.model import HostRecord, Outcome, Process, Recording, Samples, Status
from hprofiler.model.measures import (
    amount,
    counted,
    duration,
    in_words,
    interval_in_words,
    size,
)
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.viewer.block import described
from tests.viewer.made_run import MadeHost, changed, coverage_of, make_run, record_of


def test_moments_are_utc():
    assert moment("2026-11-20T08:12:03+02:00") == "20 Nov 2026, 06:12 UTC"
    assert moment("2026-11-20T06:12:03Z") == "20 Nov 2026, 06:12 UTC"
    assert moment("2026-11-20T06:12:03Z", seconds=True) == "20 Nov 2026, 06:12:03 UTC"
    for other in ("yesterday", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"):
        assert moment(other) == other


def test_durations_and_counts():
    told = [duration(value) for value in (0, 1e-9, 9.9999e-4, 0.0015, 0.5, 5, 60, 4.06, 600, 7200)]
    assert ", ".join(told) == "0 s, 1 ns, 1 ms, 1.5 ms, 500 ms, 5 s, 60 s, 4.1 s, 10.0 min, 2.0 h"
    assert [counted(1, what) for what in ("processes", "lines", "page-faults", "queries")] == [
        "1 process",
        "1 line",
        "1 page-fault",
        "1 query",
    ]
    assert counted(2, "hosts") == "2 hosts"


def test_bytes_are_in_powers_of_1024():
    told = [size(value) for value in (0, 100, 1023, 1024, 524_288, 1_400_000, 2**40, 2**50)]
    assert "; ".join(told) == "0 bytes; 100 bytes; 1,023 bytes; 1 KiB; 512 KiB; 1.3 MiB; 1 TiB; 1,024 TiB"


def test_every_event_has_its_own_units():
    assert in_words("cpu", {"samples": 1234, "cpu": 4_100_000_000}) == "1,234 samples, 4.1 s of CPU time"
    assert in_words("alloc", {"alloc_objects": 5, "alloc_space": 2**30}) == "5 objects, 1 GiB allocated"
    many = {"alloc_objects": 670_216_888, "alloc_space": 2**30}
    assert in_words("alloc", many) == "about 670,000,000 objects, 1 GiB allocated"
    assert amount(1000, ("inuse_objects", "count")) == "1,000 objects", "that it is"
    assert amount(1_234_567, ("inuse_objects", "count")) == "about 1,230,000 objects"
    assert in_words("lock", {"contentions": 1, "delay": 20_000_000}) == "1 contention, 20 ms waited"
    assert in_words("page-faults", {"page-faults": 7}) == "7 events"
    assert in_words("page-faults:u", {"page-faults:u": 7}) == "7 events"
    assert in_words("sched:sched_switch", {"sched:sched_switch": 1}) == "1 event"
    assert in_words("a.b.Row.parse", {"a.b.Row.parse": 7}) == "7 calls"
    assert in_words("cycles:u", {"cycles:u": 7}) == "7 samples", "each stands for so many"
    method = "java.lang.Class.getMethods"
    assert in_words(method, {method: 1}) == amount(1, (method, "count")) == "1 call"
    assert in_words("cpu", {}) == ""
    assert amount(3, ("contentions", "count")) == "3 contentions"


def test_intervals_are_shown_where_they_mean_something():
    assert interval_in_words("alloc", [524_288, 4 << 20, 1 << 20]) == "every 512 KiB to 4 MiB"
    assert interval_in_words("lock", [10_000, 10_000]) == "every 10 µs"
    assert interval_in_words("wall", [10_000_000]) == "every 10 ms"
    assert interval_in_words("page-faults", [5]) == interval_in_words("live", [0]) == ""


def host(name, recorded=(), failed=(), status=None):
    outcomes = [{"pid": pid, "status": "failed"} for pid in failed]
    outcomes += [{"pid": None, "status": status}] if status else []
    return {
        "name": name,
        "recordings": [{"process": {"pid": pid}} for pid in recorded],
        "outcomes": outcomes,
    }


def facts(hosts):
    return read_facts(record_of({"hosts": hosts}))


def test_coverage_counts_what_was_found_and_leaves_idle_hosts_out():
    hosts = [host("a", [1, 2], [3]), host("b", [4]), host("c", status="idle"), host("d", status="failed")]
    assert coverage(facts(hosts))[:2] == (
        "3 of 4 processes on 2 of 3 hosts, 1 idle",
        False,
    )
    assert coverage(facts([host("b", [4])]))[:2] == (
        "1 of 1 process on 1 of 1 host",
        True,
    )
    assert coverage(facts([{**host("b", [4]), "inside": True}])).text == "1 of 1 process in 1 of 1 container"
    assert coverage(facts([host("b", [4])]), unreadable=1).text.startswith("0 of 1 process")
    beside = [host("b", [4]), host("b/proxy", status="degraded")]
    assert coverage(facts(beside))[:2] == (
        "1 of 1 process on 1 of 1 host, 1 without a shell",
        True,
    )


def run_of(path: Path, seconds: dict[int, float], interrupted: bool = False) -> RunFolder:
    """Two hosts with a process each, recorded for these seconds; n2 has another that failed."""
    hosts = [MadeHost("n1", {11: "main;work 40\n"}), MadeHost("n2", {12: "main;work 2\n"})]
    hosts[1].fails("failed", "no room", pid=13)
    folder = make_run(path, hosts, interrupted=interrupted)
    with changed(folder) as run:
        for host in run["hosts"]:
            for one in host["recordings"]:
                one["seconds"] = seconds[one["process"]["pid"]]
    return folder


def subtitle(svg: str) -> str:
    found = re.search(r'id="subtitle"[^>]*>([^<]*)<', svg)
    assert found
    return unescape(found[1])


def test_a_host_that_was_cut_short_says_so_and_others_do_not(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", {11: 60.0, 12: 5.0})
    line = {
        "status": "degraded",
        "pid": 12,
        "stage": "record",
        "reason": "ended after 5 s: lost",
        "seconds": 5,
    }
    with changed(folder) as run:
        run["hosts"][1]["outcomes"].append(line)
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


def test_how_long_was_recorded_is_not_called_requested(tmp_path: Path) -> None:
    """A planned end before the limit is what run.json has as the duration."""
    folder = run_of(tmp_path / "run", {11: 23.257, 12: 23.0})
    with changed(folder) as run:
        run["sampling"]["duration"] = 23.257
    facts = {label: lines for label, _, lines in described(make_report(folder.path).page)["run"]["facts"]}
    assert facts["Requested"] == ["cpu at 300 Hz, engine auto"]
    assert facts["Recorded for"] == ["23.3 s"]


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
        (Status.OK, Ended.PROCESS, True, None),
        (Status.FAILED, Ended.PROCESS, True, None),
    ],
)
def test_seconds_of_a_recording_that_was_cut_short(
    status: Status, ended: Ended | None, gone: bool, seconds: float | None
) -> None:
    """Decided by the fields of the outcome, whatever its reason says."""
    (line,) = lines_of(status, ended)
    assert (line.gone, line.seconds) == (gone, seconds)
    result = HostRecord(name="n1", recordings=(WHOLE,), outcomes=(line,))
    covered = coverage_of(result)
    assert (covered.processes.short, covered.complete) == (int(seconds is not None), seconds is None)


def cut_short(name: str, *seconds: float | None) -> dict[str, Any]:
    pids = range(7, 7 + len(seconds))
    return {
        "name": name,
        "recordings": [{"event": "cpu", "process": {"pid": pid, "label": "web"}} for pid in pids],
        "outcomes": [
            {"host": name, "pid": pid, "status": "degraded", "label": "web", "seconds": lasted}
            for pid, lasted in zip(pids, seconds, strict=False)
        ],
    }


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ([cut_short("n1", 24.0), cut_short("n2", None)], "2 of 2 processes on 2 of 2 hosts, n1: 24 of 60 s"),
        ([cut_short("n1", None, 24.0)], "2 of 2 processes on 1 of 1 host, n1 pid 8 (web): 24 of 60 s"),
        ([cut_short("n1", 24.0, 3.25)], "2 of 2 processes on 1 of 1 host, n1: 3.25 of 60 s"),
        (
            [cut_short(f"n{number}", 24.0) for number in range(1, 6)],
            "5 of 5 processes on 5 of 5 hosts, "
            "n1: 24 of 60 s, n2: 24 of 60 s, n3: 24 of 60 s, 2 more cut short",
        ),
    ],
)
def test_coverage_names_hosts_that_were_cut_short(hosts: list[dict[str, Any]], told: str) -> None:
    facts = read_facts(record_of({"sampling": {"events": ["cpu"], "duration": 60}, "hosts": hosts}))
    assert coverage(facts)[:2] == (told, False)
