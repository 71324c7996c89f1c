"""The bound of blocked time beside the truth: a job on a slow network or disk, and the same without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cache import Unavailable
from tests.lab.yarn import software
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

RATE = "12mbit"
DISK_RATE = 6_000_000
"""Bytes a second."""
GROUPS = Path("/sys/fs/cgroup/blkio")
LIMIT = "blkio.throttle.write_bps_device"
MEGABYTES, MAPS, REDUCES = 80, 4, 8
_DATE = "%Y-%m-%dT%H:%M:%S.%fGMT"
_OPENED = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch")
# Two executors that fetch from each other over loopback, and from their own disk nothing else's.
_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.eventLog.enabled": "true",
    "spark.executor.memory": "900m",
    "spark.locality.wait": "0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.shuffle.compress": "false",
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.ui.enabled": "false",
}


@dataclass(frozen=True)
class Ran:
    """What `hprofiler spark` says, in milliseconds. `job` is the job that counts; the one before it, which
    waits for executors and loads classes, takes a few seconds more or less from run to run."""

    job: float
    replay_error: float
    bounds: dict[str, float]


def run(folder: Path, prepare: str, **settings: str) -> Ran:
    """Run the job in a network namespace of its own. `prepare` is what its shell does before."""
    try:
        made = software.software()
    except Unavailable as why:
        lacking(str(why))
    logs, home = folder / "logs", folder / "home"
    logs.mkdir(parents=True)
    home.mkdir()
    (home / "jars").symlink_to(made.spark)
    conf = {**_CONF, "spark.eventLog.dir": f"file://{logs}", "spark.local.dir": str(folder)}
    conf |= {name.replace("_", "."): value for name, value in settings.items()}
    java = [
        str(made.java_home / "bin" / "java"),
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
        *("-Xmx512m", "-cp", f"{made.jobs}:{made.spark}/*", "org.apache.spark.deploy.SparkSubmit"),
        *("--master", "local-cluster[2,1,1024]", "--class", "SparkShuffle"),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        *(str(made.jobs), str(MEGABYTES), str(MAPS), str(REDUCES)),
    ]
    # With packets of 64 KiB, as loopback has them, a limit would be coarse.
    script = f'ip link set lo up mtu 1500 && {prepare} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, "sh", *java],
        cwd=folder,
        env={
            **os.environ,
            "JAVA_HOME": str(made.java_home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (log,) = logs.iterdir()
    return read(log)


def read(log: Path) -> Ran:
    command = [sys.executable, "-m", "hprofiler", "spark", str(log), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    (job,) = (one for one in answer["jobs"] if one["jobId"] == 1)
    begin, end = (datetime.strptime(job[name], _DATE) for name in ("submissionTime", "completionTime"))
    bounds = {one["name"]: one["upperBound"] for one in answer["blocked"]["resources"]}
    return Ran((end - begin) / timedelta(milliseconds=1), answer["blocked"]["replayError"], bounds)


def test_the_bound_of_a_slow_network(tmp_path: Path) -> None:
    if os.getuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "tc"))):
        lacking("a network namespace with a limited rate needs root, unshare, ip and tc")
    slow = run(tmp_path / "slow", f"tc qdisc add dev lo root tbf rate {RATE} burst 64kb limit 256kb")
    # Other work on this machine makes only these longer: who waits for the network needs no processor.
    fast = min((run(tmp_path / f"fast{number}", "true") for number in range(3)), key=lambda one: one.job)
    assert_bound_holds("network", slow, fast)
    assert slow.bounds["disk"] >= slow.bounds["network"]


@pytest.fixture
def slow_disk(tmp_path: Path) -> Iterator[str]:
    """What a shell does so that it, and all it becomes, write slowly to the disk of `tmp_path`."""
    if os.getuid() != 0 or not (GROUPS / LIMIT).exists() or not shutil.which("unshare"):
        lacking("a disk with a limited rate needs root, unshare and the blkio controller of cgroup v1")
    device = tmp_path.stat().st_dev
    group = GROUPS / f"hprofiler-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / LIMIT).write_text(f"{os.major(device)}:{os.minor(device)} {DISK_RATE}")
        yield f"echo $$ > {group}/cgroup.procs"
    finally:
        group.rmdir()


def test_the_bound_of_a_slow_disk(tmp_path: Path, slow_disk: str) -> None:
    """Map outputs go to the disk at once: else the kernel writes them later, and nobody waits."""
    at_once = {"spark_shuffle_sync": "true"}
    slow = run(tmp_path / "slow", slow_disk, **at_once)
    fast = min((run(tmp_path / f"fast{n}", "true", **at_once) for n in range(3)), key=lambda one: one.job)
    assert_bound_holds("disk", slow, fast)
    assert slow.bounds["network"] < 0.1 * slow.job


def assert_bound_holds(resource: str, slow: Ran, fast: Ran) -> None:
    """Never below what is gained, but for the scatter of two runs, and not far above."""
    gain = slow.job - fast.job
    print(f"{resource}: {slow.job:.0f} ms, {fast.job:.0f} ms; bound {slow.bounds[resource] / gain - 1:+.1%}")
    assert gain > 0.5 * slow.job, "the limit was none"
    assert abs(slow.replay_error) < 0.1
    assert 0.98 * gain <= slow.bounds[resource] <= 1.1 * gain
    assert fast.bounds[resource] < 0.5 * fast.job
