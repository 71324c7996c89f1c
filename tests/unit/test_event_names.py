"""Names of events: which are known, and of which only a recording can tell."""

from __future__ import annotations

import pytest

from hprofiler.model.event_names import OWN, doubt_of, known_as
from tests.unit.command import hprofiler

KNOWN = [*OWN, "cycles", "page-faults", "sched:sched_switch", "mem:0x10/8:w", "cpu/cache-misses/u", "r1a8"]
KNOWN += ["java.util.HashMap.get", "a.B.*", "G1CollectedHeap::allocate", "mem_load_retired.l3_miss"]


@pytest.mark.parametrize("event", KNOWN)
def test_no_doubt_about_an_event_known_by_its_name_or_form(event):
    assert doubt_of(event) is None


def test_a_run_says_it_before_it_connects(tmp_path):
    words = ["-t", "0.1", "-j", "pid:1", "-e", "aloc,cpu,a.B.c", "-h", "127.0.0.1", "--port", "1", "-o"]
    said = hprofiler(*words, tmp_path / "run").stderr
    assert said.index("note: aloc is not a known event") < said.index("127.0.0.1"), said
    assert said.index("note: to count a.B.c, async-profiler changes its class") < said.index("127.0.0.1"), (
        said
    )
    assert said.count("note:") == 2, said


@pytest.mark.parametrize(
    ("shown", "event"),
    [
        ("java/util/HashMap.merge", "java.util.HashMap.merge"),
        ("a/B$1.<init>", "a.B$1.<init>"),
        ("heap", "alloc"),
        ("cpu/cache-misses/u", "cpu/cache-misses/u"),
    ],
)
def test_a_method_may_be_named_as_it_is_shown(shown, event):
    assert known_as(shown) == known_as(event) == event
