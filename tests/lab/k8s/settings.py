"""The configuration files and command lines of the cluster's programs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.lab.k8s import images

SERVICES = "10.96.0.0/16"
API_ADDRESS = "10.96.0.1"
"""The API server's address for pods."""
CERTIFICATES = "/data/certificates"
"""Of the API server, on coord."""
CONTROLLERS = (
    "deployment,replicaset,statefulset,daemonset,job,endpointslice,serviceaccount,root-ca-cert-publisher,"
    "namespace,garbage-collector-controller,node-lifecycle-controller"
)
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def kubeconfig(server: str, authority: bytes, token: str) -> str:
    """A kubeconfig (JSON is YAML) of the user with this token."""
    certificate = base64.b64encode(authority).decode()
    content = {
        "clusters": [
            {"name": "lab", "cluster": {"server": server, "certificate-authority-data": certificate}}
        ],
        "users": [{"name": "lab", "user": {"token": token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab", "namespace": "default"}}],
        "current-context": "lab",
    }
    return json.dumps({"apiVersion": "v1", "kind": "Config", **content})


def etcd() -> list[str]:
    return ["etcd", "--data-dir=/data/etcd", "--unsafe-no-fsync", "--log-level=warn"]


def apiserver(folder: str, address: str) -> list[str]:
    """The API server makes its own certificate, and does not check those of the kubelets."""
    return [
        "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0",
        f"--advertise-address={address}", "--secure-port=443", "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true", f"--cert-dir={CERTIFICATES}",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={folder}/tokens.csv", "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/accounts.key",
        f"--service-account-signing-key-file={folder}/accounts.key",
        f"--audit-policy-file={folder}/audit.json", "--audit-log-path=/data/audit.log",
    ]  # fmt: skip


def controller_manager(folder: str) -> list[str]:
    return [
        "kube-controller-manager", f"--kubeconfig={folder}/controllers.kubeconfig", "--leader-elect=false",
        "--bind-address=127.0.0.1", f"--controllers={CONTROLLERS}",
        "--use-service-account-credentials=false", "--flex-volume-plugin-dir=/data/flex",
        f"--service-account-private-key-file={folder}/accounts.key",
        f"--root-ca-file={CERTIFICATES}/apiserver.crt",
    ]  # fmt: skip


def scheduler(folder: str) -> list[str]:
    own = f"--kubeconfig={folder}/scheduler.kubeconfig"
    return ["kube-scheduler", own, "--leader-elect=false", "--bind-address=127.0.0.1"]


def kubelet() -> dict[str, Any]:
    """kubelet's configuration file. Any client in the lab's network has all rights."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 60,
        "volumePluginDir": "/data/volume-plugins",
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
    }


def containerd(system: Path, network: str) -> str:
    """containerd's configuration file."""
    return f"""\
version = 2
root = "/data/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{images.PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{system}/usr/lib/cni"
    conf_dir = "{network}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{system}/usr/sbin/runc"
"""


def network(pods: str) -> dict[str, Any]:
    """The network plugin's configuration: a bridge on the node; pods are routed, not translated."""
    addresses = {
        "type": "host-local",
        "dataDir": "/run/pod-addresses",
        "ranges": [[{"subnet": pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "lab", "plugins": [bridge]}
