"""The bound of blocked time beside the truth: a job on a slow network or disk, and the same without."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.lab.yarn import software
from tests.lab.yarn.cluster import OPENED
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

RATE = "12mbit"
DISK_RATE = 6_000_000
"""Bytes a second."""
GROUPS = Path("/sys/fs/cgroup/blkio")
WRITES, READS = "blkio.throttle.write_bps_device", "blkio.throttle.read_bps_device"
MEGABYTES, MAPS, REDUCES = 80, 4, 8
INPUT_MEGABYTES = 64
_DATE = "%Y-%m-%dT%H:%M:%S.%fGMT"
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


@dataclass(frozen=True)
class Job:
    """A Spark job with two executors of one core, in a network namespace of its own."""

    command: list[str]
    folder: Path
    environment: dict[str, str]

    @property
    def log(self) -> Path:
        (log,) = (self.folder / "logs").iterdir()
        return log


def made(folder: Path, prepare: str, job: tuple[object, ...], **settings: str) -> Job:
    """`prepare` is what its shell does before; `job` is a class and its arguments."""
    spark = software.software()
    logs, home = folder / "logs", folder / "home"
    logs.mkdir(parents=True)
    home.mkdir()
    (home / "jars").symlink_to(spark.spark)
    conf = {**_CONF, "spark.eventLog.dir": f"file://{logs}", "spark.local.dir": str(folder)}
    conf |= {name.replace("_", "."): value for name, value in settings.items()}
    java = [
        str(spark.java_home / "bin" / "java"),
        *OPENED,
        *("-Xmx512m", "-cp", f"{spark.jobs}:{spark.spark}/*", "org.apache.spark.deploy.SparkSubmit"),
        *("--master", "local-cluster[2,1,1024]", "--class", str(job[0])),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        str(spark.jobs),
        *map(str, job[1:]),
    ]
    # With packets of 64 KiB, as loopback has them, a limit would be coarse.
    script = f'ip link set lo up mtu 1500 && {prepare} && exec "$@"'
    environment = {
        **os.environ,
        "JAVA_HOME": str(spark.java_home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",
    }
    return Job(["unshare", "--net", "sh", "-c", script, "sh", *java], folder, environment)


def run(folder: Path, prepare: str, **settings: str) -> Ran:
    job = made(folder, prepare, ("SparkShuffle", MEGABYTES, MAPS, REDUCES), **settings)
    done = subprocess.run(
        job.command,
        cwd=job.folder,
        env=job.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return read(job.log)


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
    """What a shell does so that it, and all it becomes, read and write slowly on the disk of `tmp_path`."""
    if os.getuid() != 0 or not (GROUPS / WRITES).exists() or not shutil.which("unshare"):
        lacking("a disk with a limited rate needs root, unshare and the blkio controller of cgroup v1")
    device = tmp_path.stat().st_dev
    group = GROUPS / f"hprofiler-test-{os.getpid()}"
    group.mkdir()
    try:
        for limit in (READS, WRITES):
            (group / limit).write_text(f"{os.major(device)}:{os.minor(device)} {DISK_RATE}")
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


def test_the_bound_of_slow_input(tmp_path: Path, slow_disk: str) -> None:
    """Spark does not time input. A thread that waits for a disk takes no signal, so it has no samples."""
    path = tmp_path / "lines"
    line = "x" * 999 + "\n"
    with path.open("w") as file:
        file.writelines(line for _ in range(INPUT_MEGABYTES * 1000))
        file.flush()
        os.fsync(file.fileno())
    slow, bound = read_once(tmp_path / "slow", slow_disk, path)
    fast = min(read_once(tmp_path / f"fast{number}", "true", path)[0] for number in range(2))
    gain = slow - fast
    print(f"input: {slow:.0f} ms, {fast:.0f} ms; bound {bound / gain - 1:+.1%}")
    assert gain > 0.5 * slow, "the limit was none"
    assert 0.98 * gain <= bound <= 1.1 * gain


def read_once(folder: Path, prepare: str, path: Path) -> tuple[float, float]:
    """How long a job that reads the file took, and the bound that its recording has; milliseconds."""
    forget_content(path)
    job = made(folder, prepare, ("SparkRead", path))
    with subprocess.Popen(
        job.command,
        cwd=folder,
        env=job.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as spark:
        assert spark.stdin is not None and spark.stdout is not None
        said = iter(spark.stdout)
        assert next(said) == "ready\n"
        target = ["-e", "wall", "-j", "spark-executor", "--spark", str(job.log), "-o", str(folder / "run")]
        command = [sys.executable, "-m", "hprofiler", "-t", "120", *target, "--json"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as hprofiler:
            assert hprofiler.stderr is not None and hprofiler.stdout is not None
            assert any("recording" in line for line in hprofiler.stderr), "nothing was recorded"
            spark.stdin.write("\n")
            spark.stdin.flush()
            assert next(said) == "done\n"
            hprofiler.send_signal(signal.SIGINT)
            answer = json.loads(hprofiler.communicate(timeout=120)[0])
        spark.communicate("\n", timeout=60)
    (event,) = answer["events"]
    assert not event["slices"]["recorded_whole"], "one job ran before the recording"
    bounds = event["slices"]["upper_bounds"]
    bound = max((bounds[name]["time"] for name in ("unsampled", "local-disk") if name in bounds), default=0.0)
    return read(job.log).job, bound


def forget_content(path: Path) -> None:
    """Take a file out of the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def assert_bound_holds(resource: str, slow: Ran, fast: Ran) -> None:
    """Never below what is gained, but for the scatter of two runs, and not far above."""
    gain = slow.job - fast.job
    print(f"{resource}: {slow.job:.0f} ms, {fast.job:.0f} ms; bound {slow.bounds[resource] / gain - 1:+.1%}")
    assert gain > 0.5 * slow.job, "the limit was none"
    assert abs(slow.replay_error) < 0.1
    assert 0.98 * gain <= slow.bounds[resource] <= 1.1 * gain
    assert fast.bounds[resource] < 0.5 * fast.job
