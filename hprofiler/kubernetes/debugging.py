"""Debug containers: added to a container without a shell, in its pid namespace.

Kubernetes lists them until the pod is deleted. They run until hprofiler ends them or (if the image has
sleep) until their time is over. One whose image takes too long to pull ends only by its own time limit.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from hprofiler.base.answers import mapping
from hprofiler.kubernetes.cluster import Cluster
from hprofiler.kubernetes.commands import start
from hprofiler.kubernetes.problems import Forbidden, Gone, KubernetesError, Need, in_short

END = "HPROFILER_END"
"""The variable with the path of a file, which has the pid of the process to end."""
_END_FILE = "/tmp/.hprofiler-end"
LAST = f'read -r p <"${END}" && kill "$p"'
"""The command that ends a debug container from within."""
_LOOK = 0.3
_START_SECONDS = 60.0
_END_SECONDS = 5.0
# Without sleep it waits for input that never comes. In a pod's command, $$ is one $.
_WAIT = "echo $$$$ >{file}; command -v sleep >/dev/null && exec sleep {seconds}; read -r x"
# Settings that pod security may require, and the same user, because JVMs refuse others.
_SECURITY = (
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "allowPrivilegeEscalation",
    "capabilities",
    "seccompProfile",
)


def add_debug_container(
    cluster: Cluster, where: tuple[str, str, str], image: str, seconds: int, unwanted: threading.Event
) -> str:
    """Add one to the container (namespace, pod, name) for some seconds; returns its name when it is running.

    Raises KubernetesError, also as soon as `unwanted` is set; then the debug container is ended.
    """
    namespace, pod, container = where
    name = f"hprofiler-{secrets.token_hex(4)}"
    added = {
        "name": name,
        "image": image,
        "targetContainerName": container,
        "command": ["sh", "-c", _WAIT.format(seconds=seconds, file=_END_FILE)],
        "stdin": True,
        "env": [{"name": END, "value": _END_FILE}],
        "securityContext": _security(_pod(cluster, namespace, pod), container),
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/ephemeralcontainers"
    need = Need("patch", "pods/ephemeralcontainers", namespace)
    try:
        cluster.patch(path, {"spec": {"ephemeralContainers": [added]}}, need)
        _await(cluster, (namespace, pod, name), unwanted)
    except Forbidden:
        raise
    except BaseException:
        _end(cluster, (namespace, pod, name))
        raise
    return name


def _end(cluster: Cluster, where: tuple[str, str, str]) -> None:
    """End it if it is running."""
    with contextlib.suppress(KubernetesError, OSError):
        command = start(cluster, where, ["sh", "-c", LAST], 0)
        command.exit_status(_END_SECONDS)
        command.close()


def _pod(cluster: Cluster, namespace: str, pod: str) -> Mapping[str, Any]:
    fields = {"fieldSelector": f"metadata.name={pod}"}
    found = cluster.list(f"/api/v1/namespaces/{namespace}/pods", fields, Need("list", "pods", namespace))
    if not found:
        raise Gone(f"the pod {pod} is gone", "run it again")
    return found[0]


def _security(pod: Mapping[str, Any], container: str) -> dict[str, Any]:
    """The same user and rights as the container."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    own = _named(container, spec.get("containers"), spec.get("initContainers"))
    merged = {**mapping(spec, "securityContext"), **mapping(own, "securityContext")}
    state = _named(container, status.get("containerStatuses"), status.get("initContainerStatuses"))
    ran_as = mapping(mapping(state, "user"), "linux")
    for ours, theirs in (("runAsUser", "uid"), ("runAsGroup", "gid")):
        if theirs in ran_as:
            merged.setdefault(ours, ran_as[theirs])
    return {name: merged[name] for name in _SECURITY if name in merged}


def _await(cluster: Cluster, where: tuple[str, str, str], unwanted: threading.Event) -> None:
    namespace, pod, name = where
    end = time.monotonic() + _START_SECONDS
    while True:
        status = mapping(_pod(cluster, namespace, pod), "status")
        state = mapping(_named(name, status.get("ephemeralContainerStatuses")), "state")
        if "running" in state:
            return
        waiting, ended = mapping(state, "waiting"), mapping(state, "terminated")
        reason = str(waiting.get("reason", ""))
        if ended or "Err" in reason or "BackOff" in reason or time.monotonic() > end:
            said = ended or waiting
            words = in_short(": ".join(str(said[key]) for key in ("reason", "message") if key in said))
            raise KubernetesError(
                f"the debug container does not run: {words or 'it was not started'}",
                "check that the node can pull its image, and that the image has sh",
            )
        if unwanted.wait(_LOOK):
            raise KubernetesError("the run ended before the debug container started")


def _named(name: str, *lists: object) -> Mapping[str, Any]:
    """The object of that name in any of the lists. (Sidecars are among the init containers.)"""
    found = [one for items in lists if isinstance(items, list) for one in items]
    return next((one for one in found if isinstance(one, dict) and one.get("name") == name), {})
