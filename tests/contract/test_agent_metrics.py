"""Metrics of the host, a process, its control group and a JVM, beside what the kernel and the JDK say."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.machines import host_figures, host_findings
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.model.metrics import Metrics
from tests.contract.agent_driver import Event
from tests.lab import jdks
from tests.lab.procs import wait_for

Readings = dict[str, int]


def readings(event: Event, of: str, id: str, name: str) -> list[int]:
    """The numbers as they were read."""
    (series,) = (one for one in event["series"] if (one["of"], one["id"], one["name"]) == (of, id, name))
    return [*accumulate(series["values"])]


def of_kernel(pid: int) -> Readings:
    """Counters as the kernel has them now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    (cpu,) = re.findall(r"^cpu +(.*)", Path("/proc/stat").read_text(), re.MULTILINE)
    modes = [int(word) for word in cpu.split()]
    switches = re.findall(r"^ctxt (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
    faults = re.findall(r"^pgmajfault (\d+)", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return {
        "process/user_ticks": int(fields[11]),
        "process/system_ticks": int(fields[12]),
        "host/user_ticks": modes[0],
        "host/system_ticks": modes[2],
        "host/context_switches": int(switches[0]),
        "host/major_faults": int(faults[0]),
    }


def of_jdk(pid: int) -> Readings:
    """What the JVM publishes now, by the JDK's own tool; times in microseconds."""
    tool = jdks.home(17) / "bin" / "jcmd"
    done = subprocess.run([tool, str(pid), "PerfCounter.print"], capture_output=True, text=True, check=True)
    said = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    ticks = int(said["sun.os.hrt.frequency"])
    return {
        "gc": sum(
            1_000_000 * int(value) // ticks
            for name, value in said.items()
            if re.fullmatch(r"sun\.gc\.collector\.\d+\.time", name)
        ),
        "jit": 1_000_000 * int(said["java.ci.totalTime"]) // ticks,
        "safepoints": int(said["sun.rt.safepoints"]),
    }


def test_readings_lie_between_those_of_the_kernel_and_of_the_jdk(agent, burn):
    burner = burn(jdk=17, role="alloc")
    pid = burner.outer.pid
    agent.prepare(burner, duration=2, metrics=True)
    published, kernel = of_jdk(pid), of_kernel(pid)
    agent.start()
    event = agent.collect().metrics
    kernel_after, published_after = of_kernel(pid), of_jdk(pid)
    assert len(event["time"]) >= 2 and event["facts"]["cpus"] >= os.cpu_count()
    for name, before in kernel.items():
        of, _, metric = name.partition("/")
        found = readings(event, of, str(pid) if of == "process" else "", metric)
        assert before <= found[0] <= found[-1] <= kernel_after[name], name
    names = [one["name"] for one in event["series"] if one["of"] == "jvm"]
    collectors = [readings(event, "jvm", str(pid), one) for one in names if one.startswith("gc_")]
    first, last = (sum(one[place] for one in collectors) for place in (0, -1))
    # Each collector's time is a whole number of microseconds.
    assert published["gc"] <= first <= last <= published_after["gc"]
    assert last > first, "it collects all the time"
    for name, series in (("jit", "jit_us"), ("safepoints", "safepoints")):
        found = readings(event, "jvm", str(pid), series)
        assert published[name] <= found[0] <= found[-1] <= published_after[name], name
    eden = readings(event, "jvm", str(pid), "capacity_eden")
    assert eden[0] > 0


def waits(pid: int) -> int:
    """Nanoseconds for which the threads that it has waited for a CPU."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[1]) for thread in threads)


def test_two_that_share_one_cpu_wait_for_it(agent, burn):
    pinned = [burn(prefix=["taskset", "-c", "0"]) for _ in range(2)]
    pid = pinned[0].outer.pid
    agent.prepare(*pinned, duration=2, metrics=True)
    before = waits(pid)
    agent.start()
    event = agent.collect().metrics
    found = readings(event, "process", str(pid), "run_queue_ns")
    assert 0 < found[-1] - found[0] <= waits(pid) - before
    metrics = HostMetrics(msgspec.convert(event, Metrics))
    share = metrics.mean(metrics.column("process", str(pid), "run_queue").values)
    assert share > 30, "each gets half of the CPU at most"


def test_the_series_of_a_process_that_ends_ends(agent, burn):
    short, long = burn(), burn()
    agent.begin(short, long, duration=2, metrics=True)
    short.outer.kill()
    event = agent.collect().metrics
    metrics = HostMetrics(msgspec.convert(event, Metrics))
    assert metrics.read("process", str(short.outer.pid), "threads")[-1] is None
    assert metrics.read("process", str(long.outer.pid), "threads")[-1] > 1


def test_nothing_is_read_that_was_not_asked_for(agent, burn):
    agent.begin(burn(), duration=0.3)
    assert agent.collect().metrics is None


@contextmanager
def throttled_group(share: float) -> Iterator[Path]:
    """A control group that may use so much of one CPU."""
    for mount in ("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"):
        group = Path(mount) / f"hprofiler-metrics-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            break
    else:
        pytest.skip("no control group can be made")
    try:
        old, new = group / "cpu.cfs_quota_us", group / "cpu.max"
        if old.exists():
            old.write_text(str(int(100_000 * share)))
        elif new.exists():
            new.write_text(f"{int(100_000 * share)} 100000")
        else:
            pytest.skip("no control group can be made that limits CPU time")
        yield group
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it has ended
                (group.parent / "cgroup.procs").write_text(pid)
        wait_for("an empty group", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a control group")
def test_a_process_at_its_cpu_limit_is_named(agent, burn):
    with throttled_group(0.2) as group:
        burner = burn()
        (group / "cgroup.procs").write_text(str(burner.outer.pid))
        agent.begin(burner, duration=3, metrics=True)
        metrics = HostMetrics(msgspec.convert(agent.collect().metrics, Metrics))
        found = {one.code: one for one in host_findings("n1", host_figures(metrics), metrics.facts)}
        assert found["cpu-throttled"].parameters["id"] == f"/{group.name}"
        cpu = metrics.mean(metrics.column("process", str(burner.outer.pid), "cpu").values)
        assert cpu == pytest.approx(20, abs=5)


def test_a_watch_has_what_was_read_since_it_was_last_asked(agent, burn):
    """Nothing is recorded. Each answer has the reading before, so that it has rates."""
    (found,) = agent.found(burn(jdk=17, load=1.0))
    pid = str(found["pid"])
    agent.send("watch", processes=[{key: found[key] for key in ("pid", "start_time")}])
    before = agent.expect("metrics")["time"]
    asked, rates = 0.0, []
    while len(rates) < 2:
        agent.send("watch")
        metrics = HostMetrics(msgspec.convert(agent.expect("metrics"), Metrics))
        rates += metrics.column("process", pid, "cpu").values[1:]
        if metrics.times:  # its thread may not have begun yet
            assert metrics.times[0] >= asked
            asked = metrics.times[-1]
    assert len(before) <= 1 and max(rates) > 1  # % of one CPU, also on a very busy machine
    assert metrics.column("jvm", pid, "heap_used").values[-1]
