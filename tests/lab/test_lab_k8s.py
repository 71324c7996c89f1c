"""Pods of a real Kubernetes: their JVMs by exec and by SSH, obstacles, leftovers."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hprofiler import Profile
from hprofiler.runfolder import RunFolder
from tests.burners import burner
from tests.burners.burner import HOT
from tests.contract.agent_driver import near
from tests.lab import cache, hosts
from tests.lab.coordinator import COMMAND, Coordinator, Result, Running
from tests.lab.folded import Stacks
from tests.lab.k8s import images, pods
from tests.lab.k8s.cluster import PODS, SERVER_PORT, KubeCluster, make_lab
from tests.lab.k8s.pods import Object
from tests.lab.k8s.settings import API_ADDRESS
from tests.lab.k8s.software import software
from tests.lab.procs import cpu_seconds, wait_for
from tests.lab.yarn.software import pyspark
from tests.needed import lacking

pytestmark = pytest.mark.timeout(2400)  # the first run builds Kubernetes

SHAPES = "k8s:fleet=shapes"
BURNERS = Path(burner.__file__).parent
ROOT = ["--user", "root"]
PART = 9.0
"""Seconds that may be missing at the end of a pod, on a busy machine."""

Profiling = Callable[..., Result]
Starting = Callable[..., Running]
Shapes = dict[str, Object]


def documented_rules() -> list[Object]:
    """The documented role: to list pods, to exec, for workloads, for --debug-container."""
    text = (cache.CHECKOUT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    rules: list[Object] = yaml.safe_load(block)["rules"]
    return rules


TO_LIST, TO_EXEC, *FURTHER = documented_rules()


@pytest.fixture(scope="module")
def kube(workshop: Path) -> Iterator[KubeCluster]:
    """A control plane, and two nodes that run pods."""
    hosts.require()
    made = software()
    cluster = KubeCluster(make_lab(workshop / "k8s", made, tied=True), made)
    cluster.lab.up()
    try:
        yield cluster.up()
    finally:
        cluster.down()


@pytest.fixture(scope="module")
def coordinator(kube: KubeCluster, workshop: Path) -> Coordinator:
    return Coordinator(kube.lab, workshop / "k8s-runs")


@pytest.fixture(scope="module")
def start(kube: KubeCluster, coordinator: Coordinator) -> Starting:
    """Starts hprofiler, as the cluster's administrator or with another kubeconfig."""

    def run(*words: str, kubeconfig: Path = kube.kubeconfig) -> Running:
        return coordinator.start(*words, environment={"KUBECONFIG": str(kubeconfig)})

    return run


@pytest.fixture(scope="module")
def hprofiler(start: Starting) -> Profiling:
    """Runs hprofiler to its end."""
    return lambda *words, **options: start(*words, **options).result(timeout=240)


@pytest.fixture(scope="module")
def allowed(kube: KubeCluster) -> Path:
    """The kubeconfig of an account with only the documented rights."""
    return kube.account("allowed", [TO_LIST, TO_EXEC, *FURTHER])


@pytest.fixture(scope="module")
def shapes(kube: KubeCluster) -> Iterator[Shapes]:
    """A pod of each kind on host1, one on host2, and some that do not run. Checks that nothing is left."""
    running, idle = pods.shapes("host1", "host2", {"fleet": "shapes"})
    kube.create(*running.values(), *idle)
    kube.wait_until_running(*running)
    kube.wait_until_waiting("crashing", "CrashLoopBackOff")
    kube.wait_until_waiting("bare", "ErrImageNeverPull")
    contents = Contents(kube, *running)
    yield running
    contents.check()
    kube.remove(*running, *(manifest["metadata"]["name"] for manifest in idle))


@pytest.fixture(scope="module")
def by_exec(hprofiler: Profiling, shapes: Shapes) -> Result:
    return hprofiler("-f", "300", "-t", "8", "-j", SHAPES)


@pytest.fixture(scope="module")
def by_ssh(hprofiler: Profiling, by_exec: Result) -> Result:
    return hprofiler("-f", "300", "-t", "8", "-j", SHAPES, "--via", "ssh", *ROOT)


class Contents:
    """Processes and files in the containers of some pods, seen from outside."""

    LARGE = ("proc", "sys", "burner", "opt")
    """Folders in a container's root in which nothing can be left, or which are read-only."""
    OF_THE_JVM = re.compile(r"/tmp(/\.java_pid\d+|/hsperfdata_\w+(/\d+)?)?|/dev/termination-log")
    """What a JVM or the kubelet may have put into a container."""

    def __init__(self, kube: KubeCluster, *names: str) -> None:
        self._kube = kube
        self._containers = [(name, container) for name in names for container in kube.containers(name)]
        self._processes = self._all_processes()
        self._files = {one: set(self._walk(one)) for one in self._containers}

    def check(self) -> None:
        """Checks that there is nothing new."""
        wait_for("the processes of before", lambda: self._all_processes() == self._processes, 60)
        for one in self._containers:
            new = {path for path in self._walk(one) if not self.OF_THE_JVM.fullmatch(path)} - self._files[one]
            assert not new, (one, new)

    def _all_processes(self) -> list[set[tuple[int, str]]]:
        found = (self._kube.processes(*one) for one in self._containers)
        return [{(seen.pid, seen.command) for seen in there} for there in found]

    def _walk(self, one: tuple[str, str]) -> Iterator[str]:
        root = f"/proc/{min(seen.pid for seen in self._kube.processes(*one))}/root"
        for parent, folders, names in os.walk(f"{root}/"):
            inner = parent[len(root) :].rstrip("/")
            if not inner:
                folders[:] = [name for name in folders if name not in self.LARGE]
            yield from (f"{inner}/{name}" for name in folders + names)


def recorded(result: Result) -> dict[str, dict[str, Any]]:
    """The recorded processes, by pod and container."""
    found = [recording["process"] for host in result.run["hosts"] for recording in host["recordings"]]
    return {f"{one['labels']['pod']}/{one['labels']['container']}": one for one in found}


def outcomes(result: Result) -> dict[str, str]:
    """The outcomes of each host, by name."""
    said: dict[str, str] = {}
    for line in (line for host in result.run["hosts"] for line in host["outcomes"]):
        text = f"{line['status']}: {line['reason']}; {line['remedy']}\n"
        said[line["host"]] = said.get(line["host"], "") + text
    return said


def stacks_of(result: Result, container: str) -> Stacks:
    """The stacks of one process's profile, which has the process's labels."""
    assert result.folder is not None
    process = recorded(result)[container]
    path = RunFolder.open(result.folder).profile_path(process["host"], process["pid"], "cpu")
    profile = Profile.read(str(path))
    assert process["labels"].items() <= profile.labels.items()
    return Stacks(profile.to_folded().decode())


def check_shares(stacks: Stacks, role: str) -> None:
    """Seventy, twenty and ten percent of the burner's work."""
    counts = [stacks.count(method) for method in (HOT[role], "Burner.warm", "Burner.cool")]
    total = sum(counts)
    assert total > 10, counts
    assert all(
        near(count / total, share, total) for count, share in zip(counts, (0.7, 0.2, 0.1), strict=True)
    )


def first_process(kube: KubeCluster, name: str) -> int:
    """The pid on this machine of a pod's container main."""
    (found,) = (seen.pid for seen in kube.processes(name, "main") if seen.inner_pid == 1)
    return found


def burn_a_while(kube: KubeCluster, name: str) -> None:
    """Wait until part of a pod's work is recorded."""
    java = first_process(kube, name)
    begun = cpu_seconds(java)
    wait_for("CPU time", lambda: cpu_seconds(java) > begun + 0.3, 120)


# One pod, with the documented rights


def test_a_pod_by_exec(kube: KubeCluster, hprofiler: Profiling, allowed: Path, tmp_path: Path) -> None:
    """Its shares, labels and threads are right, and nothing stays in its container."""
    kube.create(pods.pod("alone", pods.container(pods.burner("alpha", 0.8)), labels={"app": "alone"}))
    kube.wait_until_running("alone")
    contents = Contents(kube, "alone")
    result = hprofiler("-f", "300", "-t", "4", "-j", "k8s:app=alone", kubeconfig=allowed)
    assert result.code == 0, str(result)
    assert result.run["target"] == {"kind": "kubernetes", "name": "k8s:app=alone"}
    ((container, process),) = recorded(result).items()
    assert process["labels"]["namespace"] == "default" and process["labels"]["app"] == "alone"
    check_shares(stacks_of(result, container), "alpha")
    folder = tmp_path / "dump"
    dumped = hprofiler("dump", "-j", "k8s:app=alone", "-o", str(folder), kubeconfig=allowed)
    (text,) = folder.rglob("*.txt")
    assert dumped.code == 0 and "Burner" in text.read_text(), str(dumped)
    contents.check()
    kube.remove("alone")


# Pods of every kind


@pytest.mark.nightly
def test_every_shape_by_exec(by_exec: Result) -> None:
    names = ("plain", "hardened", "two", "shell", "host-network", "elsewhere")
    assert set(recorded(by_exec)) == {*(f"{name}/main" for name in names), "two/side"}, str(by_exec)
    check_shares(stacks_of(by_exec, "plain/main"), "alpha")
    said = outcomes(by_exec)
    assert "no sh" in said["shell-less"] and "--debug-container" in said["shell-less"]
    assert "failed" in said["sealed"] and "writable" in said["sealed"]
    # it waits, or was restarted and ended before it could be entered
    assert re.search("exit code 3|^failed: ", said["crashing"], re.MULTILINE), said["crashing"]
    assert "Unschedulable" in said["pending"] and "ErrImageNeverPull" in said["bare"]
    assert by_exec.code == 3, str(by_exec)


@pytest.mark.nightly
def test_every_shape_by_ssh(by_ssh: Result, shapes: Shapes) -> None:
    """Over the node also pods that exec cannot enter, if there is a folder for the library."""
    expected = {f"{name}/main" for name in shapes if name != "sealed"} | {"two/side"}
    assert set(recorded(by_ssh)) == expected, str(by_ssh)
    assert "writable folder" in outcomes(by_ssh)["host1"]
    check_shares(stacks_of(by_ssh, "plain/main"), "alpha")
    check_shares(stacks_of(by_ssh, "elsewhere/main"), "gamma")
    for name, node in (("plain/main", "host1"), ("two/side", "host1"), ("elsewhere/main", "host2")):
        labels = recorded(by_ssh)[name]["labels"]
        assert (labels["namespace"], labels["node"]) == ("default", node)


@pytest.mark.nightly
def test_a_deployment(kube: KubeCluster, hprofiler: Profiling, allowed: Path) -> None:
    """The pods that its label selector names, as for `kubectl logs`."""
    template = pods.pod("spread", pods.container(pods.burner("beta", 0.2)), labels={"app": "spread"})
    kube.create(pods.deployment("spread", 2, template))

    def names() -> set[str]:
        listed = kube.ask("GET", f"{PODS}?labelSelector=app%3Dspread") or {}
        return {pod["metadata"]["name"] for pod in listed["items"]}

    wait_for("two pods of a deployment", lambda: len(names()) == 2, 60)
    kube.wait_until_running(*names())
    result = hprofiler("-t", "3", "-j", "k8s:deployment/spread", kubeconfig=allowed)
    assert result.code == 0, str(result)
    assert {name.rpartition("/")[0] for name in recorded(result)} == names()
    kube.remove("spread", kind="Deployment")


@pytest.mark.nightly
def test_every_pod_of_a_job_by_exec(kube: KubeCluster, start: Starting, allowed: Path) -> None:
    """Six, two at a time, that end by themselves, and the agent with them: almost all was sent before."""
    one = pods.pod("batch", pods.container(pods.burner("alpha", 0.4, extra=["--seconds", "30"])))
    running = start("-f", "300", "-t", "job:9m", "--wait", "2m", "-j", "k8s:job/batch", kubeconfig=allowed)
    kube.create(pods.job("batch", 6, 2, one))
    result = running.result(timeout=600)
    found = recorded(result)
    assert result.folder is not None and len(found) == 6 and result.code == 0, str(result)
    for pod, process in found.items():
        name = pod.partition("/")[0]
        ended = kube.statuses(name)[0]["state"]["terminated"]["finishedAt"]
        path = RunFolder(result.folder).times_path(process["host"], process["pid"], "cpu")
        times = Profile.open(path, "compact").times
        assert times is not None
        unrecorded = datetime.fromisoformat(ended).timestamp() + 1 - times.end / 1e6
        print(f"{name}: {unrecorded:.1f} s before its end are missing")
        assert unrecorded < PART, str(result)
    kube.remove("batch", kind="Job")


@pytest.mark.nightly
def test_a_debug_container(kube: KubeCluster, hprofiler: Profiling, allowed: Path, shapes: Shapes) -> None:
    """A container without a shell is profiled from a debug container, in a strict cluster."""
    words = ["-t", "3", "-j", "k8s:pod/strict", "--debug-container", images.JVM]
    result = hprofiler(*words, kubeconfig=allowed)
    assert result.code == 0, str(result)
    assert stacks_of(result, "strict/main").count("Burner.hotAlpha") > 0

    def ended() -> bool:
        found = (kube.pod("strict") or {})["status"]["ephemeralContainerStatuses"]
        return all("terminated" in status["state"] for status in found)

    wait_for("an end of the debug container", ended, 60)


@pytest.mark.nightly
def test_spark_executors_by_readmes_recipe(kube: KubeCluster, hprofiler: Profiling) -> None:
    text = (cache.CHECKOUT / "README.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^hprofiler (.* -j k8s:spark-role.*) -n analytics -o etl$", text, re.M)
    executors = pods.spark_executors("etl", 2)
    names = [one["metadata"]["name"] for one in executors]
    kube.create(*executors)
    kube.wait_until_running(*names)
    result = hprofiler(*recipe.split())
    assert result.code == 0, str(result)
    assert sorted(process["label"] for process in recorded(result).values()) == ["executor 1", "executor 2"]
    kube.remove(*names)


@pytest.mark.nightly
def test_a_spark_pod_brings_its_python_workers_along(kube: KubeCluster, hprofiler: Profiling) -> None:
    if sys.base_prefix == "/usr":
        lacking("this interpreter cannot be copied into the pod: it is the system's")
    assert kube.lab.shared is not None
    for name, source in (("pyspark", pyspark()), ("python", Path(sys.base_prefix)), ("burners", BURNERS)):
        shutil.copytree(source, kube.lab.shared / name, symlinks=True)
    output = kube.lab.shared / "output"
    kube.create(pods.pyspark("etl-driver", kube.lab.shared))
    kube.wait_until_running("etl-driver")
    wait_for("work of the job", lambda: output.exists() and "counters" in output.read_text(), 120)
    result = hprofiler("-t", "15", "-j", "k8s:spark-role=driver")
    assert result.code == 0, str(result)
    (host,) = result.run["hosts"]
    engines = [(one["engine"], one["process"]) for one in host["recordings"]]
    (jvm,) = (process for engine, process in engines if engine == "async-profiler")
    workers = [process for engine, process in engines if engine == "pyspy"]
    assert len(engines) > len(workers) > 0, str(result)
    for worker in workers:
        assert worker["label"].endswith(f" of {jvm['label']}"), worker
        assert worker["labels"]["parent"] == str(jvm["pid"]), worker
        assert worker["labels"]["container"] == "main", worker
    assert result.folder is not None
    profile = Profile.read(str(result.folder / "cluster" / "cpu.pb.gz"))
    hot, warm = (
        sum(path.values[0] for path in profile.paths() if f"{work} (pyspark_shares.py)" in path.frames)
        for work in ("hot", "warm")
    )
    assert near(hot / (hot + warm), 0.6, hot + warm) and hot + warm > 200, str(result)
    kube.remove("etl-driver")


# Rights


@pytest.mark.nightly
def test_an_account_that_may_only_list(kube: KubeCluster, hprofiler: Profiling, shapes: Shapes) -> None:
    reader = kube.account("reader", [TO_LIST])
    result = hprofiler("-t", "1", "-j", "k8s:pod/plain", kubeconfig=reader)
    assert result.code == 4, str(result)
    for word in ("pods/exec", "default", "--via ssh"):
        assert word in result.said, result.said
    result = hprofiler("-t", "2", "-j", "k8s:pod/plain", "--via", "ssh", *ROOT, kubeconfig=reader)
    assert result.code == 0 and set(recorded(result)) == {"plain/main"}, str(result)


@pytest.mark.nightly
def test_the_account_of_the_pod_that_hprofiler_runs_in(
    kube: KubeCluster, coordinator: Coordinator, allowed: Path, shapes: Shapes
) -> None:
    """It has no kubeconfig, only the files and variables of every pod."""
    place, folder = "/run/secrets/kubernetes.io/serviceaccount", coordinator.new_folder()
    token = yaml.safe_load(allowed.read_text())["users"][0]["user"]["token"]
    for name, content in (("token", token), ("namespace", "default"), ("ca.crt", kube.authority.decode())):
        (folder / name).write_text(content)
    mount = f'mount -t tmpfs lab /run && mkdir -p {place} && cp "$0"/* {place} && exec "$@"'
    variables = {"KUBERNETES_SERVICE_HOST": API_ADDRESS, "KUBERNETES_SERVICE_PORT": "443"}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(cache.CHECKOUT),
        **variables,
    }
    words = ["sh", "-c", mount, str(folder), *COMMAND, "ps", "-j", "k8s:pod/plain"]
    command = kube.lab.coordinator(words)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Burner" in done.stdout, done.stderr


@pytest.mark.nightly
def test_no_request_but_list_and_exec(kube: KubeCluster, hprofiler: Profiling, shapes: Shapes) -> None:
    """The first two lines of the documented role are enough."""
    result = hprofiler("-t", "2", "-j", SHAPES, kubeconfig=kube.account("profiler", [TO_LIST, TO_EXEC]))
    assert "plain/main" in recorded(result), str(result)
    account = "system:serviceaccount:default:profiler"
    events = [event for event in kube.audit() if event["user"].get("username") == account]
    about = [(event, event.get("objectRef", {})) for event in events]
    done = {(event["verb"], target.get("resource"), target.get("subresource")) for event, target in about}
    assert done == {("list", "pods", None), ("get", "pods", "exec")}
    refused = {target.get("name") for event, target in about if event["responseStatus"]["code"] >= 400}
    assert refused <= {"crashing"}, "it is tried again now and then, and has ended when it is entered"


# Changes during a recording


@pytest.mark.nightly
def test_pods_that_are_deleted_or_restarted_during_the_recording(
    kube: KubeCluster, start: Starting, shapes: Shapes
) -> None:
    for name, node in (("deleted", "host1"), ("crashed", "host1"), ("spared", "host2")):
        one = pods.container(pods.burner("gamma", 0.3))
        kube.create(pods.pod(name, one, node=node, labels={"fleet": "doomed"}))
    kube.wait_until_running("deleted", "crashed", "spared")
    running = start("-t", "20", "-f", "300", "-j", "k8s:fleet=doomed")
    running.wait_until_recording(3)
    os.kill(first_process(kube, "crashed"), signal.SIGKILL)
    kube.remove("deleted")

    def restarted() -> bool:
        return any(one["restartCount"] or "running" not in one["state"] for one in kube.statuses("crashed"))

    wait_for("a kubelet that has seen the end of crashed", restarted, 60)
    result = running.result(timeout=240)
    assert result.code == 3, str(result)
    reasons = {"deleted": "was deleted during", "crashed": "was restarted during|has ended|is restarting"}
    for name, why in reasons.items():
        assert re.match(f"failed: the (pod|container) ({why})", outcomes(result)[name]), str(result)
    check_shares(stacks_of(result, "spared/main"), "gamma")
    kube.remove("crashed", "spared")


@pytest.mark.nightly
def test_a_connection_that_breaks_loses_nothing(kube: KubeCluster, start: Starting, shapes: Shapes) -> None:
    """The agent stays in the container for a lease, and another one fetches the recording."""
    running = start("-t", "200", "-f", "300", "-j", "k8s:pod/plain")
    running.wait_until_recording(1)
    burn_a_while(kube, "plain")
    assert cut_connections(running.process.pid, SERVER_PORT)
    result = running.result(timeout=240)
    (line,) = result.outcomes("plain", "degraded")
    assert "the connection was lost; the recording was fetched" in line["reason"], str(result)
    check_shares(stacks_of(result, "plain/main"), "alpha")


def cut_connections(pid: int, port: int) -> int:
    """Shut down every TCP connection of a process to a port, like a broken network; returns their number."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    handle, cut = os.pidfd_open(pid), 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            if os.readlink(entry) in sockets:
                pidfd_getfd = 438  # the same number on all machines
                copied = ctypes.CDLL(None).syscall(pidfd_getfd, handle, int(entry.name), 0)
                with socket.socket(fileno=copied) as connection:
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
    os.close(handle)
    return cut


@pytest.mark.nightly
def test_a_pod_that_is_deleted_under_ssh_keeps_what_was_sampled(kube: KubeCluster, start: Starting) -> None:
    """It ends by SIGTERM, and the engine writes what it has sampled."""
    one = pods.container(pods.burner("gamma", 0.5))
    kube.create(pods.pod("brief", one, node="host1", terminationGracePeriodSeconds=60))
    kube.wait_until_running("brief")
    running = start("-t", "job:200", "-f", "300", "-j", "k8s:pod/brief", "--via", "ssh", *ROOT)
    running.wait_until_recording(1)
    burn_a_while(kube, "brief")
    kube.ask("DELETE", f"{PODS}/brief")
    result = running.result(timeout=240)
    assert stacks_of(result, "brief/main").count("Burner.hotGamma") > 0, str(result)
    assert "deleted during the recording" in outcomes(result)["host1"], str(result)
