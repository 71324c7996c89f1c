"""Counters of processes, beside those of `perf stat`; what this machine lacks is said."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.counters import totals
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.model.metrics import Metrics
from tests.needed import lacking

EVENTS = {
    "task-clock": "task_clock_ns",
    "context-switches": "context_switches",
    "page-faults": "page_faults",
}


SECONDS = 4


def of_kernel(pid: int) -> dict[str, int]:
    """What the kernel counted for the threads so far."""
    found = dict.fromkeys(("task_clock_ns", "context_switches"), 0)
    for task in Path(f"/proc/{pid}/task").iterdir():
        found["task_clock_ns"] += int((task / "schedstat").read_text().split()[0])
        switches = re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())
        found["context_switches"] += sum(map(int, switches))
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the kernel's own events")
def test_software_counters_lie_within_what_the_kernel_says(agent, burn):
    burner = burn(jdk=17, load=0.5)
    pid = burner.outer.pid
    agent.prepare(burner, duration=3, metrics=True, counters=["task-clock"])
    before = of_kernel(pid)
    agent.start()
    metrics = HostMetrics(msgspec.convert(agent.collect().metrics, Metrics))
    after = of_kernel(pid)
    for name in before:
        values = metrics.read("counters", f"{pid}:software", name)
        assert 0 < values[-1] - values[0] <= after[name] - before[name], name
    # The process's own clock in the same readings, which has hundredths of a second.
    ticks = [metrics.read("process", str(pid), f"{mode}_ticks") for mode in ("user", "system")]
    used = sum(values[-1] - values[0] for values in ticks) / metrics.facts["ticks_per_second"]
    clock = metrics.read("counters", f"{pid}:software", "task_clock_ns")
    assert clock[-1] > 1e9 * used / 2


@pytest.mark.nightly  # on a busy machine perf takes seconds to begin
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the kernel's own events")
def test_software_counters_are_those_of_perf_stat(agent, burn):
    if not shutil.which("perf"):
        lacking("perf is missing")
    burner = burn(jdk=17, load=0.5)
    pid = str(burner.outer.pid)
    agent.begin(burner, duration=SECONDS + 3, metrics=True, counters=["task-clock"])
    command = ["perf", "stat", "-x", ",", "-e", ",".join(EVENTS), "-p", pid, "--timeout", f"{SECONDS}000"]
    launched = time.time()
    peer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    ended = time.time()
    metrics = HostMetrics(msgspec.convert(agent.collect().metrics, Metrics))
    counters = metrics.counters()
    assert counters is not None
    found = totals(counters.processes[pid])
    lines = [line.split(",") for line in peer.stderr.splitlines()]
    theirs = {line[2]: float(line[0]) for line in lines if len(line) > 4}
    assert theirs.keys() == EVENTS.keys(), peer.stderr
    theirs["task-clock"] *= 1e6  # milliseconds
    # Readings while perf counted, whenever it began.
    during = [ended - SECONDS <= when <= launched + SECONDS for when in metrics.times]
    for event, name in EVENTS.items():
        ours, counted = found[name]
        assert counted == 1, "software events are always counted"
        values = metrics.read("counters", f"{pid}:software", name)
        inside = [value for value, taken in zip(values, during, strict=True) if taken]
        assert len(inside) > 1
        assert inside[-1] - inside[0] <= theirs[event] <= ours, event
    assert theirs["task-clock"] > 1e8 and theirs["context-switches"] > 10


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


@pytest.mark.nightly  # see above
def test_doctor_compares_with_perf_stat(agent):
    if not shutil.which("perf"):
        lacking("perf is missing")
    texts = [one["text"] for one in agent.check(counters=["ipc"])["findings"]]
    assert any("agrees with perf stat (ours, theirs; per ns): task-clock 1.00" in text for text in texts)
