"""Debug containers: what rights they are given, and that each ends whatever goes wrong."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import HostError
from hprofiler.kubernetes import Access, connect
from hprofiler.kubernetes.debugging import add_debug_container
from hprofiler.model import Host
from hprofiler.transport import Debugging, ExecConnector
from tests.unit.kubernetes_server import ID, ApiServer, pod, status

RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def adding(server: ApiServer, target: dict[str, Any], state: dict[str, Any]) -> list[dict[str, Any]]:
    """Let debug containers be added to a pod, which then have this state; those that were."""
    made: list[dict[str, Any]] = []

    def added(query: Any) -> Any:
        made.extend(query["body"][0]["spec"]["ephemeralContainers"])
        target["status"]["ephemeralContainerStatuses"] = [{"name": made[-1]["name"], "state": state}]
        return 200, target

    server.pods = [target]
    name = target["metadata"]["name"]
    server.replies[f"api/v1/namespaces/default/pods/{name}/ephemeralcontainers"] = added
    return made


def test_a_sidecar_among_the_init_containers_shares_its_rights(server: ApiServer, tmp_path: Path) -> None:
    target = pod("one")
    sidecar = {"name": "proxy", "restartPolicy": "Always", "securityContext": {"runAsNonRoot": True}}
    target["spec"]["initContainers"] = [sidecar]
    ran_as = {"linux": {"uid": 101, "gid": 102}}
    target["status"]["initContainerStatuses"] = [{"name": "proxy", "state": RUNS, "user": ran_as}]
    made = adding(server, target, RUNS)
    cluster = connect(Access(server.kubeconfig(tmp_path)))
    add_debug_container(cluster, ("default", "one", "proxy"), "busybox", 60, threading.Event())
    assert made[0]["securityContext"] == {"runAsNonRoot": True, "runAsUser": 101, "runAsGroup": 102}


def test_without_the_right_to_add_one_the_error_names_the_rule(server: ApiServer, tmp_path: Path) -> None:
    server.pods = [pod("one")]
    path = "api/v1/namespaces/default/pods/one/ephemeralcontainers"
    server.replies[path] = lambda _: (403, status(403, "Forbidden", "no"))
    shut = status(500, "InternalError", 'exec: "sh": executable file not found in $PATH')
    server.exec_status = shut
    connector = ExecConnector(connect(Access(server.kubeconfig(tmp_path))), Debugging("busybox", 60))
    with pytest.raises(HostError, match="to patch pods/ephemeralcontainers in the namespace") as caught:
        connector.transport(Host("one", "default/one/main", containers={ID: {}})).connect()
    assert 'resources: ["pods/ephemeralcontainers"], verbs: [patch]' in (caught.value.remedy or "")
