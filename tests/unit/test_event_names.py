"""Names of events: which are known, and of which only a recording can tell."""

from __future__ import annotations

import pytest

from hprofiler.model.event_names import OWN, caution_of, doubt_of, known_as
from hprofiler.model.measures import measure_of
from tests.unit.command import hprofiler

KNOWN = [*OWN, "cycles", "page-faults", "sched:sched_switch", "mem:0x10/8:w", "cpu/cache-misses/u", "r1a8"]
KNOWN += ["java.util.HashMap.get", "a.B.*", "G1CollectedHeap::allocate", "mem_load_retired.l3_miss"]


@pytest.mark.parametrize("event", KNOWN)
def test_no_doubt_about_an_event_known_by_its_name_or_form(event):
    assert doubt_of(event) is None


@pytest.mark.parametrize(
    ("event", "meant"),
    [("aloc", "alloc"), ("Wall", "wall"), ("cycle", "cycles"), ("nosuch", "not a function")],
)
def test_a_word_may_be_a_function_or_a_typo(event, meant):
    doubt = doubt_of(event)
    assert doubt and event in doubt.text and meant in doubt.remedy


@pytest.mark.parametrize("event", ["java.util.HashMap.get", "Main.<init>", "a.B.*"])
def test_a_method_event_changes_its_class_until_the_jvm_is_restarted(event):
    caution = caution_of(event)
    assert caution and event in caution.text and "later recordings of the JVM" in caution.text
    assert caution_of("mem_load_retired.l3_miss") is caution_of("page-faults") is None


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("a.B.noSuch", "there is no such method"),
        ("java.util.HashMap.*", "there is no such method"),
        ("mem_load_retired.l3_miss", "had no sample of mem_load_retired.l3_miss"),
        ("page-faults", "had no event of page-faults"),
    ],
)
def test_why_an_event_has_no_samples(event, said):
    assert said in measure_of(event).none


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
