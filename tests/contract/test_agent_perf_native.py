"""Native processes recorded by the host's perf: known shares, kernel and user frames, off-CPU."""

from __future__ import annotations

import os

import pytest

from tests.burners.counting import Native, grown
from tests.contract.perf_engine import processes, record

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel frames")


WORKS = {
    "c": {"hot": "hot", "warm": "warm", "kernel": "read"},
    "rust": {"hot": "hot", "warm": "through", "kernel": "read"},
    "go": {"hot": "hot", "warm": "burn", "kernel": "Read"},
}
"""By language: what each of a program's counters is called in its stacks."""


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
    names = WORKS[program.language]
    total = sum(after[work] for work in names)
    for work, name in names.items():
        seen = done.share(name, among=tuple(names.values()))
        assert seen == pytest.approx(after[work] / total, abs=0.06), (work, done.stacks()[:9])


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
