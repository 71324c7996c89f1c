"""The report's words: shares, coverage, dates, names, what stands out."""

from __future__ import annotations

from hprofiler.analysis.coverage import coverage
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.words import moment
from hprofiler.model.measures import (
    amount,
    counted,
    duration,
    in_words,
    interval_in_words,
    size,
)
from tests.viewer.made_run import record_of


def test_moments_are_utc():
    assert moment("2026-11-20T08:12:03+02:00") == "20 Nov 2026, 06:12 UTC"
    assert moment("2026-11-20T06:12:03Z") == "20 Nov 2026, 06:12 UTC"
    assert moment("2026-11-20T06:12:03Z", seconds=True) == "20 Nov 2026, 06:12:03 UTC"
    for other in ("yesterday", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"):
        assert moment(other) == other


def test_durations_and_counts():
    told = [duration(value) for value in (0, 1e-9, 9.9999e-4, 0.0015, 0.5, 5, 60, 4.06, 600, 7200)]
    assert told == [
        "0 s",
        "1 ns",
        "1 ms",
        "1.5 ms",
        "500 ms",
        "5 s",
        "60 s",
        "4.1 s",
        "10.0 min",
        "2.0 h",
    ]
    assert [counted(1, what) for what in ("processes", "lines", "page-faults")] == [
        "1 process",
        "1 line",
        "1 page-fault",
    ]
    assert counted(2, "hosts") == "2 hosts"


def test_bytes_are_in_powers_of_1024():
    told = [size(value) for value in (0, 100, 1023, 1024, 524_288, 1_400_000, 2**40, 2**50)]
    assert told == [
        "0 bytes",
        "100 bytes",
        "1,023 bytes",
        "1 KiB",
        "512 KiB",
        "1.3 MiB",
        "1 TiB",
        "1,024 TiB",
    ]


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
