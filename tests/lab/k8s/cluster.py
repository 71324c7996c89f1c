"""A Kubernetes cluster on the lab's hosts: the control plane on coord, a kubelet on each other host.

There is no kube-proxy and no name server, so services do not work.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tests.lab import hosts, procs
from tests.lab.hosts import Host, Lab, LabError
from tests.lab.k8s import groups, images, settings
from tests.lab.k8s.pods import Object
from tests.lab.k8s.software import Software

INSIDE = "/shared/k8s"
"""The folder with the cluster's settings on the hosts."""
SERVER_PORT = 443
UP_SECONDS = 120
PLAIN_USERS = ("admin", "controllers", "scheduler")
"""Users with a token and all rights."""
PODS = "/api/v1/namespaces/default/pods"
COLLECTIONS = {
    "Pod": PODS,
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
}


class KubeCluster:
    """The cluster on a lab with running hosts, which see `made` and a shared folder."""

    def __init__(self, lab: Lab, made: Software) -> None:
        assert lab.shared is not None
        self.lab = lab
        self.software = made
        self.folder = lab.shared / "k8s"
        self.kubeconfig = self.folder / "admin.kubeconfig"
        """The administrator's."""
        self.server = f"https://{lab.plans[0].address}"

    @property
    def nodes(self) -> list[Host]:
        """The hosts with a kubelet. Nodes are named like them."""
        return [host for host in self.lab.hosts.values() if host is not self.lab.coord]

    def ask(self, verb: str, path: str, content: Mapping[str, Any] | None = None) -> Object | None:
        """The API server's answer to its administrator. None: no such object. LabError: a refusal."""
        token = json.loads((self.folder / "tokens.json").read_text())["admin"]
        words = ["-X", verb, "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json"]
        words += [] if content is None else ["-d", json.dumps(content)]
        answer: Object = json.loads(self.lab.curl(self.server + path, "--insecure", *words) or "{}")
        if answer.get("kind") == "Status" and answer.get("status") == "Failure":
            if answer["code"] == 404:
                return None
            raise LabError(f"{verb} {path}: {answer['message']}")
        return answer

    # The cluster's own life

    def up(self) -> KubeCluster:
        """Start everything and wait until every node is ready."""
        groups.sweep()
        self._write_secrets()
        self._wire()
        coord = self.lab.coord
        self._start(coord, settings.etcd())
        self._start(coord, settings.apiserver(INSIDE, coord.plan.address))
        procs.wait_for(
            "an API server", lambda: self.lab.curl(f"{self.server}/readyz", "-k") == "ok", UP_SECONDS
        )
        self._write_kubeconfigs()
        self._start(coord, settings.controller_manager(INSIDE))
        self._start(coord, settings.scheduler(INSIDE))
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._make_node, self.nodes))
        for node in self.nodes:
            procs.wait_for(f"node {node.name} ready", partial(self._is_ready, node.name), UP_SECONDS)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        procs.wait_for("the default service account", lambda: self.ask("GET", account), UP_SECONDS)
        return self

    def down(self) -> None:
        """Take the hosts down, and with them the cluster."""
        self.lab.down()
        groups.sweep()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self, node: str) -> bool:
        found = self.ask("GET", f"/api/v1/nodes/{node}") or {}
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
                    other.run(["ip", "route", "add", self._pods_of(node), "via", node.plan.address])

    def _pods_of(self, node: Host) -> str:
        """The node's part of the pods' network."""
        return f"10.244.{node.plan.address.rsplit('.', 1)[1]}.0/24"

    def _write_secrets(self) -> None:
        """Tokens, and the key that service accounts' tokens are signed with."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        key = ["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""]
        subprocess.run([*key, "-f", str(self.folder / "accounts.key")], check=True)
        (self.folder / "audit.json").write_text(json.dumps(settings.AUDIT_POLICY))
        tokens = {name: secrets.token_hex(16) for name in (*PLAIN_USERS, *(node.name for node in self.nodes))}
        (self.folder / "tokens.json").write_text(json.dumps(tokens))
        lines = [f"{tokens[name]},{name},{name},system:masters" for name in PLAIN_USERS]
        lines += [
            f"{tokens[node.name]},system:node:{node.name},{node.name},system:nodes" for node in self.nodes
        ]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")

    def _write_kubeconfigs(self) -> None:
        tokens = json.loads((self.folder / "tokens.json").read_text())
        for name in PLAIN_USERS:
            self.write_kubeconfig(name, tokens[name])
        for node in self.nodes:
            folder = self.folder / node.name
            (folder / "network").mkdir(parents=True)
            self.write_kubeconfig(f"{node.name}/kubelet", tokens[node.name])
            network = f"{INSIDE}/{node.name}/network"
            (folder / "kubelet.json").write_text(json.dumps(settings.kubelet()))
            (folder / "containerd.toml").write_text(settings.containerd(self.software.system, network))
            (folder / "network/lab.conflist").write_text(json.dumps(settings.network(self._pods_of(node))))

    @property
    def authority(self) -> bytes:
        """The certificate for trusting the API server."""
        return self.lab.coord.path(f"{settings.CERTIFICATES}/apiserver.crt").read_bytes()

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """NAME.kubeconfig for the user with a token."""
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(settings.kubeconfig(self.server, self.authority, token))
        return path

    def account(self, name: str, rules: Sequence[Mapping[str, Any]]) -> Path:
        """Create a service account with a role of these rules; returns its kubeconfig."""
        base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        who = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        self.ask("POST", accounts, {"metadata": {"name": name}})
        self.ask("POST", f"{base}/roles", {"metadata": {"name": name}, "rules": list(rules)})
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [who]}
        self.ask("POST", f"{base}/rolebindings", binding)
        answer = self.ask("POST", f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 36000}})
        assert answer is not None
        return self.write_kubeconfig(name, answer["status"]["token"])

    def audit(self) -> list[Object]:
        """The API server's audit log of all requests, in order."""
        lines = self.lab.coord.path("/data/audit.log").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    # Pods

    def create(self, *manifests: Object) -> None:
        """Create the objects of these manifests."""
        for manifest in manifests:
            self.ask("POST", COLLECTIONS[manifest["kind"]], manifest)

    def pod(self, name: str) -> Object | None:
        return self.ask("GET", f"{PODS}/{name}")

    def statuses(self, name: str) -> list[Object]:
        """Of a pod's containers."""
        found: list[Object] = ((self.pod(name) or {}).get("status") or {}).get("containerStatuses", [])
        return found

    def wait_until_running(self, *names: str) -> None:
        """Wait until all containers of these pods run."""

        def runs(name: str) -> bool:
            found = self.statuses(name)
            return bool(found) and all("running" in entry["state"] for entry in found)

        for name in names:
            procs.wait_for(f"pod {name} running", partial(runs, name), UP_SECONDS)

    def wait_until_waiting(self, name: str, reason: str) -> None:
        """Wait until a container of the pod waits for that reason, such as "CrashLoopBackOff"."""

        def waits() -> bool:
            return any(one["state"].get("waiting", {}).get("reason") == reason for one in self.statuses(name))

        procs.wait_for(f"{name}: {reason}", waits, UP_SECONDS)

    def remove(self, *names: str, kind: str = "Pod") -> None:
        """Delete pods at once, or deployments, and wait until they are gone."""
        at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        for name in names:
            self.ask("DELETE", f"{COLLECTIONS[kind]}/{name}", at_once)
        for name in names:
            path = f"{COLLECTIONS[kind]}/{name}"
            procs.wait_for(f"{name} gone", lambda path=path: self.ask("GET", path) is None, UP_SECONDS)

    def containers(self, name: str) -> dict[str, tuple[Host, str]]:
        """The node and the id of each container of a pod, by name."""
        pod = self.pod(name)
        assert pod is not None, f"no pod {name}"
        host = self.lab.hosts[pod["spec"]["nodeName"]]
        found = [
            *pod["status"].get("containerStatuses", []),
            *pod["status"].get("ephemeralContainerStatuses", []),
        ]
        begun = [entry for entry in found if "containerID" in entry]
        return {entry["name"]: (host, entry["containerID"].split("//")[1]) for entry in begun}

    def processes(self, name: str, container: str) -> list[procs.Seen]:
        """The processes in a container."""
        _, identity = self.containers(name)[container]
        pids, spaces = set(), set()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                if identity in (entry / "cgroup").read_text():
                    pids.add(int(entry.name))
                    spaces.add(procs.namespace_of(int(entry.name)))
        return [seen for space in spaces for seen in procs.inside(space) if seen.pid in pids]


def make_lab(folder: Path, made: Software, tied: bool = False) -> Lab:
    """A lab, not started, with two hosts that can become nodes."""
    shown = [made.programs, made.system, made.images]
    return Lab(folder, hosts.default_plans(2), tied=tied, show=shown, shared=folder / "shared")
