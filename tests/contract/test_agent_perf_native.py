"""Native processes recorded by the host's perf: known shares, kernel and user frames, off-CPU."""

from __future__ import annotations

import os

import pytest

from tests.burners.counting import Native, grown
from tests.contract.perf_engine import processes, record

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel frames")


@pytest.fixture(params=["c", "rust", "go"])
def program(request):
    try:
        made = Native(request.param)
    except FileNotFoundError as missing:
        pytest.skip(f"no {missing.filename} on this machine")
    made.language = request.param
    yield made
    made.kill()


def test_shares_are_those_that_were_burnt(agent, program):
    found = processes(agent, program)
    assert found[0]["jvm"] is None
    before = program.counters()
    done = record(agent, program, duration=4)
    after = grown(program.counters(), before)
    assert done.outcome["status"] == "ok", done.outcome
    assert done.head()["engine"] == "perf"
    total = sum(value for name, value in after.items() if name.startswith("cpu."))
    for kind in ("hot", "warm", "kernel"):
        want = after[f"cpu.{kind}.ns"] / total
        assert done.share(kind, among=("hot", "warm", "kernel")) == pytest.approx(want, abs=0.05), done.stacks()[:9]


def test_kernel_frames_have_their_kind(agent, program):
    done = record(agent, program)
    kernel = [stack for stack, _ in done.stacks() if stack[-1].endswith("_[k]")]
    assert kernel and any("read" in frame for stack in kernel for frame in stack)
    assert done.share("[unknown") < 0.02, done.stacks()[:20]


def test_off_cpu_of_a_native_process(agent, program):
    done = record(agent, program, ["cpu", "offcpu"], duration=3)
    assert done.profile("offcpu").values == [("offcpu_samples", "count"), ("offcpu", "nanoseconds")]
    assert done.head("offcpu")["source"] == "offcpu"
    assert sum(count for _, count in done.stacks("offcpu", 1)) > 3e9
