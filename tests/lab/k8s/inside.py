"""What is in the containers of pods, seen from outside: no command has to be run in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from tests.lab.k8s.cluster import KubeCluster
from tests.lab.procs import cpu_seconds, wait_for

LARGE = ("proc", "sys", "burner", "opt")
"""Folders in a container's root in which nothing can be left, or which are read-only."""

OF_THE_JVM = re.compile(r"/tmp(/\.java_pid\d+|/hsperfdata_\w+(/\d+)?)?|/dev/termination-log")
"""What a JVM or the kubelet may have put into a container."""


class Left:
    """What is in the containers of some pods; what comes after that should not be left there."""

    def __init__(self, kube: KubeCluster, names: Iterable[str]) -> None:
        self._kube = kube
        self._containers = [(name, container) for name in names for container in kube.containers(name)]
        self._processes, self._files = self._all_processes(), self._all_files()

    def check(self) -> None:
        """There are no other processes and files, but for what JVMs made themselves."""
        wait_for("the processes of before", lambda: self._all_processes() == self._processes, 60)
        for container, found in self._all_files().items():
            new = {path for path in found - self._files[container] if not OF_THE_JVM.fullmatch(path)}
            assert not new, (container, new)

    def _all_processes(self) -> dict[tuple[str, str], set[tuple[int, str]]]:
        return {
            one: {(seen.pid, seen.command) for seen in self._kube.processes(*one)} for one in self._containers
        }

    def _all_files(self) -> dict[tuple[str, str], set[str]]:
        found = {}
        for one in self._containers:
            root = f"/proc/{min(seen.pid for seen in self._kube.processes(*one))}/root"
            found[one] = set(_walk(root))
        return found


def burn_a_while(kube: KubeCluster, name: str) -> None:
    """Wait until the first process of a pod's container has used so much time that some of it is recorded."""
    java = first_process(kube, name)
    begun = cpu_seconds(java)
    wait_for("something to keep", lambda: cpu_seconds(java) > begun + 0.3, 120)


def first_process(kube: KubeCluster, name: str) -> int:
    """Of a pod's container main, as this machine knows it."""
    (found,) = (seen.pid for seen in kube.processes(name, "main") if seen.inner_pid == 1)
    return found


def _walk(root: str) -> Iterator[str]:
    for parent, folders, names in os.walk(f"{root}/"):
        inner = parent[len(root) :].rstrip("/")
        if not inner:
            folders[:] = [name for name in folders if name not in LARGE]
        yield from (f"{inner}/{name}" for name in folders + names)
