"""From a command that names an application to all of it being sampled; resolving a very large application."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hprofiler.resolve import TargetOptions, YarnOptions, resolve
from tests.bench.commands import COMMAND, seconds_until_recording
from tests.bench.table import Row
from tests.lab.yarn.cluster import RESOURCE_MANAGER, Application, YarnCluster, make_lab
from tests.lab.yarn.software import Unavailable, software
from tests.unit.yarn_server import APP, Server, application_paths, container, executor, spark_paths

ROUNDS = 3
MOST_REQUESTS = 5


def rows() -> list[Row]:
    return [_resolving(), _until_sampling()]


def _resolving() -> Row:
    """1,000 containers on 500 nodes, from a server in this process."""
    listed = [container(n, f"n{n % 500}.example") for n in range(1, 1001)]
    executors = [executor(str(n), n, f"n{n % 500}.example", tasks=1) for n in range(1, 1001)]
    with Server({**application_paths(listed), **spark_paths(executors, [1])}) as server:
        options = TargetOptions(application=APP, yarn=YarnOptions(server.url))
        times = [_timed(options) for _ in range(ROUNDS)]
        requests = len(server.asked) / ROUNDS
    seconds = statistics.median(times)
    measured = f"{seconds:.2f} s, {requests:g} requests (median of {ROUNDS})"
    holds = seconds < 2 and requests <= MOST_REQUESTS
    promised = f"under 2 s, {MOST_REQUESTS} requests"
    return Row("resolving 1,000 containers on 500 nodes", measured, promised, holds)


def _until_sampling() -> Row:
    """The second run and later, on three nodes: from the command's start until every host records."""
    what = "from the command to all sampling, YARN application on 3 nodes"
    try:
        with _application() as app:
            _until_all_record(app)  # the first run pushes the agent
            times = [_until_all_record(app) for _ in range(ROUNDS)]
    except Unavailable as why:
        return Row(what, f"not measured: {why}", "under 3 s", None)
    seconds = statistics.median(times)
    return Row(what, f"{seconds:.2f} s (median of {ROUNDS})", "under 3 s", seconds < 3)


@contextmanager
def _application() -> Iterator[Application]:
    """A Spark job with three executors that sleep, so that it does not compete with what is measured."""
    made = software()
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-bench-"))
    lab = make_lab(folder, made, tied=True)
    try:
        lab.up()
        app = YarnCluster(lab, made).up().spark("idle", "3600", "3")
        app.wait_until_busy(3)
        yield app
    finally:
        lab.down()
        shutil.rmtree(folder, ignore_errors=True)


def _until_all_record(app: Application) -> float:
    lab = app.cluster.lab
    words = ["-t", "1", "-j", app.id, "-c", RESOURCE_MANAGER, "--user", "root"]
    argv = lab.coordinator([*COMMAND, *words])
    return seconds_until_recording(argv, {"HOME": str(lab.home())}, len(app.cluster.nodes))


def _timed(options: TargetOptions) -> float:
    begin = time.monotonic()
    resolve(options)
    return time.monotonic() - begin
