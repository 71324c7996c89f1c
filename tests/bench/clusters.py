"""Runs over hosts of the lab, a YARN application and pods: how long they take beside the sampling."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hprofiler.kubernetes import Access
from hprofiler.resolve import KubernetesOptions, TargetOptions, YarnOptions, resolve
from tests.bench.commands import COMMAND, BenchError, Measured, measure, median_of, running
from tests.bench.table import Row, under
from tests.burners.burner import Burner
from tests.lab.cache import Unavailable
from tests.lab.coordinator import Coordinator
from tests.lab.hosts import Lab, Plan, default_plans
from tests.lab.k8s import cluster as k8s
from tests.lab.k8s import pods
from tests.lab.k8s.software import software as k8s_software
from tests.lab.yarn import cluster as yarn
from tests.lab.yarn import stages
from tests.lab.yarn.software import software as yarn_software
from tests.unit import kubernetes_server
from tests.unit.yarn_server import APP, Server, application_paths, container, executor, spark_paths

SECONDS = 3
ROUNDS = 3
MARK = "bench-job"
ROOT = ["--user", "root"]


def start_up() -> list[Row]:
    """`hprofiler --help`, beside the interpreter doing nothing."""
    rounds = 21
    helped = median_of(rounds, lambda: measure([*COMMAND, "--help"]).seconds)
    nothing = median_of(rounds, lambda: measure([sys.executable, "-c", "pass"]).seconds)
    measured = f"{1000 * helped:.0f} ms ({helped / nothing:.1f} × `python -c pass`, median of {rounds})"
    return [Row("`hprofiler --help`", measured, "under 150 ms", helped < 0.150)]


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _hosts(plans: Sequence[Plan], load: float, *options: str) -> Iterator[Lab]:
    """A lab with a JVM on each host but the first."""
    with _folder() as folder, ExitStack() as stack:
        lab = Lab(folder, plans, tied=True)
        stack.callback(lab.down)
        lab.up()

        def burner(name: str) -> Burner:
            wrap = lambda argv: lab.hosts[name].command(argv, "yarn")  # noqa: E731
            return Burner(wrap=wrap, load=load, options=options, extra=[MARK])

        with ThreadPoolExecutor(4) as pool:
            for made in pool.map(burner, list(lab.hosts)[1:]):
                stack.callback(made.kill)
        yield lab


def _on(lab: Lab, count: int, *words: str) -> Measured:
    """A command for the job on so many hosts."""
    where = ["-j", MARK, "-h", ",".join(list(lab.hosts)[1 : count + 1]), *ROOT]
    return measure(lab.coordinator([*COMMAND, *words, *where]), {"HOME": str(lab.home())})


def _run(lab: Lab, count: int) -> Measured:
    return _on(lab, count, "-f", "99", "-t", str(SECONDS))


def three_hosts() -> list[Row]:
    with _hosts(default_plans(3), 0.2) as lab:
        _run(lab, 3)  # the first run pushes the agent
        extra = median_of(ROUNDS, lambda: _run(lab, 3).seconds - SECONDS)
        asked = median_of(ROUNDS, lambda: _on(lab, 3, "doctor", "-e", "cpu,alloc,lock,wall").seconds)
    return [
        under(2, "beyond the sampling time, 3 hosts, second run", extra, f"(median of {ROUNDS})"),
        under(3, "`hprofiler doctor`, 3 hosts", asked, f"(median of {ROUNDS})"),
    ]


def fifty_hosts() -> list[Row]:
    """Time for fifty hosts, memory for five, twenty-five and fifty; they share the coordinator's network."""
    plans = [Plan(f"n{n:02}", f"127.0.1.{n}", 2222, "coord") for n in range(1, 51)]
    small = ["-Xmx24m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with _hosts([Plan("coord", "10.77.0.10"), *plans], 0.01, *small) as lab:
        _run(lab, 50)
        turns = [{count: _run(lab, count) for count in (5, 25, 50)} for _ in range(ROUNDS)]
    extra = {n: statistics.median(turn[n].seconds for turn in turns) - SECONDS for n in turns[0]}
    peak = {n: statistics.median(turn[n].peak_bytes for turn in turns) / 2**20 for n in turns[0]}
    growth = peak[50] / peak[5]
    memory = f"{peak[5]:.0f} / {peak[25]:.0f} / {peak[50]:.0f} MiB ({growth:.2f} ×)"
    others = f"(25 hosts: {extra[25]:.2f} s, 5 hosts: {extra[5]:.2f} s)"
    promised = "flat (50 hosts under 1.5 × 5 hosts)"
    return [
        under(10, "beyond the sampling time, 50 hosts, second run", extra[50], others),
        Row("coordinator's peak memory, 5 / 25 / 50 hosts", memory, promised, growth < 1.5),
    ]


def _until_all_record(lab: Lab, places: int, words: Sequence[str], environment: dict[str, str]) -> float:
    argv = lab.coordinator([*COMMAND, "-t", "1", *words])
    with running(argv, {**environment, "HOME": str(lab.home())}) as run:
        seconds = run.wait_until_recording(places)
        run.process.wait(60)
        return seconds


# YARN


def on_yarn() -> list[Row]:
    """A Spark job whose three executors sleep; resolving 1,000 containers on 500 nodes."""
    rows = [_resolving_containers()]
    what = "from the command to all sampling, YARN application"
    try:
        with _yarn() as (cluster, coordinator):
            app = cluster.spark("idle", "3600", "3")
            app.wait_until_busy(3)
            words = ["-j", app.id, "-c", yarn.RESOURCE_MANAGER, *ROOT]
            first = coordinator.run("-t", "1", *words)  # pushes the agent
            nodes = len(first.run["hosts"])  # on a busy machine YARN may place all executors on two of three
            seconds = median_of(ROUNDS, lambda: _until_all_record(cluster.lab, nodes, words, {}))
    except Unavailable as why:
        return [*rows, Row(what, f"not measured: {why}", "under 3 s", None)]
    return [*rows, under(3, what, seconds, f"(median of {ROUNDS}, {nodes} nodes)")]


@contextmanager
def _yarn() -> Iterator[tuple[yarn.YarnCluster, Coordinator]]:
    """A cluster of three nodes. Raises Unavailable."""
    made = yarn_software()
    with _folder() as folder, ExitStack() as stack:
        lab = yarn.make_lab(folder, made, tied=True)
        stack.callback(lab.down)
        yield yarn.YarnCluster(lab.up(), made).up(), Coordinator(lab, folder / "runs")


def spark_stages() -> list[Row]:
    """A Spark job on three nodes with stages one after the other, and two at the same time."""
    try:
        with _yarn() as (cluster, coordinator):
            turns, both = (_divided(cluster, coordinator, how) for how in ("turns", "together"))
    except Unavailable as why:
        return [Row("samples of Spark stages at the same time", f"not measured: {why}", "80 % certain", None)]
    tasks = f"Spark stages at the same time, tasks of {stages.TASK_MILLISECONDS} ms on 3 nodes"
    each = (turns, both)
    enough = all(one.right > stages.LEAST for one in each)
    certain, wrong, ratio = (
        f"{of(both)} (one after the other: {of(turns)})"
        for of in (
            lambda one: f"{100 * one.certain_share:.1f} % of {one.certain + one.likely + one.several:,}",
            lambda one: f"{one.wrong:,} of {one.right + one.wrong:,}",
            lambda one: f"{one.cpu_ratio:.3f}",
        )
    )
    return [
        Row(
            f"certain samples of {tasks}",
            certain,
            "80 %",
            enough and all(one.certain_share >= 0.8 for one in each),
        ),
        Row(
            f"certain samples in the wrong of {tasks}",
            wrong,
            "under 2 %",
            enough and all(one.wrong_share < 0.02 for one in each),
        ),
        Row(
            f"sampled CPU time ÷ Spark's own of {tasks}",
            ratio,
            "0.9 to 1.1",
            all(0.9 <= one.cpu_ratio <= 1.1 for one in each),
        ),
    ]


def _divided(cluster: yarn.YarnCluster, coordinator: Coordinator, how: str) -> stages.Divided:
    app = cluster.stages(how)
    try:
        app.wait_until_busy(3)
        words = ["-f", "300", "-t", "20", "-j", app.id, "-c", yarn.RESOURCE_MANAGER, *ROOT, "--json"]
        return stages.divided(coordinator.run(*words))
    finally:
        app.kill()


def _resolving_containers() -> Row:
    listed = [container(n, f"n{n % 500}.example") for n in range(1, 1001)]
    executors = [executor(str(n), n, f"n{n % 500}.example", tasks=1) for n in range(1, 1001)]
    with Server({**application_paths(listed), **spark_paths(executors, [1])}) as server:
        options = TargetOptions(application=APP, yarn=YarnOptions(server.url))
        seconds = median_of(ROUNDS, lambda: _resolve(options, 500))
        requests = len(server.asked) / ROUNDS
    measured = f"{seconds:.2f} s, {requests:g} requests (median of {ROUNDS})"
    holds = seconds < 2 and requests <= 5
    return Row("resolving 1,000 containers on 500 nodes", measured, "under 2 s, 5 requests", holds)


def _resolve(options: TargetOptions, hosts: int) -> float:
    begin = time.monotonic()
    found = len(resolve(options).hosts)
    if found != hosts:
        raise BenchError(f"{found} hosts were found, not {hosts}")
    return time.monotonic() - begin


# Kubernetes


def on_kubernetes() -> list[Row]:
    """Ten idle pods on two nodes, by exec; resolving 200 pods."""
    rows, count = [_resolving_pods()], 10
    what = f"from the command to all sampling, {count} pods on 2 nodes by exec"
    try:
        made = k8s_software()
    except Unavailable as why:
        return [*rows, Row(what, f"not measured: {why}", "under 4 s", None)]
    with _folder() as folder, ExitStack() as stack:
        cluster = k8s.KubeCluster(k8s.make_lab(folder, made, tied=True), made)
        stack.callback(cluster.down)
        cluster.lab.up()
        cluster.up()
        names = [f"pod{number}" for number in range(count)]
        for number, name in enumerate(names):
            idle, node = pods.container(pods.burner(load=0.005)), cluster.nodes[number % 2].name
            cluster.create(pods.pod(name, idle, node=node, labels={"bench": "pods"}))
        cluster.wait_until_running(*names)
        own = {"KUBECONFIG": str(cluster.kubeconfig)}
        act = lambda: _until_all_record(cluster.lab, count, ["-j", "k8s:bench=pods"], own)  # noqa: E731
        seconds = median_of(5, act)
    return [*rows, under(4, what, seconds, "(median of 5)")]


def _resolving_pods() -> Row:
    labels = {"spark-role": "executor", "spark-app-selector": "spark-0123456789abcdef"}
    with kubernetes_server.serving() as server, _folder() as folder:
        made = [
            kubernetes_server.pod(f"etl-exec-{n}", labels={**labels, "spark-exec-id": str(n)})
            for n in range(200)
        ]
        server.pods = made
        access = KubernetesOptions(access=Access(server.kubeconfig(folder)))
        options = TargetOptions(pods=("spark-role=executor",), kubernetes=access)
        seconds = median_of(5, lambda: _resolve(options, 200))
    return under(2, "resolving 200 pods", seconds, "(median of 5)")
