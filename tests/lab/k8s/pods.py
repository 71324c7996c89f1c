"""Manifests of what runs on the lab's cluster: burners in pods of every shape, and pretended pods."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.burners import build
from tests.lab.k8s.api import Api, Object
from tests.lab.k8s.images import JAVA, JVM

HARDENED: Object = {
    "runAsUser": 9999,
    "runAsGroup": 9999,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What a strict cluster asks of a container."""
_COLLECTIONS = {
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Namespace": "/api/v1/namespaces",
}


def collection(manifest: Object) -> str:
    """Where an object like this is created."""
    namespace = manifest["metadata"].get("namespace", "default")
    return _COLLECTIONS[manifest["kind"]].format(namespace=namespace)


def burner(role: str = "alpha", load: float = 0.5, options: Sequence[str] = ()) -> list[str]:
    """The command of a Java burner of known shares, in an image with a JDK."""
    small = ["-Xmx48m", "-XX:+UseSerialGC"]
    return ["java", *small, *options, "-cp", "/burner", "Burner", "--role", role, "--load", str(load)]


def container(
    command: Sequence[str],
    name: str = "main",
    image: str = JVM,
    security: Object | None = None,
    writable: str = "",
) -> Object:
    """A container that sees the burners; `writable` is where it has a folder of its own, if anywhere.

    It has a stdin that never ends, for burners end with theirs.
    """
    mounts: list[Object] = [{"name": "burner", "mountPath": "/burner", "readOnly": True}]
    if writable:
        mounts.append({"name": "writable", "mountPath": writable})
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "stdin": True,
        "securityContext": security or {},
        "volumeMounts": mounts,
    }


def pod(
    name: str, *containers: Object, node: str = "", labels: Mapping[str, str] = {}, **spec: Any
) -> Object:
    """A pod of these containers; without `node` the scheduler chooses."""
    content: Object = {
        "terminationGracePeriodSeconds": 1,
        "containers": list(containers),
        "volumes": [
            {"name": "burner", "hostPath": {"path": str(build.classes())}},
            {"name": "writable", "emptyDir": {}},
        ],
        **({"nodeName": node} if node else {}),
        **spec,
    }
    namespace = content.pop("namespace", "default")
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": content}


def deployment(name: str, replicas: int, one: Object) -> Object:
    """Pods like `one`, which needs labels."""
    metadata, labels = one["metadata"], one["metadata"]["labels"]
    template = {"metadata": {"labels": labels}, "spec": one["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def grant(api: Api, account: str, namespace: str, rules: Sequence[Mapping[str, Any]]) -> None:
    """A role with these rules for a service account, in its namespace."""
    base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    api.post(f"{base}/roles", {"metadata": {"name": account}, "rules": list(rules)})
    who = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account}
    api.post(f"{base}/rolebindings", {"metadata": {"name": account}, "roleRef": role, "subjects": [who]})


def shapes(node: str) -> dict[str, Object]:
    """A pod of each shape that a profiler meets, by its name; all run a burner in their container main.

    Only `plain` is busy.
    """
    java = burner("alpha", 0.04)
    made = {
        "plain": [container(burner("alpha", 0.5))],
        "hardened": [container(java, security=HARDENED, writable="/tmp")],
        "sealed": [container(java, security=HARDENED)],
        "shell-less": [container(java, image=JAVA)],
        "strict": [container(java, image=JAVA, security=HARDENED, writable="/tmp")],
        "two": [container(java), container(burner("beta", 0.04), name="side")],
        "tini": [container(["init", *java])],
        "shell": [container(["sh", "-c", '"$@"; echo ended', "sh", *java])],
    }
    pods = {name: pod(name, *parts, node=node, labels={"shape": name}) for name, parts in made.items()}
    pods["host-network"] = pod(
        "host-network", container(java), node=node, hostNetwork=True, labels={"shape": "host"}
    )
    return pods


def fleet(node: str, other: str, labels: Mapping[str, str]) -> tuple[dict[str, Object], list[Object]]:
    """A pod of each shape, one on another node ("elsewhere"), and some that do not run."""
    running = shapes(node)
    running["elsewhere"] = pod("elsewhere", container(burner("gamma", 0.5)), node=other)
    idle = [crashing("crashing", other), unschedulable("pending"), without_image("bare", other)]
    for one in (*running.values(), *idle):
        one["metadata"]["labels"].update(labels)
    return running, idle


def crashing(name: str, node: str, labels: Mapping[str, str] = {}) -> Object:
    return pod(name, container(["sh", "-c", "exit 3"]), node=node, labels=labels)


def unschedulable(name: str, labels: Mapping[str, str] = {}) -> Object:
    return pod(name, container(burner()), nodeSelector={"nowhere": "true"}, labels=labels)


def without_image(name: str, node: str, labels: Mapping[str, str] = {}) -> Object:
    return pod(name, container(burner(), image="lab.local/absent:1"), node=node, labels=labels)


PRETENDED = "spark-0123456789abcdef"
"""The application that pretended executors are of."""


def pretend(api: Api, count: int, nodes: int = 4, namespace: str = "pretended") -> None:
    """Spark executors that the API server believes to run, with no machine behind them."""
    api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.post(account, {"metadata": {"name": "pretended"}})
    for number in range(1, nodes + 1):
        api.post("/api/v1/nodes", {"metadata": {"name": f"pretended-{number}"}})
    for number in range(1, count + 1):
        _pretend_one(api, number, number % nodes + 1, namespace)


def _pretend_one(api: Api, number: int, node: int, namespace: str) -> None:
    labels = {
        "spark-role": "executor",
        "spark-exec-id": str(number),
        "spark-app-selector": "spark-0123456789abcdef",
    }
    name, image = f"etl-exec-{number}", "lab.local/spark:1"
    one = {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeName": f"pretended-{node}",
            "serviceAccountName": "pretended",
            "containers": [{"name": "spark-kubernetes-executor", "image": image}],
        },
    }
    base = f"/api/v1/namespaces/{namespace}/pods"
    api.post(base, one)
    now = "2026-01-01T00:00:00Z"
    status = {
        "name": "spark-kubernetes-executor",
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        "containerID": f"containerd://{hashlib.sha256(name.encode()).hexdigest()}",
        "state": {"running": {"startedAt": now}},
    }
    address = f"127.0.1.{node}"
    running = {"phase": "Running", "hostIP": address, "startTime": now, "containerStatuses": [status]}
    api.patch(f"{base}/{name}/status", {"status": running})
