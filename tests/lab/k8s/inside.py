"""What is in the containers of pods, seen from outside: no command has to be run in them."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, Iterator, Set, Tuple

from tests.lab.k8s.cluster import KubeCluster

LARGE = ("proc", "sys", "burner", "opt")
"""Folders in a container's root in which nothing can be left, or which are read-only."""

OF_THE_JVM = re.compile(r"/tmp(/\.java_pid\d+|/hsperfdata_\w+(/\d+)?)?|/dev/termination-log")
"""What a JVM or the kubelet may have put into a container."""


def files(kube: KubeCluster, names: Iterable[str]) -> Dict[str, Set[str]]:
    """Every path in each container of these pods, as it is in there."""
    found = {}
    for name in names:
        for container in kube.containers(name):
            inside = kube.processes(name, container)
            root = f"/proc/{min(seen.pid for seen in inside)}/root"
            found[f"{name}/{container}"] = set(_walk(root))
    return found


def _walk(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(f"{root}/"):
        inner = parent[len(root) :].rstrip("/")
        if not inner:
            folders[:] = [name for name in folders if name not in LARGE]
        yield from (f"{inner}/{name}" for name in folders + names)


def processes(kube: KubeCluster, names: Iterable[str]) -> Dict[str, Set[Tuple[int, str]]]:
    """What runs in each container of these pods."""
    return {
        f"{name}/{container}": {(seen.pid, seen.command) for seen in kube.processes(name, container)}
        for name in names
        for container in kube.containers(name)
    }
