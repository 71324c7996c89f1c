"""Debug containers: what rights they are given, and that each ends whatever goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from hprofiler.kubernetes import Access, connect
from hprofiler.kubernetes.debugging import add_debug_container
from tests.unit.kubernetes_server import ApiServer, pod, serving

RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving() as made:
        yield made


def adding(server: ApiServer, target: Dict[str, Any], state: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Let debug containers be added to a pod, which then have this state; those that were."""
    made: List[Dict[str, Any]] = []

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
    add_debug_container(cluster, ("default", "one", "proxy"), "busybox", 60)
    assert made[0]["securityContext"] == {"runAsNonRoot": True, "runAsUser": 101, "runAsGroup": 102}
