"""Names of events: which are known, and of which only a recording can tell."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hprofiler.model.event_names import OWN, caution_of, doubt_of, known_as
from hprofiler.model.measures import measure_of


@pytest.mark.parametrize(
    "event",
    [
        *OWN,
        "cycles",
        "page-faults",
        "L1-dcache-load-misses",
        "sched:sched_switch",
        "mem:0x10/8:w",
        "cpu/cache-misses/u",
        "r1a8",
        "0x7f00",
        "java.util.HashMap.get",
        "a.B.*",
        "G1CollectedHeap::allocate",
        "mem_load_retired.l3_miss",
    ],
)
def test_what_is_known_by_its_name_or_form_is_not_doubted(event):
    assert doubt_of(event) is None


@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ("aloc", "alloc"),
        ("Wall", "wall"),
        ("offcpus", "offcpu"),
        ("cycle", "cycles"),
        ("nosuch", "not a function"),
    ],
)
def test_a_word_may_be_a_function_and_may_be_a_typo(event, meant):
    doubt = doubt_of(event)
    assert doubt and event in doubt.text and meant in doubt.remedy
    assert doubt_of("malloc") is not None, "which async-profiler can record"


@pytest.mark.parametrize(
    ("event", "is_method"),
    [
        ("java.util.HashMap.get", True),
        ("Main.<init>", True),
        ("a.B.*", True),
        ("mem_load_retired.l3_miss", False),
        ("page-faults", False),
        ("sched:sched_switch", False),
    ],
)
def test_a_method_leaves_a_trace_in_its_jvm(event, is_method):
    caution = caution_of(event)
    assert (caution is not None) is is_method
    assert not caution or (event in caution.text and "later recordings of the JVM" in caution.text)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("a.B.noSuch", "there is no such method"),
        ("Burner.work", "there is no such method"),
        ("java.util.HashMap.*", "there is no such method"),
        ("mem_load_retired.l3_miss", "had no sample of mem_load_retired.l3_miss"),
        ("MEM_LOAD_RETIRED.L3_MISS", "had no sample"),
        ("page-faults", "had no event of page-faults"),
        ("sched:sched_switch", "had no event of sched:sched_switch"),
    ],
)
def test_why_an_event_has_no_samples(event, said):
    assert said in measure_of(event).none


def test_a_run_says_it_before_it_goes_to_any_host(tmp_path):
    words = [
        "-t",
        "0.1",
        "-j",
        "pid:1",
        "-e",
        "aloc,cpu,a.B.c",
        "--max-hosts",
        "9",
        "-h",
        "127.0.0.1",
        "--port",
        "1",
    ]
    command = [sys.executable, "-m", "hprofiler", *words, "-o", str(tmp_path / "run")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120).stderr
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
        ("a/b/C.*", "a.b.C.*"),
        ("Job.run", "Job.run"),
        ("heap", "alloc"),
    ],
)
def test_a_method_may_be_named_as_it_is_shown(shown, event):
    assert known_as(shown) == known_as(event) == event
