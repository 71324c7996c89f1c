"""Pods of workloads: how they are asked for, and which of those that are found are a workload's own."""

from __future__ import annotations

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.kubernetes import KubernetesError
from hprofiler.resolve.kubernetes.listing import label_selector
from tests.unit.conftest import Locate
from tests.unit.kubernetes_server import ApiServer, of, pod, status


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
    server.pods = [of(pod("web-1"), "ReplicaSet", "web-5d8f", **{"pod-template-hash": "5d8f"})]
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


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        ("deployment/web", {"of web-5d8f", "of web-6c7b"}),
        ("replicaset/web-6c7b", {"of web-6c7b"}),
        ("statefulset/web", {"of the set"}),
        ("daemonset/web", {"on each node"}),
        ("job/web", {"of the job"}),
        ("cronjob/web", {"in the night"}),
    ],
)
def test_only_its_own_pods(server: ApiServer, locate: Locate, asked: str, own: set[str]) -> None:
    """Whatever else a workload's selector matches."""
    kind = "" if "job" in asked else asked.replace("/", "s/")
    path = f"apis/apps/v1/namespaces/default/{kind}"
    server.replies[path] = lambda _: (200, {"spec": {"selector": {"matchLabels": {"app": "web"}}}})
    owners = {
        "of web-5d8f": ("ReplicaSet", "web-5d8f", "5d8f"),
        "of web-6c7b": ("ReplicaSet", "web-6c7b", "6c7b"),
        "of another deployment": ("ReplicaSet", "web-canary-5d8f", "5d8f"),
        "of the set": ("StatefulSet", "web", ""),
        "on each node": ("DaemonSet", "web", ""),
        "of the job": ("Job", "web", ""),
        "in the night": ("Job", "web-29387520", ""),
        "of another's nights": ("Job", "web-canary-29387520", ""),
        "of the second job": ("Job", "web-2", ""),
        "of no number": ("Job", "web-२९३८७५२०", ""),
    }
    made = [
        of(pod(what.replace(" ", "-").replace("'", "")), kind, name, **{"pod-template-hash": given})
        for what, (kind, name, given) in owners.items()
    ]
    alien = pod("of-another-system")
    alien["metadata"]["ownerReferences"] = [
        {"apiVersion": "example.com/v1", "kind": kind, "name": name} for kind, name, _ in owners.values()
    ]
    alien["metadata"]["labels"] = {"pod-template-hash": "5d8f"}
    server.pods = [*made, pod("of-nobody"), alien]
    assert {host.name for host in locate(asked).hosts} == {what.replace(" ", "-") for what in own}
