"""The report's words: shares, coverage, dates, names, what stands out."""

from __future__ import annotations

import pytest

from hprofiler.report.facts import clean, read_facts
from hprofiler.report.words import (
    count,
    coverage,
    followed_by,
    moment,
    over_hosts,
    package_length,
    percent,
    seconds,
)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 2, "50.0 %"),
        (1, 1, "100 %"),
        (9999, 10000, "100 %"),
        (999, 1000, "99.9 %"),
        (1, 200, "0.50 %"),
        (1, 10**6, "<0.01 %"),
        (0, 5, "0 %"),
        (0, 0, "0 %"),
    ],
)
def test_percent_has_the_digits_it_deserves(part, whole, text):
    assert percent(part, whole).replace("\u202f", " ") == text


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("org.apache.Foo.bar", "org.apache."),
        ("org/apache/Foo.bar", "org/apache/"),
        ("java/lang/Object[]", "java/lang/"),
        ("Foo.bar", ""),
        ("__libc_read", ""),
        ("snappy::RawUncompress(snappy::Source*, char*)", ""),
        ("com.example.Main.lambda$run$0(java.lang.String)", "com.example."),
        ("finish_task_switch.isra.0", ""),
        ("tcp_recvmsg.part.0.cold", ""),
        ("a.b.C.<init>", "a.b."),
        ("a", ""),
        ("", ""),
        ("...", ""),
    ],
)
def test_packages_end_where_the_class_begins(name, package):
    assert name[: package_length(name)] == package


def test_moments_are_utc():
    assert moment("2026-11-20T08:12:03+02:00") == "20 Nov 2026, 06:12 UTC"
    assert moment("2026-11-20T06:12:03Z") == "20 Nov 2026, 06:12 UTC"
    assert moment("yesterday") == "yesterday"


def test_durations_and_counts():
    assert [seconds(value) for value in (5, 60, 0.5, 600, 7200)] == [
        "5 s",
        "60 s",
        "0.5 s",
        "10.0 min",
        "2.0 h",
    ]
    assert [count(1, "processes"), count(2, "hosts"), count(1, "lines")] == ["1 process", "2 hosts", "1 line"]


def host(name, recorded=(), failed=(), status=None):
    outcomes = [{"pid": pid, "status": "failed"} for pid in failed]
    outcomes += [{"pid": None, "status": status}] if status else []
    return {
        "name": name,
        "recordings": [{"process": {"pid": pid}} for pid in recorded],
        "outcomes": outcomes,
    }


def test_coverage_counts_what_was_found_and_leaves_idle_hosts_out():
    hosts = [host("a", [1, 2], [3]), host("b", [4]), host("c", status="idle"), host("d", status="failed")]
    assert coverage(read_facts({"hosts": hosts})) == ("3 of 4 processes on 2 of 3 hosts, 1 idle", False)
    assert coverage(read_facts({"hosts": [host("b", [4])]})) == ("1 of 1 process on 1 of 1 host", True)
    assert coverage(read_facts({"hosts": [host("b", [4])]}), unreadable=1)[0].startswith("0 of 1 process")


def test_what_stands_out_is_named_and_what_is_even_is_not():
    plain = {"\u202f": " "}
    uneven = over_hosts(0.2, {"a": 0.1, "b": 0.6}).translate(str.maketrans(plain))
    assert uneven == "Most on b, where it takes 60.0 %, against 10.0 % on a."
    even = over_hosts(0.2, {"a": 0.19, "b": 0.21}).translate(str.maketrans(plain))
    assert even == "About the same on all 2 hosts: 19.0 % to 21.0 %."
    mixed = over_hosts(0.2, {"a": 0.05, "b": 0.25, "c": 0.25}).translate(str.maketrans(plain))
    assert mixed == "Between 5.0 % on a and 25.0 % on c."
    assert over_hosts(0.2, {"a": 0.2}) == ""


def test_the_next_methods_are_told_by_short_names():
    assert (
        followed_by([("org.Foo.bar", 0.2), ("org.Foo.baz", 0)]).replace("\u202f", " ")
        == "Then Foo.bar (20.0 %)."
    )


@pytest.mark.parametrize(
    "run", [{}, {"hosts": 5}, {"hosts": [7, {"recordings": {}, "outcomes": [3]}]}, {"sampling": []}]
)
def test_damaged_facts_are_empty_not_an_error(run):
    facts = read_facts(run)
    assert facts.event == "cpu"
    assert coverage(facts)[0].startswith("0 of ")


def test_text_loses_what_cannot_be_written():
    assert clean("a\ud800b\x1b[0m\x00") == "a\ufffdb\ufffd[0m\ufffd"
    assert clean(None) == ""
