"""Metrics beside what sysstat and the JDK's jstat say of the same seconds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hprofiler.analysis.metrics import HostMetrics
from hprofiler.model.metrics import Metrics
from tests.lab import jdks
from tests.needed import lacking

pytestmark = pytest.mark.nightly

SECONDS = 10
WRITTEN = 256 << 20


@pytest.fixture(autouse=True)
def sysstat() -> None:
    if not shutil.which("pidstat"):
        lacking("sysstat is missing")


def begun(*words: str) -> subprocess.Popen[str]:
    """One report of `SECONDS`."""
    command = [*words, str(SECONDS), "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"})


def said(peer: subprocess.Popen[str]) -> str:
    out, _ = peer.communicate(timeout=SECONDS + 60)
    return out


def averages(text: str) -> list[dict[str, str]]:
    """Tables of averages that pidstat prints, one process each."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("Average:")]
    return [dict(zip(head, row, strict=True)) for head, row in zip(lines[::2], lines[1::2], strict=True)]


def statistics(text: str) -> dict[str, Any]:
    (found,) = json.loads(text)["sysstat"]["hosts"][0]["statistics"]
    return dict(found)


def jstat(pid: int) -> float:
    """Seconds for which the JVM collected so far."""
    done = subprocess.run([jdks.home(17) / "bin" / "jstat", "-gc", str(pid)], capture_output=True, text=True)
    head, row = (line.split() for line in done.stdout.splitlines())
    return float(dict(zip(head, row, strict=True))["GCT"])


def disk_of(folder: Path) -> str:
    """The whole disk that the folder is on."""
    number = os.stat(folder).st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not place.exists():
        pytest.skip("the disk here has no block device of its own")
    name = place.resolve().name
    return name if Path("/sys/block", name).exists() else place.resolve().parent.name


def write(path: Path) -> None:
    """Past the page cache, so that it is written at once."""
    words = ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={WRITTEN >> 20}", "oflag=direct"]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


def test_cpu_memory_bytes_and_gc_time_are_those_of_the_peers(agent, burn, tmp_path):
    burner = burn(jdk=17, role="alloc", load=0.5)
    pid, disk = burner.outer.pid, disk_of(tmp_path)
    agent.prepare(burner, duration=SECONDS, metrics=True)
    collected = jstat(pid)
    agent.start()
    of_cpus = begun("mpstat", "-o", "JSON")
    of_process = begun("pidstat", "-u", "-r", "-p", str(pid))
    of_disk = begun("iostat", "-o", "JSON", "-d", "-k", "-y", disk)
    write(tmp_path / "written")
    event = agent.collect().metrics
    collected_after = jstat(pid)
    metrics = HostMetrics(msgspec.convert(event, Metrics))

    cpu, memory = averages(said(of_process))
    ours = metrics.mean(metrics.column("process", str(pid), "cpu").values)
    assert ours == pytest.approx(float(cpu["%CPU"]), abs=2)
    assert metrics.read("process", str(pid), "memory")[-1] == pytest.approx(
        1024 * int(memory["RSS"]), rel=0.02
    )

    (cpus,) = statistics(said(of_cpus))["cpu-load"]
    for name, theirs in (("user", "usr"), ("system", "sys"), ("idle", "idle"), ("steal", "steal")):
        ours = metrics.mean(metrics.column("host", "", f"cpu_{name}").values)
        assert ours == pytest.approx(cpus[theirs], abs=2), name

    (device,) = statistics(said(of_disk))["disk"]
    assert device["kB_wrtn"] * 1024 >= WRITTEN
    assert total(metrics.read("disk", disk, "written_bytes")) == pytest.approx(
        1024 * device["kB_wrtn"], rel=0.02
    )

    names = [one["name"] for one in event["series"] if one["of"] == "jvm" and one["name"].startswith("gc_")]
    first, last = (
        sum(metrics.read("jvm", str(pid), name)[place] for name in names) / 1e6 for place in (0, -1)
    )
    # jstat rounds to milliseconds.
    assert collected - 0.001 <= first < last <= collected_after + 0.001


def total(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return known[-1] - known[0]
