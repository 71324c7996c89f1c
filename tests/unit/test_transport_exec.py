"""Commands in containers through the API server, debug containers, and errors."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import HostError
from hprofiler.kubernetes import Access, connect
from hprofiler.kubernetes.debugging import END, LAST, add_debug_container
from hprofiler.model import Host
from hprofiler.transport.base import NoShell
from hprofiler.transport.pod_exec import Debugging, ExecTransport
from tests.unit.kubernetes_server import ID, ApiServer, pod, status
from tests.unit.stand_in import StandIns

CONTAINER = Host("pod", "ns/pod/main", containers={ID: {}})


@pytest.fixture
def transport(server: ApiServer, tmp_path: Path) -> Iterator[ExecTransport]:
    made = connect(Access(server.kubeconfig(tmp_path)))
    transport = ExecTransport(CONTAINER, made)
    transport.connect()
    yield transport
    transport.close()
    made.close()


def test_a_command_and_its_streams(transport: ExecTransport, server: ApiServer) -> None:
    done = transport.run("read line; echo out $line; echo err >&2; exit 7", b"word\n", 30)
    assert done == (7, b"out word\n", "err")
    ((path, query),) = server.asked
    assert path == "/api/v1/namespaces/ns/pods/pod/exec"
    assert query["container"] == ["main"] and query["command"][:2] == ["sh", "-c"]
    assert transport.destination().startswith("exec into ns/pod/main by http://")
    assert transport.destination().endswith(" as me")


def test_many_bytes_both_ways(transport: ExecTransport) -> None:
    """More than the buffers hold, in both directions at the same time: no deadlock."""
    data = os.urandom(9 << 20)
    done = transport.run("cat", data, 60)
    assert done.exit_status == 0 and hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert transport.bytes_sent == transport.bytes_received == len(data)


def test_a_connection_that_breaks(transport: ExecTransport, server: ApiServer) -> None:
    channel = transport.open("echo begun; cat")
    assert channel.read(100) == b"begun\n"
    server.break_connections()
    with pytest.raises(HostError, match="the connection to the container was lost"):
        channel.read(1)
    assert channel.exit_status(0.1) is None


def test_a_container_without_a_shell(transport: ExecTransport, server: ApiServer) -> None:
    server.exec_status = status(
        500, "InternalError", 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH'
    )
    channel = transport.open("echo")
    with pytest.raises(HostError, match="the container has no sh") as caught:
        channel.read(1)
    assert "--debug-container" in caught.value.remedy


def test_what_the_server_refuses(transport: ExecTransport, server: ApiServer) -> None:
    words = (
        'pods "pod" is forbidden: User "me" cannot create resource "pods/exec" in API group "" '
        'in the namespace "ns": RBAC: role "x" not found'
    )
    server.refuse_exec = 403, status(403, "Forbidden", words)
    with pytest.raises(
        HostError,
        match=r'forbids me to create pods/exec in the namespace ns: RBAC: role "x" not found$',
    ) as caught:
        transport.open("echo")
    assert 'resources: ["pods/exec"], verbs: [get, create]' in caught.value.remedy
    server.refuse_exec = 404, status(404, "NotFound", 'pods "pod" not found')
    with pytest.raises(HostError, match='pods "pod" not found'):
        transport.open("echo")


def test_a_command_that_takes_too_long(transport: ExecTransport) -> None:
    with pytest.raises(HostError, match=r"did not end within 0\.5 s"):
        transport.run("sleep 1000", b"", 0.5)  # longer than a test may take


def test_an_image_without_the_tools_is_refused_before_anything_is_written(
    transport: ExecTransport, server: ApiServer, stand_ins: StandIns, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "cat", "head", "uname", "wc"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    server.environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    with pytest.raises(NoShell, match="has no chmod, no rm") as caught:
        AgentSession.open(transport, stand_ins.binaries("hello(); read()"))
    assert "--debug-container" in caught.value.remedy and "--via ssh" in caught.value.remedy
    assert transport.bytes_sent == 0
    # Commands are part of the URL of a request; proxies usually accept 8192 bytes.
    commands = [query["command"] for _, query in server.asked]
    assert all(len(urlencode([("command", word) for word in words])) < 2400 for words in commands)


RUNS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def adding(server: ApiServer, target: dict[str, Any], state: dict[str, Any]) -> list[dict[str, Any]]:
    """Accept debug containers for a pod with this state; returns those that were added."""
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


def test_a_forbidden_debug_container_names_the_rule(server: ApiServer, tmp_path: Path) -> None:
    server.pods = [pod("one")]
    path = "api/v1/namespaces/default/pods/one/ephemeralcontainers"
    server.replies[path] = lambda _: (403, status(403, "Forbidden", "no"))
    shut = status(500, "InternalError", 'exec: "sh": executable file not found in $PATH')
    server.exec_status = shut
    host = Host("one", "default/one/main", containers={ID: {}})
    transport = ExecTransport(host, connect(Access(server.kubeconfig(tmp_path))), Debugging("busybox", 60))
    with pytest.raises(HostError, match="to patch pods/ephemeralcontainers in the namespace") as caught:
        transport.connect()
    assert 'resources: ["pods/ephemeralcontainers"], verbs: [patch]' in (caught.value.remedy or "")


def test_an_unused_debug_container_is_ended(server: ApiServer, tmp_path: Path) -> None:
    target = pod("one")
    adding(server, target, RUNS)
    path = "api/v1/namespaces/default/pods/one/ephemeralcontainers"
    add = server.replies[path]
    server.exec_status = status(500, "InternalError", 'exec: "sh": executable file not found in $PATH')

    def added(query: Any) -> Any:
        server.exec_status = None
        return add(query)

    server.replies[path] = added
    server.environment = {"PATH": "/usr/bin:/bin", END: str(tmp_path / "end")}
    host = Host("one", "default/one/main", containers={ID: {}})
    transport = ExecTransport(host, connect(Access(server.kubeconfig(tmp_path))), Debugging("busybox", 60))
    told: list[str] = []
    transport.told = lambda what, detail: told.append(detail)
    waiting = subprocess.Popen(["sleep", "600"])
    (tmp_path / "end").write_text(f"{waiting.pid}\n")
    try:
        transport.connect()
        transport.close()
        assert waiting.wait(30) == -signal.SIGTERM
    finally:
        waiting.kill()
        waiting.wait()
    assert told[-2:] == ["a debug container of busybox beside default/one/main", LAST]
