"""Counters of processes, beside what the kernel says; what this machine lacks is said."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.counters import totals
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.model.metrics import Metrics
from tests.lab import procs
from tests.needed import lacking


def of_kernel(pid: int) -> dict[str, int]:
    """What the kernel counted for the threads so far."""
    found = dict.fromkeys(("task_clock_ns", "context_switches"), 0)
    for task in Path(f"/proc/{pid}/task").iterdir():
        found["task_clock_ns"] += int((task / "schedstat").read_text().split()[0])
        switches = re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())
        found["context_switches"] += sum(map(int, switches))
    return {**found, "page_faults": procs.page_faults(pid)}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the kernel's own events")
def test_software_counters_lie_within_what_the_kernel_says(agent, burn):
    burner = burn(jdk=17, load=0.5)
    pid = burner.outer.pid
    agent.prepare(burner, duration=2, metrics=True, counters=["task-clock"])
    before = of_kernel(pid)
    agent.start()
    metrics = HostMetrics(msgspec.convert(agent.collect().metrics, Metrics))
    after = of_kernel(pid)
    for name in before:
        values = metrics.read("counters", f"{pid}:software", name)
        counted = values[-1] - values[0]
        assert counted <= after[name] - before[name] and (counted or name == "page_faults"), name
    counted = totals(metrics.counters().processes[str(pid)])
    assert {share for _, share in counted.values()} == {1}, "software events are always counted"
    # The process's own clock in the same readings, which has hundredths of a second.
    ticks = [metrics.read("process", str(pid), f"{mode}_ticks") for mode in ("user", "system")]
    used = sum(values[-1] - values[0] for values in ticks) / metrics.facts["ticks_per_second"]
    clock = metrics.read("counters", f"{pid}:software", "task_clock_ns")
    assert clock[-1] > 1e9 * used / 2


def test_what_cannot_be_counted_is_said_once_and_the_rest_goes_on(agent, burn):
    burners = burn(), burn()
    agent.begin(*burners, duration=1, metrics=True, counters=["no-such-event", "task-clock"])
    result = agent.collect()
    said = result.outcomes[None]
    assert said["status"] == "degraded"
    (unknown,) = (note for note in said["notes"] if note["code"] == "event-unknown")
    assert unknown["parameters"] == {"event": "no-such-event"} and "perf list" in unknown["remedy"]
    metrics = HostMetrics(msgspec.convert(result.metrics, Metrics))
    for burner in burners:
        clock = metrics.read("counters", f"{burner.outer.pid}:software", "task_clock_ns")
        assert clock[-1] > clock[0]
    assert all(result.of(burner).is_good() for burner in burners)


def test_counters_need_a_request(agent, burn):
    agent.begin(burn(), duration=0.3, metrics=True)
    assert all(one["of"] != "counters" for one in agent.collect().metrics["series"])


def test_doctor_names_what_the_machine_counts(agent):
    checked = agent.check(counters=["ipc", "no-such-event"])
    about = [one for one in checked["findings"] if one["about"] == "counters"]
    assert about[0]["text"].startswith("counts software (task_clock_ns")
    assert any("no-such-event" in one["text"] and one["remedy"] for one in about)


@pytest.mark.nightly  # on a busy machine perf takes seconds to begin
def test_doctor_compares_with_perf_stat(agent):
    if not shutil.which("perf"):
        lacking("perf is missing")
    texts = [one["text"] for one in agent.check(counters=["ipc"])["findings"]]
    assert any("agrees with perf stat (ours, theirs; per ns): task-clock 1.00" in text for text in texts)
