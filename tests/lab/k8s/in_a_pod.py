"""hprofiler with what each pod has in place of a kubeconfig: files of its account, and two variables."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from tests.lab import cache
from tests.lab.coordinator import COMMAND, Coordinator
from tests.lab.k8s.cluster import KubeCluster
from tests.lab.k8s.settings import API_ADDRESS

_PLACE = "/run/secrets/kubernetes.io/serviceaccount"
_MOUNT = f'mount -t tmpfs lab /run && mkdir -p {_PLACE} && cp "$0"/* {_PLACE} && exec "$@"'


def as_in_a_pod(
    kube: KubeCluster, coordinator: Coordinator, kubeconfig: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, as the account whose kubeconfig this is."""
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    folder = coordinator.new_folder()
    (folder / "token").write_text(user["token"])
    (folder / "namespace").write_text("default")
    (folder / "ca.crt").write_bytes((kube.folder / "keys/ca.crt").read_bytes())
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(cache.CHECKOUT),
        "KUBERNETES_SERVICE_HOST": API_ADDRESS,
        "KUBERNETES_SERVICE_PORT": "443",
    }
    command = kube.lab.coordinator(["sh", "-c", _MOUNT, str(folder), *COMMAND, *words])
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
