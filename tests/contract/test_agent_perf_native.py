"""Native processes recorded by the host's perf: known shares, kernel and user frames, off-CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.burners import build
from tests.burners.counting import Native, grown
from tests.contract.agent_driver import good, near, running
from tests.needed import lacking

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel frames")


WORKS = {
    "c": {"hot": "hot", "warm": "warm", "kernel": "ksys_read_[k]"},
    "rust": {"hot": "native_rust::hot", "warm": "<native_rust::Warm", "closure": "native_rust::through"},
    "go": {"hot": "main.hot", "warm": "main.(*Worker).burn"},
}
"""By language: what each of a program's counters is called in its stacks."""


@pytest.fixture
def native(keep_program):
    def start(language):
        try:
            return keep_program(Native(language))
        except FileNotFoundError as missing:
            lacking(f"no {missing.filename} on this machine")

    return start


@pytest.mark.parametrize("language", WORKS)
def test_shares_are_those_that_were_burnt_and_frames_have_names(agent, native, language):
    program, names = native(language), WORKS[language]
    assert agent.found(program)[0]["jvm"] is None
    before = program.counters()
    done = agent.record(program, engine="perf", duration=1)
    after = grown(program.counters(), before)
    assert good(done.outcome) and done.share("[unknown") < 0.02, done.stacks()[:20]
    assert (done.head()["engine"], done.head()["attach_seconds"]) == ("perf", None)
    total = sum(after[work] for work in names)
    for work, name in names.items():
        seen = done.share(name, among=tuple(names.values()))
        assert near(seen, after[work] / total, done.head()["samples"]["taken"]), (work, done.stacks()[:9])
    if language == "c":
        modules = done.profile().modules()
        assert (modules["ksys_read"], modules["hot"]) == ("[kernel.kallsyms]", build.native("c").name)


FAULTS = """
import mmap
print("ready", flush=True)
while True:
    with mmap.mmap(-1, 1 << 22) as fresh:
        fresh[::4096] = bytes(1024)
"""
"""Hundreds of thousands of page faults a second."""


def test_an_event_that_comes_too_often_is_ended_early(agent):
    """Each is a sample; what was taken until then is kept."""
    with running(sys.executable, "-c", FAULTS, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        (found,) = agent.find(native=True, kind="pids", pids=[process.pid])["processes"]
        agent.begin(found, engine="perf", events=["page-faults", "cpu"], duration=300)
        done = agent.collect(300).of(process.pid)
    outcome = done.outcome
    assert outcome["status"] == "degraded" and "perf stat" in outcome["remedy"], outcome
    assert "ended after" in outcome["reason"] and "page-faults: too frequent" in outcome["reason"], outcome
    assert done.head("page-faults")["samples"]["taken"] > 50_000
    assert done.head("cpu")["seconds"] == outcome["seconds"] < 290 and outcome["ended"] == "cut", outcome
