"""Pods as the API server lists them: which containers are running, and why others are not. Everything is
checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from hprofiler.base.answers import mapping, member, number, objects, text
from hprofiler.model import PROCESS, JobPart, Status
from hprofiler.resolve.kubernetes.asked import is_id, is_name, is_short_name

_APP_LABELS = ("app.kubernetes.io/name", "app", "spark-app-name", "k8s-app", "component")
_FINAL = ("Succeeded", "Failed")
_CRASHED = "read its log: kubectl logs --previous"


class Container(NamedTuple):
    """A running container. `address` is that of its node; `alone`: no other container of the pod is running;
    `leaving`: the pod is being deleted. `uid` distinguishes pods of the same name."""

    namespace: str
    pod: str
    name: str
    id: str
    node: str
    address: str
    labels: Mapping[str, str]
    alone: bool
    leaving: bool = False
    uid: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.namespace, self.pod, self.name


class Idle(NamedTuple):
    """A container, or a pod (`name` ""), that is not running. `status` is FAILED if it should run;
    `leaving`: the pod is being deleted; `ending`: how it ended by itself."""

    namespace: str
    pod: str
    name: str
    status: Status
    reason: str
    remedy: str
    leaving: bool = False
    ending: str = ""

    @property
    def shown(self) -> str:
        return f"{self.pod}/{self.name}" if self.name else self.pod


class Pods(NamedTuple):
    """The result of a list of pods. `strange` counts pods with invalid names; `counts` has the number of
    containers per query."""

    running: list[Container]
    idle: list[Idle]
    strange: int
    counts: tuple[int, ...] = ()

    @property
    def home(self) -> str | None:
        """Their namespace; None if there are several."""
        namespaces = {one.namespace for one in self.running} | {one.namespace for one in self.idle}
        return namespaces.pop() if len(namespaces) == 1 else None


def read(items: Iterable[Mapping[str, Any]], only: Collection[str] = ()) -> Pods:
    """The containers of a list of pods; with `only`, those of these names."""
    running: list[Container] = []
    idle: list[Idle] = []
    strange = 0
    for pod in items:
        name, namespace = text(pod, "metadata", "name"), text(pod, "metadata", "namespace")
        if not is_name(name) or not is_short_name(namespace):
            strange += 1
            continue
        statuses = _statuses(pod, only)
        up = [status for status in statuses if _is_running(status) and not _is_over(pod)]
        running += [_container(pod, status, len(up) == 1) for status in up]
        down = _idle(pod, [status for status in statuses if status not in up], bool(up))
        idle += [one._replace(leaving=_is_leaving(pod)) for one in down]
    return Pods(running, idle, strange)


def lives(items: Iterable[Mapping[str, Any]], only: Collection[str], by_node: bool) -> list[JobPart]:
    """Containers that run or have ended; their hosts are nodes, or NAMESPACE/POD/CONTAINER."""
    found = []
    for pod in items:
        name, namespace = text(pod, "metadata", "name"), text(pod, "metadata", "namespace")
        statuses = _statuses(pod, only) if is_name(name) and is_short_name(namespace) else []
        for status in statuses:
            ended = mapping(status, "state", "terminated")
            state = ended or mapping(status, "state", "running")
            if not state:
                continue
            container = text(status, "name")
            where = text(pod, "spec", "nodeName") if by_node else f"{namespace}/{name}/{container}"
            part = JobPart(
                name=(f"{name}/{container}" if len(statuses) > 1 else name)[:255],
                host=where[:255],
                labels={"namespace": namespace, "pod": name, "container": container},
                started=_moment(state, "startedAt"),
                ended=_moment(ended, "finishedAt"),
            )
            found.append(part)
    return found


def _moment(state: Mapping[str, Any], name: str) -> float:
    """Seconds since 1970; 0 if it is not there."""
    try:
        return max(
            0.0, datetime.fromisoformat(text(state, name, limit=40).replace("Z", "+00:00")).timestamp()
        )
    except (ValueError, OverflowError):
        return 0.0


def _statuses(pod: Mapping[str, Any], only: Collection[str]) -> list[dict[str, Any]]:
    """Status of its containers, and of sidecars (listed among the init containers)."""
    sidecars = {
        text(spec, "name")
        for spec in objects(pod, "spec", "initContainers")
        if text(spec, "restartPolicy") == "Always"
    }
    known = objects(pod, "status", "containerStatuses")
    known += [one for one in objects(pod, "status", "initContainerStatuses") if text(one, "name") in sidecars]
    named = [one for one in known if is_short_name(text(one, "name"))]
    return [one for one in named if not only or text(one, "name") in only]


def _is_running(status: Mapping[str, Any]) -> bool:
    return isinstance(member(status, "state", "running"), dict) and is_id(_id(status))


def _is_leaving(pod: Mapping[str, Any]) -> bool:
    return bool(member(pod, "metadata", "deletionTimestamp"))


def _is_over(pod: Mapping[str, Any]) -> bool:
    """Whether it is finished for good, whatever its restart policy says."""
    return text(pod, "status", "phase", limit=50) in _FINAL


def _id(status: Mapping[str, Any]) -> str:
    """An id has the runtime's name: `containerd://0123…`."""
    return text(status, "containerID").rpartition("://")[2]


def _container(pod: Mapping[str, Any], status: Mapping[str, Any], alone: bool) -> Container:
    namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
    container, node = text(status, "name"), text(pod, "spec", "nodeName")
    labels = {"namespace": namespace, "pod": name, "container": container}
    if node:
        labels["node"] = node
    return Container(
        namespace,
        name,
        container,
        _id(status),
        node,
        text(pod, "status", "hostIP"),
        {**labels, **_derived(mapping(pod, "metadata", "labels"))},
        alone,
        _is_leaving(pod),
        text(pod, "metadata", "uid", limit=100),
    )


def _derived(own: Mapping[str, Any]) -> dict[str, str]:
    """Our labels, made from the pod's."""
    labels = {}
    app = next((found for name in _APP_LABELS if (found := text(own, name, limit=100))), "")
    if app:
        labels["app"] = app
    role, executor = text(own, "spark-role", limit=20), text(own, "spark-exec-id", limit=20)
    if role in ("driver", "executor"):
        labels["role"] = role
        labels["executor"] = executor if role == "executor" and executor else role
        labels[PROCESS] = f"executor {executor}" if role == "executor" and executor else role
    return labels


def _idle(pod: Mapping[str, Any], statuses: list[dict[str, Any]], some_run: bool) -> list[Idle]:
    """One entry per container that is not running, or one for the pod."""
    namespace, name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
    if not statuses:
        return [] if some_run else _unborn(pod, namespace, name)
    many = some_run or len(statuses) > 1
    found = []
    for status in statuses:
        if _is_over(pod):
            state, reason, remedy = Status.IDLE, _ended(pod, status), ""
        else:
            state, reason, remedy = _state(status, text(pod, "spec", "restartPolicy") or "Always")
            if remedy == _CRASHED:
                remedy = f"{remedy} -n {namespace} {name} -c {text(status, 'name')}"
        shown = text(status, "name") if many else ""
        found.append(Idle(namespace, name, shown, state, reason, remedy, ending=_by_itself(status)))
    return found


def _unborn(pod: Mapping[str, Any], namespace: str, name: str) -> list[Idle]:
    """A pod without a started container: it waits for a node, or ended long ago."""
    phase = text(pod, "status", "phase", limit=50)
    if phase in ("Running", ""):  # no container of that name
        return []
    if phase in _FINAL:
        return [Idle(namespace, name, "", Status.IDLE, _ended(pod, {}), "")]
    condition = next(
        (one for one in objects(pod, "status", "conditions") if text(one, "status") == "False"), {}
    )
    why = ": ".join(
        filter(None, (text(condition, "reason", limit=100), text(condition, "message", limit=300)))
    )
    reason = f"the pod is {phase}" + (f": {why}" if why else "")
    return [
        Idle(namespace, name, "", Status.FAILED, reason, f"run kubectl describe pod -n {namespace} {name}")
    ]


def _ended(pod: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """How a container ended for good: with its pod (`Evicted: …`), or by itself."""
    own = text(pod, "status", "reason", limit=100), text(pod, "status", "message", limit=300)
    last = mapping(status, "state", "terminated")
    if last and not any(own):
        return f"the container has ended: {ending(last)}"
    completed = text(pod, "status", "phase", limit=50) == "Succeeded"
    return f"the pod has ended: {': '.join(filter(None, own)) or ('Completed' if completed else 'Failed')}"


def _state(status: Mapping[str, Any], policy: str) -> tuple[Status, str, str]:
    """The state of a container that is not running."""
    waiting, ended = mapping(status, "state", "waiting"), mapping(status, "state", "terminated")
    if ended and (policy == "Always" or (policy == "OnFailure" and number(ended, "exitCode"))):
        return Status.FAILED, f"the container is restarting: {ending(ended)}", _CRASHED
    if ended:
        return Status.IDLE, f"the container has ended: {ending(ended)}", ""
    reason = text(waiting, "reason", limit=100) or "waiting"
    message = text(waiting, "message", limit=300)
    before = mapping(status, "lastState", "terminated")
    last = f"; its last end: {ending(before)}" if before else ""
    said = f": {message}" if message and not before else ""
    return Status.FAILED, f"the container is not running: {reason}{said}{last}", _remedy(reason)


def ending(ended: Mapping[str, Any]) -> str:
    """Text of a `terminated` state: `OOMKilled (exit code 137)`."""
    reason = text(ended, "reason", limit=100) or "Ended"
    signal = number(ended, "signal")
    code = f"signal {signal}" if signal else f"exit code {number(ended, 'exitCode')}"
    return f"{reason} ({code})"


def _by_itself(status: Mapping[str, Any]) -> str:
    """How a container ended last; "" if it finished or was stopped (SIGTERM)."""
    last = mapping(status, "state", "terminated") or mapping(status, "lastState", "terminated")
    told = number(last, "signal") == 15 or number(last, "exitCode") in (0, 143)
    return "" if not last or told else ending(last)


def _remedy(reason: str) -> str:
    if reason in ("CrashLoopBackOff", "RunContainerError"):
        return _CRASHED
    if "Image" in reason:
        return "check the image's name, and that the node can pull it"
    return ""
