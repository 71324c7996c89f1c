"""Pods of a real Kubernetes: their JVMs by exec and by SSH, what stands in the way, what is left behind."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hprofiler import Profile
from tests.lab import hosts
from tests.lab.cache import Unavailable
from tests.lab.coordinator import Coordinator, Result, Running
from tests.lab.k8s import images, pods, spark
from tests.lab.k8s.api import Object
from tests.lab.k8s.cluster import SERVER_PORT, KubeCluster, make_lab
from tests.lab.k8s.cutting import cut
from tests.lab.k8s.in_a_pod import as_in_a_pod
from tests.lab.k8s.inside import Left, burn_a_while, first_process
from tests.lab.k8s.results import (
    check_all_that_was_asked,
    check_shares,
    documented_rules,
    ledger,
    profile_of,
    readmes_recipe,
    recorded,
    resource,
    stacks_of,
)
from tests.lab.k8s.software import software
from tests.lab.k8s.watching import Folder
from tests.lab.procs import wait_for
from tests.needed import lacking

pytestmark = pytest.mark.timeout(2400)  # the first time Kubernetes is built

SHAPES = "k8s:fleet=shapes"
ROOT = ["--user", "root"]

Profiling = Callable[..., Result]
Starting = Callable[..., Running]
Shapes = dict[str, Object]


TO_LOOK, TO_EXEC, *FURTHER = documented_rules()


@pytest.fixture(scope="module")
def kube(workshop: Path) -> Iterator[KubeCluster]:
    """A control plane, and two nodes that run pods."""
    reason = hosts.why_not()
    if reason:
        lacking(reason)
    try:
        made, job = software(), spark.software()
    except Unavailable as why:
        lacking(str(why))
    cluster = KubeCluster(make_lab(workshop / "k8s", made, tied=True, show=job.show()), made)
    cluster.lab.up()
    try:
        yield cluster.up()
    finally:
        cluster.down()


@pytest.fixture(scope="module")
def coordinator(kube: KubeCluster, workshop: Path) -> Coordinator:
    folder = workshop / "k8s-runs"
    folder.mkdir()
    return Coordinator(kube.lab, folder)


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
    """The kubeconfig of an account that may do what the documentation says, and nothing else."""
    return kube.account("allowed", [TO_LOOK, TO_EXEC, *FURTHER])


@pytest.fixture(scope="module")
def shapes(kube: KubeCluster) -> Iterator[Shapes]:
    """A pod of each shape on host1, one on host2, and some that do not run."""
    running, idle = pods.fleet("host1", "host2", {"fleet": "shapes"})
    kube.create(*running.values(), *idle)
    kube.wait_until_running(*running)
    kube.wait_until_waiting("crashing", "CrashLoopBackOff")
    kube.wait_until_waiting("bare", "ErrImageNeverPull")
    yield running
    kube.remove(*running, *(manifest["metadata"]["name"] for manifest in idle))


@pytest.fixture(scope="module")
def before(kube: KubeCluster, shapes: Shapes) -> Iterator[Left]:
    """What was in the containers before anything was profiled; at the end of all there is nothing else."""
    left = Left(kube, shapes)
    yield left
    left.check()
    check_all_that_was_asked(kube)


@pytest.fixture(scope="module")
def by_exec(hprofiler: Profiling, before: object) -> Result:
    return hprofiler("-f", "300", "-t", "8", "-j", SHAPES)


@pytest.fixture(scope="module")
def by_ssh(hprofiler: Profiling, by_exec: Result) -> Result:
    return hprofiler("-f", "300", "-t", "8", "-j", SHAPES, "--via", "ssh", *ROOT)


# One pod, as an account that may do what the documentation says


def test_a_pod(kube: KubeCluster, hprofiler: Profiling, allowed: Path) -> None:
    """Its shares and labels; and nothing stays in its container."""
    labels = {"app": "alone"}
    kube.create(pods.pod("alone", pods.container(pods.burner("alpha", 0.8)), labels=labels))
    kube.wait_until_running("alone")
    before = Left(kube, ["alone"])
    result = hprofiler("-f", "300", "-t", "6", "-j", "k8s:app=alone", kubeconfig=allowed)
    assert result.code == 0, str(result)
    assert result.run["target"] == {"kind": "kubernetes", "name": "k8s:app=alone"}
    ((container, process),) = recorded(result).items()
    assert process["labels"]["namespace"] == "default" and process["labels"]["app"] == "alone"
    check_shares(stacks_of(result, container), "alpha")
    before.check()
    kube.remove("alone")


# Pods of every shape


@pytest.mark.nightly
@pytest.mark.parametrize(
    "container",
    [f"{name}/main" for name in ("plain", "hardened", "two", "tini", "shell", "host-network")] + ["two/side"],
)
def test_every_shape_by_exec(by_exec: Result, container: str) -> None:
    assert container in recorded(by_exec), str(by_exec)


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["by_exec", "by_ssh"])
def test_the_hot_methods(request: pytest.FixtureRequest, way: str) -> None:
    result: Result = request.getfixturevalue(way)
    check_shares(stacks_of(result, "plain/main"), "alpha")
    check_shares(stacks_of(result, "elsewhere/main"), "gamma")


@pytest.mark.nightly
def test_the_two_ways_see_the_same(by_exec: Result, by_ssh: Result) -> None:
    seen = set(recorded(by_exec))
    assert seen <= set(recorded(by_ssh)) and len(seen) > 6
    # Pod by pod: how the machine shares its processors among them is another matter each time.
    for container in ("plain/main", "elsewhere/main"):
        one, other = stacks_of(by_exec, container), stacks_of(by_ssh, container)
        for method in ("Burner.hotAlpha", "Burner.hotGamma", "Burner.warm", "Burner.cool"):
            assert abs(one.share(method) - other.share(method)) < one.tolerance() + other.tolerance(), method


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["by_exec", "by_ssh"])
def test_labels(request: pytest.FixtureRequest, way: str) -> None:
    result: Result = request.getfixturevalue(way)
    found = recorded(result)
    for name, node in (("plain/main", "host1"), ("two/side", "host1"), ("elsewhere/main", "host2")):
        labels = found[name]["labels"]
        assert (labels["namespace"], labels["node"]) == ("default", node)
        assert labels.items() <= Profile.read(str(profile_of(result, name))).labels.items()
    assert result.run["target"] == {"kind": "kubernetes", "name": SHAPES}


@pytest.mark.nightly
def test_every_shape_by_ssh(by_ssh: Result, shapes: Shapes) -> None:
    """From the node those too can be recorded that cannot be entered, if there is a place for the library."""
    expected = {f"{name}/main" for name in shapes if name != "sealed"} | {"two/side"}
    assert set(recorded(by_ssh)) == expected, str(by_ssh)
    assert "writable folder" in ledger(by_ssh)["host1"]


@pytest.mark.nightly
def test_why_some_were_not_recorded(by_exec: Result) -> None:
    said = ledger(by_exec)
    assert "no sh" in said["shell-less"] and "--debug-container" in said["shell-less"]
    assert "failed" in said["sealed"] and "writable" in said["sealed"]
    # Waiting, unless it was just tried again and ended before it could be entered.
    assert re.search("exit code 3|^failed: ", said["crashing"], re.MULTILINE), said["crashing"]
    assert "Unschedulable" in said["pending"]
    assert "ErrImageNeverPull" in said["bare"]
    assert by_exec.code == 3, str(by_exec)


@pytest.mark.nightly
def test_nothing_is_left_in_any_container(
    kube: KubeCluster, shapes: Shapes, before: Left, by_ssh: Result
) -> None:
    """After both ways; what the JVMs themselves made may stay."""
    assert by_ssh.folder is not None
    before.check()


@pytest.mark.nightly
def test_a_pod_by_its_name_and_one_of_its_containers(hprofiler: Profiling, shapes: Shapes) -> None:
    result = hprofiler("-t", "2", "-e", "wall", "-j", "k8s:pod/two", "--container", "side")
    assert result.code == 0, str(result)
    assert set(recorded(result)) == {"two/side"}


@pytest.mark.nightly
def test_a_deployment(kube: KubeCluster, hprofiler: Profiling, allowed: Path) -> None:
    """Its own pods, and not one that has the same labels."""
    labels = {"app": "spread"}
    one = pods.pod("", pods.container(pods.burner("beta", 0.2)), labels=labels)
    kube.create(pods.pod("stray", pods.container(pods.burner("beta", 0.2)), labels=labels))
    spread = pods.deployment("spread", 2, one)
    kube.create(spread)

    def names() -> list[str]:
        listed = kube.api.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dspread")["items"]
        return [pod["metadata"]["name"] for pod in listed if pod["metadata"]["name"] != "stray"]

    wait_for("two pods of a deployment", lambda: len(names()) == 2, 60)
    kube.wait_until_running("stray", *names())
    result = hprofiler("-t", "3", "-j", "k8s:deployment/spread", kubeconfig=allowed)
    assert result.code == 0, str(result)
    sets = {(kube.pod(name) or {})["metadata"]["ownerReferences"][0]["name"] for name in names()}
    listed = hprofiler("ps", "-j", f"k8s:replicaset/{sets.pop()}", kubeconfig=allowed)
    assert "2 processes in 2 of 2 containers" in listed.err and not sets, str(listed)
    assert {name.rpartition("/")[0] for name in recorded(result)} == set(names())
    assert {process["labels"]["app"] for process in recorded(result).values()} == {"spread"}
    assert len({process["labels"]["node"] for process in recorded(result).values()}) == 2
    kube.drop(spread)
    kube.remove("stray")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["shell-less", "strict"])
def test_a_debug_container(
    kube: KubeCluster, hprofiler: Profiling, allowed: Path, shapes: Shapes, name: str
) -> None:
    """An image without a shell is profiled from beside it."""
    words = ["-t", "3", "-j", f"k8s:pod/{name}", "--debug-container", images.JVM]
    result = hprofiler(*words, kubeconfig=allowed)
    assert result.code == 0, str(result)
    assert stacks_of(result, f"{name}/main").count("Burner.hotAlpha") > 0
    (beside,) = (kube.pod(name) or {})["spec"]["ephemeralContainers"]
    assert beside["targetContainerName"] == "main"

    def ended() -> bool:
        statuses = (kube.pod(name) or {})["status"]["ephemeralContainerStatuses"]
        return all("terminated" in status["state"] for status in statuses)

    wait_for("an end of the debug container", ended, 60)


# What may be done, and what was done


@pytest.mark.nightly
def test_an_account_that_may_only_look(kube: KubeCluster, hprofiler: Profiling, shapes: Shapes) -> None:
    reader = kube.account("reader", [TO_LOOK])
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
    """It has no kubeconfig, but the files and variables that each pod has."""
    done = as_in_a_pod(kube, coordinator, allowed, "ps", "-j", "k8s:pod/plain")
    assert done.returncode == 0 and "Burner" in done.stdout, done.stderr


@pytest.mark.nightly
def test_nothing_is_asked_for_but_to_get_list_and_exec(
    kube: KubeCluster, hprofiler: Profiling, shapes: Shapes
) -> None:
    """The role in the documentation is enough, and all that is used."""
    result = hprofiler("-t", "2", "-j", SHAPES, kubeconfig=kube.account("profiler", [TO_LOOK, TO_EXEC]))
    assert "plain/main" in recorded(result), str(result)
    events = kube.audit("system:serviceaccount:default:profiler")
    done = {(event["verb"], "/".join(resource(event))) for event in events}
    assert done == {("list", "pods"), ("get", "pods/exec")}
    refused = [event for event in events if event["responseStatus"]["code"] >= 400]
    # That one is tried again now and then, and has ended when it is entered.
    assert not [event for event in refused if event["objectRef"].get("name") != "crashing"]


# What changes under way


@pytest.mark.nightly
def test_pods_that_are_deleted_or_begin_anew_during_the_recording(
    kube: KubeCluster, start: Starting, shapes: Shapes
) -> None:
    labels = {"fleet": "doomed"}
    for name, node in (("deleted", "host1"), ("crashed", "host1"), ("spared", "host2")):
        one = pods.container(pods.burner("gamma", 0.3))
        kube.create(pods.pod(name, one, node=node, labels=labels))
    kube.wait_until_running("deleted", "crashed", "spared")
    running = start("-t", "20", "-f", "300", "-j", "k8s:fleet=doomed")
    running.wait_until_recording(3)
    os.kill(first_process(kube, "crashed"), signal.SIGKILL)
    kube.remove("deleted")
    wait_for("a kubelet that has seen the end of crashed", lambda: kube.restarted("crashed"), 60)
    result = running.result(timeout=240)
    assert result.code == 3, str(result)
    what = {
        "deleted": "was deleted during",
        "crashed": "was restarted during|has ended|is restarting",
    }
    for name, why in what.items():
        assert re.match(f"failed: the (pod|container) ({why})", ledger(result)[name]), str(result)
        # Once beside the progress, which knows only that the agent ended.
        told = [line for line in result.err.splitlines() if re.match(rf" +{name}\b", line)]
        assert len(told) == 1 and re.search(why, told[0]), str(result)
    check_shares(stacks_of(result, "spared/main"), "gamma")
    kube.remove("crashed", "spared")


@pytest.mark.nightly
def test_a_connection_that_breaks_loses_nothing(kube: KubeCluster, start: Starting, before: Left) -> None:
    """The agent lives on in the container for a lease, and another one that is sent there fetches it all."""
    running = start("-t", "200", "-f", "300", "-j", "k8s:pod/plain")
    running.wait_until_recording(1)
    burn_a_while(kube, "plain")
    assert cut(running.process.pid, SERVER_PORT)
    result = running.result(timeout=240)
    (line,) = result.outcomes("plain", "degraded")
    assert "the connection was lost; the recording was fetched" in line["reason"], str(result)
    check_shares(stacks_of(result, "plain/main"), "alpha")
    before.check()


@pytest.mark.nightly
def test_a_pod_that_is_deleted_under_ssh_keeps_what_was_sampled(kube: KubeCluster, start: Starting) -> None:
    """It ends by itself when it is told to, and the engine with it writes what it has."""
    one = pods.container(pods.burner("gamma", 0.5))
    kube.create(pods.pod("brief", one, node="host1", terminationGracePeriodSeconds=60))
    kube.wait_until_running("brief")
    running = start("-t", "200", "-f", "300", "-j", "k8s:pod/brief", "--via", "ssh", *ROOT)
    running.wait_until_recording(1)
    burn_a_while(kube, "brief")
    kube.api.delete("/api/v1/namespaces/default/pods/brief")
    result = running.result(timeout=240)
    assert stacks_of(result, "brief/main").count("Burner.hotGamma") > 0, str(result)
    assert "deleted during the recording" in ledger(result)["host1"], str(result)


@pytest.mark.nightly
def test_an_interrupt_while_the_agent_is_sent(kube: KubeCluster, start: Starting, shapes: Shapes) -> None:
    """The image has no rm by which what had arrived could be deleted."""
    (java,) = (one for one in kube.processes("shell", "main") if "java" in one.command.partition(" ")[0])
    for _ in range(10):  # it is there for a part of a second only
        with Folder(f"/proc/{java.pid}/root/tmp") as folder:
            running = start("-t", "1", "-j", "k8s:pod/shell")
            if folder.wait_for(".hprofiler-once-*", 200_000, running.process.poll):
                running.signal(signal.SIGINT)
            result = running.result(timeout=240)
            wait_for("an end of what was sent", lambda: not folder.sizes(".hprofiler-once-*"), 60)
        if result.folder and "push" in [line["stage"] for line in result.outcomes("shell", "failed")]:
            break
    else:
        pytest.fail(f"it was never interrupted while it sent: {result}")
    assert result.code == 130, str(result)


@pytest.mark.nightly
def test_a_spark_job_by_its_label(kube: KubeCluster, hprofiler: Profiling) -> None:
    app = spark.Application(kube, spark.software()).submit("cpu", "600", "2")
    try:
        result = hprofiler(*readmes_recipe("burn-cpu", "default"))
        assert result.code == 0, str(result)
        found = list(recorded(result).values())
        assert sorted(process["labels"]["executor"] for process in found) == ["1", "2"]
        assert sorted(process["label"] for process in found) == ["executor 1", "executor 2"]
        stacks = result.stacks("cluster/cpu")
        hot, cool = stacks.count("SparkBurn.hotCpu"), stacks.count("SparkBurn.coolCpu")
        assert hot + cool > 20 and abs(hot / (hot + cool) - 0.75) < 5 * (0.19 / (hot + cool)) ** 0.5 + 0.03
        listed = hprofiler("ps", "-j", "k8s:spark-app-name=burn-cpu")
        assert listed.code == 0 and "driver" in listed.out, str(listed)
    finally:
        app.kill()
