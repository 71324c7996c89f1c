"""Native processes recorded by the host's perf: known shares, kernel and user frames, off-CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.burners import build
from tests.burners.counting import Native, grown
from tests.contract.agent_driver import good, near
from tests.contract.perf_engine import prepare, processes, record
from tests.needed import lacking

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel frames")


WORKS = {
    "c": {"hot": "hot", "warm": "warm", "kernel": "ksys_read_[k]"},
    "rust": {"hot": "native_rust::hot", "warm": "<native_rust::Warm", "closure": "native_rust::through"},
    "go": {"hot": "main.hot", "warm": "main.(*Worker).burn"},
}
"""By language: what each of a program's counters is called in its stacks."""


@pytest.fixture(params=["c", "rust", "go"])
def program(request):
    try:
        made = Native(request.param)
    except FileNotFoundError as missing:
        lacking(f"no {missing.filename} on this machine")
    made.language = request.param
    yield made
    made.kill()


def test_shares_are_those_that_were_burnt(agent, program):
    found = processes(agent, program)
    assert found[0]["jvm"] is None
    before = program.counters()
    done = record(agent, program, duration=2)
    after = grown(program.counters(), before)
    assert good(done.outcome)
    assert (done.head()["engine"], done.head()["attach_seconds"]) == ("perf", None)
    names = WORKS[program.language]
    total = sum(after[work] for work in names)
    for work, name in names.items():
        seen = done.share(name, among=tuple(names.values()))
        assert near(seen, after[work] / total, done.head()["samples"]["taken"]), (work, done.stacks()[:9])


def test_frames_have_names(agent, program):
    done = record(agent, program)
    assert done.share("[unknown") < 0.02, done.stacks()[:20]


def test_kernel_frames_have_their_kind(agent):
    program = Native("c")
    try:
        done = record(agent, program)
    finally:
        program.kill()
    kernel = [frame for stack, _ in done.stacks() for frame in stack if "ksys_read" in frame]
    assert kernel and all(frame.endswith("_[k]") for frame in kernel)
    modules = done.profile().modules()
    assert (modules["ksys_read"], modules["hot"]) == ("[kernel.kallsyms]", build.native("c").name)


def test_off_cpu_tells_waits_apart(agent):
    """By frames below the thread's group; threads of the program sleep and wait for a lock."""
    program = Native("c")
    try:
        done = record(agent, program, ["cpu", "offcpu"], duration=3)
    finally:
        program.kill()
    assert done.profile("offcpu").values == [("offcpu_samples", "count"), ("offcpu", "nanoseconds")]
    assert done.head("offcpu")["source"] == "offcpu"
    waits = {(stack[0], stack[1]) for stack, _ in done.stacks("offcpu")}
    assert {("[c-sleeper]", "[sleep]"), ("[c-locker]", "[lock]")} <= waits, waits
    asleep = sum(value for stack, value in done.stacks("offcpu", 1) if stack[0] == "[c-sleeper]")
    assert asleep == pytest.approx(1e9 * done.head()["seconds"], rel=0.15)


FAULTS = """
import mmap
while True:
    with mmap.mmap(-1, 1 << 22) as fresh:
        fresh[::4096] = bytes(1024)
"""
"""Hundreds of thousands of page faults a second."""


def test_what_comes_too_often_is_ended_early(agent):
    """Each is a sample; what was taken until then is kept."""
    process = subprocess.Popen([sys.executable, "-c", FAULTS])
    try:
        found = agent.find(native=True, kind="pids", pids=[process.pid])["processes"]
        ready, refused = prepare(agent, found, ["page-faults", "cpu"], duration=60)
        assert ready == [process.pid], refused
        agent.start()
        result = agent.collect()
    finally:
        process.kill()
        process.wait()
    outcome, heads = result.outcomes[process.pid], result.events[process.pid]
    assert outcome["status"] == "degraded" and "perf stat" in outcome["remedy"], outcome
    assert "ended after" in outcome["reason"] and "page-faults: too often" in outcome["reason"], outcome
    assert heads["page-faults"][0]["samples"]["taken"] > 50_000
    assert heads["cpu"][0]["seconds"] == outcome["seconds"] < 50 and outcome["ended"] == "cut", outcome
