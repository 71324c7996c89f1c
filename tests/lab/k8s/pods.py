"""Manifests for the lab's cluster: burners in all kinds of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.burners import build
from tests.lab.k8s.images import JAVA, JVM

Object = dict[str, Any]

HARDENED: Object = {
    "runAsUser": 9999,
    "runAsGroup": 9999,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security settings that a strict cluster requires."""


def burner(
    role: str = "alpha", load: float = 0.5, main: str = "Burner", extra: Sequence[str] = ()
) -> list[str]:
    """The command of a Java burner with known shares, in an image with a JDK."""
    small = ["-Xmx48m", "-XX:+UseSerialGC"]
    return ["java", *small, "-cp", "/burner", main, "--role", role, "--load", str(load), *extra]


def container(
    command: Sequence[str],
    name: str = "main",
    image: str = JVM,
    security: Object | None = None,
    writable: str = "",
) -> Object:
    """A container that sees the burners. `writable` is the path of its own folder, if it has one.

    Its stdin never ends, because burners end with theirs.
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
    return {"kind": "Pod", "metadata": {"name": name, "labels": dict(labels)}, "spec": content}


def deployment(name: str, replicas: int, one: Object) -> Object:
    """Pods like `one`, which needs labels."""
    labels = one["metadata"]["labels"]
    template = {"metadata": {"labels": labels}, "spec": one["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def job(name: str, completions: int, at_once: int, one: Object) -> Object:
    """Pods like `one`, until so many have ended well."""
    template = {"spec": {**one["spec"], "restartPolicy": "Never"}}
    spec = {"completions": completions, "parallelism": at_once, "template": template}
    return {"kind": "Job", "metadata": {"name": name}, "spec": spec}


def spark_executors(name: str, count: int) -> list[Object]:
    """Pods with the labels and the main class of an application's executors, as Spark starts them."""
    made = []
    for number in map(str, range(1, count + 1)):
        main = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
        command = burner("beta", 0.3, main, ["--executor-id", number, "--app-id", "spark-0123"])
        labels = {"spark-role": "executor", "spark-exec-id": number, "spark-app-name": name}
        one = container(command, name="spark-kubernetes-executor")
        made.append(pod(f"{name}-exec-{number}", one, labels=labels))
    return made


def pyspark(name: str, shared: Path) -> Object:
    """A pod with a PySpark job in local mode, which uses the folders pyspark, python and burners of the lab's
    shared folder and writes to its file output.
    """
    (zipped,) = (shared / "pyspark" / "python" / "lib").glob("py4j-*.zip")
    variables = {
        "PYSPARK_PYTHON": "/shared/python/bin/python3",
        "PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell",
        "PYTHONPATH": f"/shared:/shared/{zipped.relative_to(shared)}",
        "SPARK_HOME": "/shared/pyspark",
    }
    program = "/shared/burners/pyspark_shares.py"
    one = container(["sh", "-c", f"exec {variables['PYSPARK_PYTHON']} {program} >/shared/output 2>&1"])
    made = pod(name, one, labels={"spark-role": "driver"})
    one["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    for volume, path in {"shared": "/shared", "system": "/usr"}.items():
        made["spec"]["volumes"].append({"name": volume, "hostPath": {"path": path}})
        one["volumeMounts"].append({"name": volume, "mountPath": path})
    return made


def shapes(node: str, other: str, labels: Mapping[str, str]) -> tuple[dict[str, Object], list[Object]]:
    """A pod of each kind that a profiler meets, by name, with a burner in its container main; and pods that
    do not run. `elsewhere` is on another node. Only two are busy.
    """
    java = burner("alpha", 0.04)
    made = {
        "plain": [container(burner("alpha", 0.5))],
        "hardened": [container(java, security=HARDENED, writable="/tmp")],
        "sealed": [container(java, security=HARDENED)],
        "shell-less": [container(java, image=JAVA)],
        "strict": [container(java, image=JAVA, security=HARDENED, writable="/tmp")],
        "two": [container(java), container(burner("beta", 0.04), name="side")],
        "shell": [container(["sh", "-c", '"$@"; echo ended', "sh", *java])],
    }
    running = {name: pod(name, *parts, node=node, labels=labels) for name, parts in made.items()}
    running["host-network"] = pod("host-network", container(java), node=node, labels=labels, hostNetwork=True)
    running["elsewhere"] = pod("elsewhere", container(burner("gamma", 0.5)), node=other, labels=labels)
    absent = container(java, image="lab.local/absent:1")
    idle = [
        pod("crashing", container(["sh", "-c", "exit 3"]), node=other, labels=labels),
        pod("pending", container(java), labels=labels, nodeSelector={"nowhere": "true"}),
        pod("bare", absent, node=other, labels=labels),
    ]
    return running, idle
