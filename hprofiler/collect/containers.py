"""A host's containers: whose processes are trusted, and names for messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hprofiler.agent.messages import Ignored
from hprofiler.base.text import some
from hprofiler.model import (
    MANAGER_PORT,
    OWNER,
    PARENT,
    PROCESS,
    PROGRAM,
    RUN_FOR,
    STARTED,
    Host,
    Labels,
    Outcome,
    Process,
    Status,
)

_EMPTY_TOLD = 20
_VERSION = re.compile(r"(?<=^python)[\d.]+$")
_UNSEEN_TOLD = 5


def with_relatives(processes: Sequence[Process], earlier: Sequence[Process] = ()) -> tuple[Process, ...]:
    """Children of JVMs, and what has started one, get the labels of these, and are named after them: "python
    of executor 12", or "python of DailyReport" where the JVM is the driver of that program. Their JVMs may
    be `earlier` ones."""
    by_pid = {str(one.pid): one for one in (*earlier, *processes)}

    def named(process: Process) -> Process:
        parent = by_pid.get(_jvm(process))
        if parent is None:
            return process
        name = _VERSION.sub("", process.label.partition(" of ")[0])
        label = f"{name} of {parent.labels.get(PROGRAM, parent.label)}"
        return replace(process, label=label, labels={**parent.labels, **process.labels})

    return tuple(map(named, processes))


def _jvm(process: Process) -> str:
    return process.labels.get(PARENT) or process.labels.get(STARTED, "")


def by_name(
    processes: Sequence[Process], name: str, earlier: Sequence[Process] = ()
) -> tuple[tuple[Process, ...], list[Ignored]]:
    """Those with this text in their names, and their relatives; the names of all if there are none."""
    known = (*earlier, *processes)
    named = {str(one.pid) for one in known if name.casefold() in one.label.casefold()}
    kept = tuple(one for one in processes if not named.isdisjoint((str(one.pid), _jvm(one))))
    others = () if kept else processes
    return kept, [Ignored(one.pid, f"its name is {one.label}", False) for one in others]


class Contained:
    """The containers of one host, if it has any."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def owners(self) -> dict[str, str]:
        """Users that the agent trusts if several users' processes claim a container."""
        prefixes = {f"{prefix}*": labels for prefix, labels in self._host.prefixes.items()}
        known = {**self._host.containers, **prefixes}
        return {identity: labels[RUN_FOR] for identity, labels in known.items() if labels.get(RUN_FOR)}

    def manager_port(self) -> int | None:
        known = self._host.containers.values()
        ports = {int(labels[MANAGER_PORT]) for labels in known if MANAGER_PORT in labels}
        return ports.pop() if len(ports) == 1 else None

    def named(self, ignored: Ignored) -> Ignored:
        """The reason begins with the name of its container, if there is one."""
        if ignored.container not in self._host.containers:
            return ignored
        reason = f"{self._name(ignored.container)}: {ignored.reason}"
        return Ignored(ignored.pid, reason, ignored.doubtful, ignored.container)

    def doubt(self, process: Process) -> Outcome | None:
        """Why a process may not belong to its container; None if it is trusted."""
        owner = self._labels(process).get(OWNER, "")
        if not owner or process.user == owner or process.user.isdecimal():
            return None
        reason = (
            f"it runs as {process.user}, but the application as {owner}: it may belong to another application"
        )
        remedy = f"if it belongs to this application, name it: -j pid:{process.pid} -h {self._host.name}"
        return Outcome(
            self._host.name,
            Status.DEGRADED,
            "find",
            reason,
            remedy,
            process.pid,
            process.label,
            code="other-owner",
        )

    def known(self, process: Process) -> Process:
        """A process with the resolver's labels, which have priority."""
        known = dict(self._labels(process))
        known.update(self._host.processes.get(process.pid, {}))
        for name in (OWNER, RUN_FOR, MANAGER_PORT):
            known.pop(name, None)
        label = known.pop(PROCESS, process.label)
        if not process.is_jvm and label != process.label:
            # A worker or helper beside the JVM. It may know by itself whose it is.
            label = f"{process.label.partition(' of ')[0]} of {label}"
        return replace(process, label=label, labels={**process.labels, **known})

    def _labels(self, process: Process) -> Labels:
        """What the resolver knows of a process's container, or of its application."""
        container = process.labels.get("container", "")
        prefixes = (one for prefix, one in self._host.prefixes.items() if container.startswith(prefix))
        return self._host.containers.get(container) or next(prefixes, {})

    def empty(self, processes: Sequence[Process]) -> list[Outcome]:
        """Outcomes of containers (or pods) without a process to record."""
        # Once all is known of a process, its label may be the container's name in place of its id.
        own = (process.labels for process in processes)
        full = {_pod_of(labels) or self._pod(labels.get("container", "")) for labels in own}
        lines: list[Outcome] = []
        for container in self._host.containers:
            pod = self._pod(container)
            if pod not in full and len(lines) < _EMPTY_TOLD:
                full.add(pod)
                reason = f"no JVM of {self._pod_name(container)} was found"
                lines.append(Outcome(self._host.name, Status.DEGRADED, "find", reason, code="no-match"))
        return lines

    def pods(self) -> tuple[str, ...]:
        """Names of the pods, or of the containers without pods."""
        return tuple({self._pod(one): self._short_name(one) for one in self._host.containers}.values())

    def missing(self, names: Sequence[str]) -> str:
        """ "; executor 3 is missing", or "" if no name is known."""
        if not names or tuple(names) == tuple(map(self._pod, self._host.containers))[:1]:
            return ""
        return f"; {some(names, _UNSEEN_TOLD)} {'is' if len(names) == 1 else 'are'} missing"

    def _pod(self, container: str) -> str:
        """The pod of a container, or the container itself."""
        return _pod_of(self._host.containers.get(container, {})) or container

    def _short_name(self, container: str) -> str:
        labels = self._host.containers[container]
        is_pod = "pod" in labels and "role" not in labels
        return self._pod_name(container) if is_pod else labels.get(PROCESS, self._pod(container))

    def _pod_name(self, container: str) -> str:
        """Name of a container's pod for messages: from Spark, else "shop/web"."""
        labels = self._host.containers[container]
        if "pod" not in labels or "role" in labels:
            return self._name(container, self._pod(container))
        known, own = labels.get(PROCESS, ""), "/{pod}/{container}".format(**labels)
        if f"/{known}".endswith(own):
            return known[: -len(labels["container"]) - 1]
        return known or self._pod(container)

    def _name(self, container: str, place: str = "") -> str:
        """Name of a container for messages: "executor 3 (container_…)", "ns/pod/main"."""
        labels = self._host.containers[container]
        known = [labels[name] for name in ("namespace", "pod", "container") if name in labels]
        place = place or "/".join(known) or container
        label, pod = labels.get(PROCESS, ""), labels.get("pod")
        if not label or label == pod:
            return place
        return label if pod is not None and pod in label else f"{label} ({place})"


def _pod_of(labels: Labels) -> str:
    """NAMESPACE/POD; "" outside of Kubernetes."""
    return "/".join(labels[name] for name in ("namespace", "pod") if name in labels)
