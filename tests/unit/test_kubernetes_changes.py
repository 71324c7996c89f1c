"""What is told of pods while they run: their names on nodes, and what becomes of them."""

from __future__ import annotations

import pytest

from hprofiler.kubernetes import KubernetesError
from tests.unit.conftest import Locate
from tests.unit.kubernetes_server import ApiServer, pod, waiting

KILLED = {"reason": "OOMKilled", "exitCode": 137}


def test_by_ssh_processes_are_called_by_their_pods(server: ApiServer, locate: Locate) -> None:
    executor = pod("etl-exec-3", labels={"spark-role": "executor", "spark-exec-id": "3"})
    server.pods = [pod("a", containers=["main", "side"]), pod("b"), executor]
    (host,) = locate(via="ssh").hosts
    names = [labels["process"] for labels in host.containers.values()]
    assert names == ["a/main", "a/side", "b", "executor 3 (etl-exec-3)"]
    server.pods = [pod("a"), pod("a", namespace="other")]
    (host,) = locate(via="ssh", all_namespaces=True).hosts
    assert [labels["process"] for labels in host.containers.values()] == ["default/a", "other/a"]


def test_a_pod_has_one_name_in_a_run(server: ApiServer, locate: Locate) -> None:
    """Whoever runs, waits, comes and goes in which namespace."""
    down = pod("down", namespace="b", states={"main": waiting("ErrImagePull")})
    server.pods = [pod("web", namespace="a"), down]
    found = locate(all_namespaces=True)
    assert [found.hosts[0].name, found.absent[0].host] == ["a/web", "b/down"]
    server.pods = [pod("web", namespace="a")]
    found = locate(all_namespaces=True)
    assert found.hosts[0].name == "web"
    server.pods = [pod("new", namespace="a"), pod("web", namespace="c")]
    lines = [(line.host, line.reason) for line in found.new_processes()]
    assert lines == [
        ("web", "the pod was deleted during the recording"),
        ("new", "new started during the recording and is not in it"),
        ("c/web", "c/web started during the recording and is not in it"),
    ]


def test_by_ssh_what_changes_is_told_of_the_pod(server: ApiServer, locate: Locate) -> None:
    server.pods = [pod("stays"), pod("leaves")]
    found = locate(via="ssh")
    server.pods = [pod("stays")]
    (line,) = found.new_processes()
    assert (line.host, line.label) == ("node1", "leaves")
    assert line.reason == "leaves: the pod was deleted during the recording"


def test_what_changes_meanwhile(server: ApiServer, locate: Locate) -> None:
    old, going, ending = pod("leaving"), pod("going"), pod("ending", states={"main": {"terminated": KILLED}})
    done = {"terminated": {"reason": "Error", "exitCode": 143}}
    told, crash = (
        pod("told", states={"main": done}),
        pod("crash", states={"main": waiting("CrashLoopBackOff")}),
    )
    crash["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"reason": "Error", "exitCode": 3}}
    old["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")
    server.pods = [
        pod("stays"),
        pod("leaves"),
        pod("restarts"),
        pod("crashes"),
        old,
        pod("going"),
        pod("ending"),
        pod("told"),
        pod("crash"),
        pod("db-0"),
    ]
    found = locate()
    other = pod("db-0")
    other["metadata"]["uid"] = "another"
    other["status"]["containerStatuses"][0]["containerID"] = "containerd://" + "e" * 64
    for one in (going, ending, told, crash):
        one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    again = pod("restarts")
    again["status"]["containerStatuses"][0]["containerID"] = "containerd://" + "f" * 64
    crashed = pod("crashes", states={"main": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}})
    server.pods = [pod("stays"), again, crashed, old, going, ending, told, crash, other, pod("comes")]
    deleted = "the pod was deleted during the recording"
    assert [(line.host, line.reason) for line in found.new_processes()] == [
        ("leaves", deleted),
        ("restarts", "the container was restarted during the recording"),
        ("crashes", "the container is restarting: OOMKilled (exit code 137)"),
        ("going", deleted),
        ("ending", f"{deleted}; its container ended with OOMKilled (exit code 137)"),
        ("told", deleted),
        ("crash", f"{deleted}; its container ended with Error (exit code 3)"),
        ("db-0", f"{deleted}, and another pod now has its name"),
        ("comes", "comes started during the recording and is not in it"),
    ]
    server.replies["api/v1/namespaces/default/pods"] = lambda _: (500, {})
    with pytest.raises(KubernetesError, match="answered 500"):
        found.new_processes()
