"""From a command that names pods to all of them being sampled by exec; listing many pods."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.commands import COMMAND, BenchError, seconds_until_recording
from tests.bench.table import Row
from tests.lab import cache
from tests.lab.cache import Unavailable
from tests.lab.k8s import pods
from tests.lab.k8s.cluster import KubeCluster, make_lab
from tests.lab.k8s.software import software

ROUNDS = 5
PODS = 10
PRETENDED = 200
RESOLVE = """
import time
from hprofiler.resolve import KubernetesOptions, TargetOptions, resolve
for _ in range({rounds}):
    begin = time.monotonic()
    kubernetes = KubernetesOptions({options})
    hosts = resolve(TargetOptions(pods=("spark-role=executor",), kubernetes=kubernetes)).hosts
    print(len(hosts), time.monotonic() - begin)
"""


def rows() -> list[Row]:
    sampling = f"from the command to all sampling, {PODS} pods on 2 nodes by exec"
    try:
        with _cluster() as cluster:
            return [_until_sampling(cluster, sampling), _resolving(cluster)]
    except Unavailable as why:
        return [Row(sampling, f"not measured: {why}", "under 4 s", None)]


@contextmanager
def _cluster() -> Iterator[KubeCluster]:
    made = software()
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-bench-"))
    cluster = KubeCluster(make_lab(folder, made, tied=True), made)
    try:
        cluster.lab.up()
        yield cluster.up()
    finally:
        cluster.down()
        shutil.rmtree(folder, ignore_errors=True)


def _until_sampling(cluster: KubeCluster, what: str) -> Row:
    """From the command's start until each pod records; the burners leave the machine alone."""
    names = [f"pod{number}" for number in range(PODS)]
    idle = pods.burner(load=0.005)
    for number, name in enumerate(names):
        node = cluster.nodes[number % len(cluster.nodes)].name
        cluster.create(pods.pod(name, pods.container(idle), node=node, labels={"bench": "pods"}))
    cluster.wait_until_running(*names)
    argv = cluster.lab.coordinator([*COMMAND, "-t", "1", "-j", "k8s:bench=pods"])
    times = [seconds_until_recording(argv, _environment(cluster), PODS) for _ in range(ROUNDS)]
    cluster.remove(*names)
    seconds = statistics.median(times)
    return Row(what, f"{seconds:.2f} s (median of {ROUNDS})", "under 4 s", seconds < 4)


def _resolving(cluster: KubeCluster) -> Row:
    """In one process, as a run resolves: the time to load Python's modules is in the first line above."""
    pods.pretend(cluster.api, PRETENDED)
    words = [sys.executable, "-c", RESOLVE.format(rounds=ROUNDS, options='namespace="pretended"')]
    done = subprocess.run(
        cluster.lab.coordinator(words), env=_environment(cluster), capture_output=True, text=True, check=True
    )
    found = [line.split() for line in done.stdout.splitlines()]
    if any(int(count) != PRETENDED for count, _ in found):
        raise BenchError(f"not all pods were found: {found}")
    seconds = statistics.median(float(one) for _, one in found)
    measured = f"{seconds:.2f} s (median of {ROUNDS})"
    return Row(f"resolving {PRETENDED} pods", measured, "under 2 s", seconds < 2)


def _environment(cluster: KubeCluster) -> dict[str, str]:
    own = {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(cache.CHECKOUT)}
    return {**os.environ, **own, "HOME": str(cluster.lab.home())}
