"""From pods to hosts: queries, target containers, owners of pods, changes during the recording."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

import pytest

from hprofiler.base.errors import NotYet, UsageError
from hprofiler.kubernetes import KubernetesError
from hprofiler.model import Status
from hprofiler.resolve.host_names import HostEntry
from hprofiler.resolve.kubernetes.asked import Asked, parse
from hprofiler.resolve.kubernetes.listing import label_selector
from tests.unit.conftest import Locate
from tests.unit.kubernetes_server import ApiServer, pod, status, waiting


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("app=etl,tier!=web", Asked(None, "", "app=etl,tier!=web")),
        (" app in (a, b) ", Asked(None, "", "app in (a, b)")),
        ("pod/a-1", Asked("pod", "a-1", "")),
        ("deploy/web", Asked("deployment", "web", "")),
    ],
)
def test_targets_with_the_prefix(typed: str, meant: Asked) -> None:
    assert parse(typed) == meant


@pytest.mark.parametrize(
    "typed", ["pod/", "pod/A", "pod/../secrets", "pod/a b", "pod/a/b", "node/x", "service/x"]
)
def test_bad_targets(typed: str) -> None:
    with pytest.raises(UsageError):
        parse(typed)


ASKED = [
    ("app=x", {"labelSelector": ["app=x"]}),
    ("", {}),
    ("pod/a-1", {"fieldSelector": ["metadata.name=a-1"]}),
    ("job/nightly", {"labelSelector": ["job-name=nightly"]}),
    ("cronjob/nightly", {"labelSelector": ["job-name"]}),
    ("sparkapplication/pi", {"labelSelector": ["sparkoperator.k8s.io/app-name=pi"]}),
]


@pytest.mark.parametrize(("typed", "query"), ASKED)
def test_one_list_is_asked_for(server: ApiServer, locate: Locate, typed: str, query: dict[str, Any]) -> None:
    server.pods = [pod("a-1", labels={"job-name": "nightly-29387520"})]
    locate(typed, namespace="data")
    assert server.asked == [("/api/v1/namespaces/data/pods", {**query, "limit": ["500"]})]


def test_labels_of_a_spark_executor(server: ApiServer, locate: Locate) -> None:
    labels = {"spark-role": "executor", "spark-exec-id": "3", "spark-app-name": "etl"}
    server.pods = [pod("etl-exec-3", labels=labels, containers=["spark-kubernetes-executor"])]
    (host,) = locate().hosts
    assert (host.name, host.address) == ("etl-exec-3", "default/etl-exec-3/spark-kubernetes-executor")
    (known,) = host.containers.values()
    assert known == {
        "namespace": "default",
        "pod": "etl-exec-3",
        "container": "spark-kubernetes-executor",
        "node": "node1",
        "app": "etl",
        "role": "executor",
        "executor": "3",
        "process": "executor 3",
    }
    server.pods = [pod("etl-driver", labels={"spark-role": "driver"})]
    (known,) = locate().hosts[0].containers.values()
    assert (known["role"], known["executor"], known["process"]) == ("driver", "driver", "driver")


def test_by_ssh_a_host_is_a_node(server: ApiServer, locate: Locate) -> None:
    server.pods = [pod("a", node="n1"), pod("b", node="n2", hostIP="10.0.0.2"), pod("c", node="n1")]
    hosts = locate(via="ssh", host_map={"n2": HostEntry("second", "me", 2222)}).hosts
    assert [(h.name, h.address, h.user, h.port, len(h.containers)) for h in hosts] == [
        ("n1", "10.0.0.1", None, None, 2),
        ("n2", "second", "me", 2222, 1),
    ]
    assert all(len(identity) == 64 for host in hosts for identity in host.containers)


DONE, KILLED = {"reason": "Completed", "exitCode": 0}, {"reason": "OOMKilled", "exitCode": 137}
IDLE = [
    (
        waiting("CrashLoopBackOff", "back-off 5m"),
        None,
        Status.FAILED,
        "is not running: CrashLoopBackOff: back-off",
    ),
    (waiting("ImagePullBackOff", "x"), None, Status.FAILED, "ImagePullBackOff"),
    ({"terminated": DONE}, "Never", Status.IDLE, r"has ended: Completed \(exit code 0\)"),
    ({"terminated": KILLED}, "Never", Status.IDLE, r"has ended: OOMKilled \(exit code 137\)"),
    ({"terminated": DONE}, "OnFailure", Status.IDLE, "has ended: Completed"),
    ({"terminated": KILLED}, "OnFailure", Status.FAILED, "is restarting: OOMKilled"),
    ({"terminated": KILLED}, None, Status.FAILED, "is restarting: OOMKilled"),
]


@pytest.mark.parametrize(("state", "policy", "state_of", "said"), IDLE)
def test_containers_that_do_not_run(
    server: ApiServer, locate: Locate, state: Any, policy: Any, state_of: Status, said: str
) -> None:
    down = pod("down", states={"main": state})
    down["spec"]["restartPolicy"] = policy
    server.pods = [pod("up"), down]
    found = locate()
    assert [host.name for host in found.hosts] == ["up"]
    (line,) = found.absent
    assert line.host == "down" and line.status is state_of and re.search(said, line.reason)
    server.pods = server.pods[1:]
    with pytest.raises(KubernetesError, match=f"no container of k8s:app=x .*is running: down: .*{said}"):
        locate()


OVER: list[Any] = [
    # Status of the pod, state of the container, reason in the ledger.
    (
        {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
        {"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}},
        "the pod has ended: Evicted: low on memory",
    ),
    ({"phase": "Failed"}, {"terminated": KILLED}, "the container has ended: OOMKilled (exit code 137)"),
    ({"phase": "Succeeded"}, {"terminated": DONE}, "the container has ended: Completed (exit code 0)"),
    ({"phase": "Failed", "reason": "NodeLost"}, None, "the pod has ended: NodeLost"),
    ({"phase": "Failed"}, waiting("ContainerCreating"), "the pod has ended: Failed"),
]


@pytest.mark.parametrize(("own", "state", "said"), OVER, ids=[case[2] for case in OVER])
def test_a_pod_that_ended_for_good_is_not_missing(
    server: ApiServer, locate: Locate, own: Any, state: Any, said: str
) -> None:
    """Whatever its restart policy; the states of its containers may be old."""
    over = pod("over", states={"main": state} if state else None, **own)
    over["spec"]["restartPolicy"] = "Always"
    server.pods = [pod("up"), over]
    found = locate()
    assert [host.name for host in found.hosts] == ["up"]
    assert [(line.host, line.status, line.reason) for line in found.absent] == [("over", Status.IDLE, said)]


def test_no_pod_matches(server: ApiServer, locate: Locate) -> None:
    with pytest.raises(KubernetesError, match="there is no pod of k8s:app=x in the namespace default"):
        locate()
    server.pods = [pod("a")]
    with pytest.raises(KubernetesError, match="in all namespaces has a container absent"):
        locate(containers=("absent",), all_namespaces=True)
    with pytest.raises(UsageError, match="not a valid name of a namespace"):
        locate(namespace="../kube-system")


HOSTILE = ["../../etc", "a/b", "-rf", "a b", "A", "", "a" * 300, "x\x1b[2J", "..", 7, None, ["a"]]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_bad_names_of_pods(server: ApiServer, locate: Locate, name: Any) -> None:
    for strange in (pod("x"), pod("x")):
        strange["metadata"]["name"] = name
        server.pods = [pod("good"), strange]
        found = locate()
        assert [host.name for host in found.hosts] == ["good"]
        assert found.notes == ("1 pods have invalid names and are left out",)
    strange = pod("good-too", containers=["main", "other"])
    strange["status"]["containerStatuses"][1]["name"] = name
    strange["spec"]["nodeName"] = "n1"
    server.pods = [strange]
    assert [host.name for host in locate().hosts] == ["good-too"]


def test_a_deployment_knows_its_pods(server: ApiServer, locate: Locate) -> None:
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "canary", "operator": "DoesNotExist"},
        ],
    }
    path = "apis/apps/v1/namespaces/default/deployments/web"
    server.replies[path] = lambda _: (200, {"spec": {"selector": selector}})
    server.pods = [pod("web-1")]
    locate("deployment/web")
    assert server.asked[-1][1]["labelSelector"] == ["app=web,tier in (a,b),!canary"]
    server.replies[path] = lambda _: (403, status(403, "Forbidden", "no"))
    with pytest.raises(KubernetesError, match="get deployments in the namespace default") as caught:
        locate("deployment/web")
    assert 'apiGroups: ["apps"], resources: ["deployments"], verbs: [get]' in caught.value.remedy
    server.replies[path] = lambda _: (404, status(404, "NotFound", 'deployments.apps "web" not found'))
    with pytest.raises(KubernetesError, match=r'deployments\.apps "web" not found'):
        locate("deployment/web")
    with pytest.raises(UsageError, match="which is in one namespace"):
        locate("deployment/web", all_namespaces=True)
    with pytest.raises(KubernetesError, match="unknown selector 'Near'"):
        label_selector({"matchExpressions": [{"key": "a", "operator": "Near"}]})


def test_a_cron_job_has_the_pods_of_its_jobs(server: ApiServer, locate: Locate) -> None:
    jobs = {"ours": "web-29387520", "another": "web-canary-29387520", "of-a-job": "web-2"}
    server.pods = [pod(name, labels={"job-name": job}) for name, job in jobs.items()]
    assert [host.name for host in locate("cronjob/web").hosts] == ["ours"]


@pytest.mark.parametrize("node", ["-oProxyCommand=x", "a b", "$(x)"])
def test_nodes_that_are_not_hosts(server: ApiServer, locate: Locate, node: str) -> None:
    server.pods = [pod("a", node=node)]
    with pytest.raises(KubernetesError, match="is not a host"):
        locate(via="ssh")


def later(name: str, deleted: bool = False, state: Any = None, last: Any = None, identity: str = "") -> Any:
    """The pod after the recording: being deleted, in another state, or with another container."""
    made = pod(name, states={"main": state} if state else None)
    (container,) = made["status"]["containerStatuses"]
    if deleted:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if last:
        container["lastState"] = last
    if identity:
        container["containerID"] = f"containerd://{identity * 64}"
    return made


def test_changes_during_the_recording(server: ApiServer, locate: Locate) -> None:
    error = {"terminated": {"reason": "Error", "exitCode": 3}}
    deleted = "the pod was deleted during the recording"
    leaving = later("leaving", deleted=True)
    restarting = "the container is restarting: OOMKilled (exit code 137)"
    another = later("db-0", identity="e")
    another["metadata"]["uid"] = "another"
    changes = [
        (pod("stays"), None),
        (leaving, None),
        (later("restarts", identity="f"), "the container was restarted during the recording"),
        (later("crashes", state={"terminated": KILLED}), restarting),
        (later("going", deleted=True), deleted),
        (
            later("ending", deleted=True, state={"terminated": KILLED}),
            f"{deleted}; its container ended with OOMKilled (exit code 137)",
        ),
        (
            later("crash", deleted=True, state=waiting("CrashLoopBackOff"), last=error),
            f"{deleted}; its container ended with Error (exit code 3)",
        ),
        (another, f"{deleted}, and another pod now has its name"),
    ]
    names = [after["metadata"]["name"] for after, _ in changes]
    server.pods = [leaving if name == "leaving" else pod(name) for name in ("leaves", *names)]
    found = locate()
    server.pods = [*(after for after, _ in changes), pod("comes")]
    assert {line.host: line.reason for line in found.new_processes(())} == {
        "leaves": deleted,
        **{name: said for name, (_, said) in zip(names, changes, strict=True) if said},
        "comes": "comes started during the recording and is not in it",
    }
    server.replies["api/v1/namespaces/default/pods"] = lambda _: (500, {})
    with pytest.raises(KubernetesError, match="answered 500"):
        found.new_processes(())


def test_from_when_to_when_the_pods_ran(server: ApiServer, locate: Locate) -> None:
    """Those that wait have not; a time that is none is unknown."""
    begun, over = "2026-11-29T12:00:00Z", "2026-11-29T12:00:30Z"
    server.pods = [
        pod("runs", states={"main": {"running": {"startedAt": begun}}}),
        pod(
            "ended",
            states={"main": {"terminated": {**DONE, "startedAt": begun, "finishedAt": over}}},
            phase="Succeeded",
        ),
        pod("waits", states={"main": waiting("ContainerCreating")}, phase="Pending"),
        pod("odd", states={"main": {"running": {"startedAt": "yesterday"}}}),
    ]
    located = locate()
    assert located.account is not None
    account = located.account()
    moment = datetime(2026, 11, 29, 12, tzinfo=timezone.utc).timestamp()
    assert [(part.name, part.started, part.ended) for part in account.parts] == [
        ("runs", moment, 0.0),
        ("ended", moment, moment + 30),
        ("odd", 0.0, 0.0),
    ]
    first = account.parts[0]
    assert first.host == "default/runs/main"
    assert first.labels == {"namespace": "default", "pod": "runs", "container": "main"}


def test_what_the_pods_are_now(server: ApiServer, locate: Locate) -> None:
    """Their end counts when it is seen twice: a workload may be about to make the next one."""
    server.pods = [pod("one")]
    look = locate().look
    assert look is not None
    server.pods = [pod("one"), pod("two")]
    now = look()
    assert [host.name for host in now.hosts] == ["one", "two"] and not now.over
    ended = pod("one", states={"main": {"terminated": DONE}}, phase="Succeeded")
    server.pods = [ended]
    assert not look().over
    server.pods = [ended, pod("three", states={"main": waiting("ContainerCreating")})]
    assert not look().over
    server.pods = [ended]
    assert [look().over, look().over] == [False, True]


def test_a_job_is_over_when_it_says_so(server: ApiServer, locate: Locate) -> None:
    server.pods = [pod("etl-1", labels={"job-name": "etl"})]
    look = locate("job/etl").look
    assert look is not None
    server.pods = []
    conditions: list[dict[str, str]] = []
    job = {"status": {"conditions": conditions}}
    server.replies["apis/batch/v1/namespaces/default/jobs/etl"] = lambda _: (200, job)
    assert [look().over, look().over] == [False, False]
    conditions.append({"type": "Complete", "status": "True"})
    assert look().over


def test_pods_that_do_not_run_yet_may_come(server: ApiServer, locate: Locate) -> None:
    for server.pods in ([], [pod("one", states={"main": waiting("ContainerCreating")})]):
        with pytest.raises(NotYet):
            locate()
