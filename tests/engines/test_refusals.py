"""What cannot be done is said before anything is attached, with the way out; what perf can do, it does."""

from __future__ import annotations

import platform
import subprocess

import pytest

from hprofiler.base import resources
from tests.burners.burner import Program
from tests.burners.counting import Truth
from tests.engines.conftest import Zoo
from tests.engines.measured import Run, Runner
from tests.lab import attach

pytestmark = pytest.mark.nightly

CLOSED = {
    "attach disabled": ("-XX:+DisableAttachMechanism", "DisableAttachMechanism"),
    "agents disabled": ("-XX:-EnableDynamicAgentLoading", "EnableDynamicAgentLoading"),
}
NOTHING, PARTIAL = 4, 3


@pytest.mark.parametrize("how", sorted(CLOSED))
def test_a_jvm_that_refuses_agents_is_recorded_by_perf(record: Runner, zoo: Zoo, how: str) -> None:
    flag, reason = CLOSED[how]
    jvm = zoo.jvm("cpu=0.5", jdk=21, options=[flag, "-XX:+PreserveFramePointer"])
    run = record([jvm], seconds=3)
    assert run.recording(jvm)["engine"] == "perf"
    assert reason in run.told(jvm)
    assert run.cpu_seconds_agree(jvm)
    if how == "agents disabled":  # jcmd's Compiler.perfmap needs no agent
        samples = run.stacks(jvm, "cpu", "samples")
        assert samples.of("Cpu.inJava") > 0.3 * samples.of("[truth-cpu-")
    asked = record([jvm], "--engine", "async-profiler", seconds=1)
    assert asked.code == NOTHING, asked
    outcome = asked.outcome(jvm)
    assert outcome["status"] == "failed" and reason in outcome["reason"] + outcome["remedy"]
    assert not attach.profiler_libraries(jvm.outer.pid)
    jvm.finish()
    assert "Full thread dump" not in "\n".join(jvm.other_lines)


@pytest.mark.parametrize(("event", "why"), [("live", "11"), ("alloc", "debug symbols")])
def test_what_jdk_8_cannot_do(record: Runner, zoo: Zoo, event: str, why: str) -> None:
    """Nothing is loaded."""
    eight = zoo.jvm("cpu=0.1", jdk=8)
    run = record([eight], "-e", event, seconds=1)
    _is_refused(run, eight, event, why)
    assert run.outcome(eight)["stage"] == "prepare"
    assert not attach.profiler_libraries(eight.outer.pid)


def test_the_other_events_go_on_without_it(record: Runner, zoo: Zoo) -> None:
    eight = zoo.jvm("cpu=0.3", "alloc=20", jdk=8)
    run = record([eight], "-e", "cpu,live", seconds=1)
    assert set(run.recordings(eight)) == {"cpu"}
    assert run.code == PARTIAL
    assert run.outcome(eight)["status"] == "degraded" and "live" in run.told(eight)


@pytest.fixture(scope="module")
def jvm(zoo: Zoo) -> Truth:
    return zoo.jvm("cpu=0.3")


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_hardware_events(record: Runner, jvm: Truth, engine: str) -> None:
    """Recorded where the machine has them, refused plainly where not."""
    run = record([jvm], "-e", "cache-misses", "--engine", engine, seconds=1)
    if _has_hardware_events():
        assert run.recordings(jvm).keys() == {"cache-misses"}
    else:
        _is_refused(run, jvm, "counter")


def _has_hardware_events() -> bool:
    counted = subprocess.run(
        ["perf", "stat", "-e", "cache-misses", "true"], capture_output=True, text=True, check=False
    )
    return "not supported" not in counted.stderr and counted.returncode == 0


def test_what_perf_cannot_do(record: Runner, zoo: Zoo) -> None:
    events = ["alloc", "lock", "wall", "live", "nativemem"]
    native = zoo.native("c")
    run = record([native], "--engine", "perf", "-e", ",".join(events), seconds=1)
    _is_refused(run, native, *events, "perf")


def test_another_profiler_in_the_jvm(
    record: Runner, zoo: Zoo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It is found before anything is loaded, and not disturbed."""
    jvm = zoo.jvm("cpu=0.1")
    shipped = resources.async_profiler_libraries()[platform.machine()].path
    other = tmp_path_factory.mktemp("other") / "libasyncProfiler.so"
    other.write_bytes(shipped.read_bytes())
    attach.execute(jvm.outer.pid, "load", str(other), "true", "start,event=cpu,interval=10ms,timeout=600")
    assert "running" in attach.profiling_status(jvm.outer.pid, str(other))
    run = record([jvm], "--engine", "async-profiler", seconds=1)
    assert run.code == NOTHING, run
    outcome = run.outcome(jvm)
    assert outcome["status"] == "failed" and outcome["remedy"]
    assert attach.profiler_libraries(jvm.outer.pid) == [str(other)]
    assert "running" in attach.profiling_status(jvm.outer.pid, str(other))
    attach.execute(jvm.outer.pid, "load", str(other), "true", "stop")


def _is_refused(run: Run, program: Program, *words: str) -> None:
    assert run.code == NOTHING, run
    outcome = run.outcome(program)
    said = outcome["reason"] + " " + outcome["remedy"]
    assert outcome["status"] == "failed" and outcome["remedy"], outcome
    assert all(word in said for word in words), said
    assert not run.recordings(program)
