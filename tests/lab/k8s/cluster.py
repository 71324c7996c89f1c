"""A Kubernetes cluster on the lab's hosts: the control plane on coord, a kubelet on each other host.

There is no kube-proxy: services are found by the lab's name server only.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.lab import hosts, procs
from tests.lab.hosts import Host, Lab, LabError
from tests.lab.k8s import groups, images, pods, settings
from tests.lab.k8s.api import Api, ApiError, Object
from tests.lab.k8s.pki import Authority, signing_key
from tests.lab.k8s.software import Software

INSIDE = "/shared/k8s"
"""Where the hosts see the cluster's settings."""
SERVER_PORT = 443
UP_SECONDS = 120
PLAIN_USERS = ("admin", "controllers", "scheduler", "dns")
"""Users with a token and all rights."""


class KubeCluster:
    """The cluster on a lab whose hosts are up and see `made` and a shared folder."""

    def __init__(self, lab: Lab, made: Software) -> None:
        assert lab.shared is not None
        self.lab = lab
        self.software = made
        self.folder = lab.shared / "k8s"
        self._api: Api | None = None

    @property
    def nodes(self) -> list[Host]:
        """The hosts with a kubelet; the nodes have their names."""
        return [host for host in self.lab.hosts.values() if host is not self.lab.coord]

    @property
    def server(self) -> str:
        return f"https://{self.lab.coord.plan.address}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "admin.kubeconfig"

    @property
    def api(self) -> Api:
        """The API server, asked as its administrator."""
        if self._api is None:
            token = json.loads((self.folder / "tokens.json").read_text())["admin"]
            authority = (self.folder / "keys/ca.crt").read_bytes()
            coord = self.lab.coord
            self._api = Api(coord.init.pid, coord.plan.address, authority, token)
        return self._api

    # The cluster's own life

    def up(self) -> KubeCluster:
        """Start everything and wait until every node is ready."""
        groups.sweep()
        self._write_settings()
        self._wire()
        coord = self.lab.coord
        self._start(coord, settings.etcd())
        self._start(coord, settings.apiserver(INSIDE, coord.plan.address))
        with ThreadPoolExecutor() as pool:
            starting = [pool.submit(self._make_node, node) for node in self.nodes]
            procs.wait_for("an API server that answers", self.api.ready, UP_SECONDS)
            self._start(coord, settings.controller_manager(INSIDE))
            self._start(coord, settings.scheduler(INSIDE))
            self._start(coord, settings.names(INSIDE, coord.plan.address))
            for made in starting:
                made.result()
        for node in self.nodes:
            procs.wait_for(f"node {node.name} ready", partial(self._is_ready, node.name), UP_SECONDS)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        procs.wait_for("the default service account", lambda: self.api.find(account), UP_SECONDS)
        return self

    def down(self) -> None:
        """Take the hosts down, and with them the cluster."""
        self.lab.down()
        groups.sweep()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self, node: str) -> bool:
        found = self.api.find(f"/api/v1/nodes/{node}") or {}
        conditions = found.get("status", {}).get("conditions", [])
        return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)

    def _start(self, host: Host, words: Sequence[str]) -> None:
        """Start a program of the cluster; it runs until the host goes down."""
        program = f"{self.software.programs}/{words[0]}"
        script = f"setsid {shlex.join([program, *words[1:]])} </dev/null >/data/{words[0]}.log 2>&1 &"
        host.run(["bash", "-c", script])

    def _make_node(self, host: Host) -> None:
        script = Path(__file__).with_name("node.sh").read_text()
        variables = {
            "LAB_PROGRAMS": str(self.software.programs),
            "LAB_SYSTEM": str(self.software.system),
            "LAB_IMAGES": str(self.software.images / images.ARCHIVE),
            "LAB_SETTINGS": f"{INSIDE}/{host.name}",
            "LAB_NAME": host.name,
            "LAB_ADDRESS": host.plan.address,
            "LAB_GROUP": groups.name_of(host.init),
            "LAB_GROUPS": " ".join(groups.trees()),
            "LAB_SCRIPT": script,
        }
        given = [f"{name}={value}" for name, value in variables.items()]
        host.run(["env", *given, "bash", "-c", script, "node"], timeout=UP_SECONDS)

    def _wire(self) -> None:
        """Routes to the pods of each node, and to the API server's address as pods know it."""
        coord = self.lab.coord
        coord.run(["ip", "addr", "add", f"{settings.API_ADDRESS}/32", "dev", "lo"])
        for node in self.nodes:
            node.run(["ip", "route", "add", settings.SERVICES, "via", coord.plan.address])
            for other in (coord, *self.nodes):
                if other is not node:
                    other.run(["ip", "route", "add", self.pods_of(node), "via", node.plan.address])

    def pods_of(self, node: Host) -> str:
        """The node's part of the pods' network."""
        return f"10.244.{node.plan.address.rsplit('.', 1)[1]}.0/24"

    def _write_settings(self) -> None:
        coord, keys = self.lab.coord, self.folder / "keys"
        shutil.rmtree(self.folder, ignore_errors=True)
        authority = Authority(keys)
        known = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1")
        authority.vouch(
            "apiserver", "kube-apiserver", hosts=(*known, settings.API_ADDRESS, coord.plan.address)
        )
        authority.vouch("client", "kube-apiserver", "system:masters")
        signing_key(keys / "accounts.key")
        (self.folder / "audit.json").write_text(json.dumps(settings.AUDIT_POLICY))
        tokens = {name: secrets.token_hex(16) for name in (*PLAIN_USERS, *(node.name for node in self.nodes))}
        (self.folder / "tokens.json").write_text(json.dumps(tokens))
        lines = [f"{tokens[name]},{name},{name},system:masters" for name in PLAIN_USERS]
        for node in self.nodes:
            lines.append(f"{tokens[node.name]},system:node:{node.name},{node.name},system:nodes")
            self._write_node(node, authority, tokens[node.name])
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        for name in PLAIN_USERS:
            self.write_kubeconfig(name, {"token": tokens[name]})

    def _write_node(self, node: Host, authority: Authority, token: str) -> None:
        folder = self.folder / node.name
        (folder / "network").mkdir(parents=True)
        own = f"{INSIDE}/{node.name}"
        (folder / "kubeconfig").write_text(
            settings.kubeconfig(self.server, authority.certificate, {"token": token})
        )
        kubelet = settings.kubelet(own, f"{INSIDE}/keys", self.lab.coord.plan.address)
        (folder / "kubelet.json").write_text(json.dumps(kubelet))
        (folder / "containerd.toml").write_text(settings.containerd(self.software.system, f"{own}/network"))
        (folder / "network/lab.conflist").write_text(json.dumps(settings.network(self.pods_of(node))))
        authority.vouch(f"../{node.name}/kubelet", node.name, hosts=(node.name, node.plan.address))

    # Users

    def write_kubeconfig(self, name: str, user: Mapping[str, Any], namespace: str = "default") -> Path:
        """NAME.kubeconfig for a user with these credentials."""
        path = self.folder / f"{name}.kubeconfig"
        authority = (self.folder / "keys/ca.crt").read_bytes()
        path.touch(mode=0o600)
        path.write_text(settings.kubeconfig(self.server, authority, user, namespace))
        return path

    def account(self, name: str, rules: Sequence[Mapping[str, Any]] = (), namespace: str = "default") -> Path:
        """A service account that may do what the rules of its role say; its kubeconfig."""
        base = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.api.post(base, {"metadata": {"name": name}})
        if rules:
            pods.grant(self.api, name, namespace, rules)
        answer = self.api.post(f"{base}/{name}/token", {"spec": {"expirationSeconds": 36000}})
        return self.write_kubeconfig(name, {"token": answer["status"]["token"]}, namespace)

    def audit(self, user: str) -> list[Object]:
        """What the API server wrote down of a user's requests, in order."""
        return [event for event in self.whole_audit() if event["user"].get("username") == user]

    def whole_audit(self) -> list[Object]:
        lines = self.lab.coord.path("/data/audit.log").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    # Pods

    def create(self, *manifests: Object) -> list[Object]:
        """Create what the manifests describe, in their namespaces."""
        return [self.api.post(pods.collection(manifest), manifest) for manifest in manifests]

    def pod(self, name: str, namespace: str = "default") -> Object | None:
        return self.api.find(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def wait_until_running(
        self, *names: str, namespace: str = "default", seconds: float = UP_SECONDS
    ) -> None:
        """Wait until all containers of these pods run."""
        for name in names:
            procs.wait_for(f"pod {name} running", partial(self._runs, name, namespace), seconds)

    def wait_until_waiting(self, name: str, reason: str, seconds: float = UP_SECONDS) -> None:
        """Wait until a container of the pod waits for that reason, say "CrashLoopBackOff"."""

        def reasons() -> bool:
            statuses = (self.pod(name) or {}).get("status", {}).get("containerStatuses", [])
            return reason in [status["state"].get("waiting", {}).get("reason") for status in statuses]

        procs.wait_for(f"{name}: {reason}", reasons, seconds)

    def drop(self, *manifests: Object) -> None:
        """Delete workloads; their pods go in the background."""
        for one in manifests:
            path = f"{pods.collection(one)}/{one['metadata']['name']}"
            self.api.delete(path, {"propagationPolicy": "Background"})

    def restarted(self, name: str, namespace: str = "default") -> bool:
        """Whether a container of the pod has ended since it was made."""
        statuses = (self.pod(name, namespace) or {}).get("status", {}).get("containerStatuses", [])
        return any(one["restartCount"] or "running" not in one["state"] for one in statuses)

    def remove(self, *names: str, namespace: str = "default") -> None:
        """Delete pods at once, and wait until they are gone."""
        for name in names:
            at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            try:
                self.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", at_once)
            except ApiError as refused:
                if refused.status != 404:
                    raise
        for name in names:
            procs.wait_for(f"{name} gone", partial(self._is_gone, name, namespace), UP_SECONDS)

    def _is_gone(self, name: str, namespace: str) -> bool:
        return self.pod(name, namespace) is None

    def _runs(self, name: str, namespace: str) -> bool:
        status = (self.pod(name, namespace) or {}).get("status", {})
        if status.get("phase") == "Failed":
            raise LabError(f"pod {name}: {json.dumps(status)[-2000:]}")
        found = status.get("containerStatuses", [])
        return bool(found) and all("running" in entry["state"] for entry in found)

    def containers(self, name: str, namespace: str = "default") -> dict[str, tuple[Host, str]]:
        """The node and the id of each container of a pod, by its name."""
        pod = self.pod(name, namespace)
        assert pod is not None, f"no pod {name}"
        host = self.lab.hosts[pod["spec"]["nodeName"]]
        statuses = pod["status"].get("containerStatuses", []) + pod["status"].get(
            "ephemeralContainerStatuses", []
        )
        begun = [entry for entry in statuses if "containerID" in entry]
        return {entry["name"]: (host, entry["containerID"].split("//")[1]) for entry in begun}

    def processes(self, name: str, container: str, namespace: str = "default") -> list[procs.Seen]:
        """What runs in a container."""
        _, identity = self.containers(name, namespace)[container]
        pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if identity in _group_of(entry)]
        spaces = set()
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):  # it ended while we looked
                spaces.add(procs.namespace_of(pid))
        return [seen for space in spaces for seen in procs.inside(space) if seen.pid in pids]


def _group_of(process: Path) -> str:
    try:
        return (process / "cgroup").read_text()
    except OSError:
        return ""  # it ended while we looked


def make_lab(folder: Path, made: Software, tied: bool = False, show: Sequence[Path] = ()) -> Lab:
    """A lab (down yet) with two hosts that can become nodes, and see `show` besides."""
    shared = folder / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    shared.chmod(0o1777)
    seen = [made.programs, made.system, made.images, *show]
    return Lab(folder, hosts.default_plans(2), tied=tied, show=seen, shared=shared)
