"""Pods → hosts: one per container (exec), or one per node (SSH)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from hprofiler.kubernetes import KubernetesError, NotRunning, connect
from hprofiler.model import PROCESS, Host, JobAccount, Labels, Note, Outcome, Present, Status, Target
from hprofiler.model.job import MOST_PARTS
from hprofiler.resolve.host_list import mapped, unused_map
from hprofiler.resolve.host_names import MAX_HOSTS, HostEntry, is_host
from hprofiler.resolve.kubernetes.asked import parse
from hprofiler.resolve.kubernetes.listing import Lister
from hprofiler.resolve.kubernetes.pods import Container, Idle, Pods
from hprofiler.resolve.options import KubernetesOptions, Located, TooMany, started

_IDLE_TOLD = 100
_REASONS = 5
_QUESTION_TOLD = 100
_LOOK = "check `kubectl get pods --show-labels`; -n names another namespace, -A selects all"
EXEC, SSH = "exec", "ssh"


def locate(typed: Sequence[str], options: KubernetesOptions) -> Located:
    """The requested containers. KubernetesError if none is running, or the list fails."""
    asked = [parse(one) for one in typed]
    name = " ".join(f"k8s:{one}" for one in typed)
    cluster = connect(options.access)
    lister = Lister(cluster, asked, options)
    pods = lister.pods()
    _check(name, pods, lister, options)
    via = options.via or EXEC
    hosts = _hosts(pods, via, options.host_map)
    if len(hosts) > MAX_HOSTS:
        raise KubernetesError(f"more than {MAX_HOSTS} of them", "narrow the selector")
    return Located(
        Target("kubernetes", name),
        hosts,
        tuple(_notes(pods, via, options)),
        _Looking(lister, via, options.host_map).look,
        lambda seen: _changed(lister, pods, via, seen),
        (*_unanswered(typed, pods, lister), *(_line(one, pods.home) for one in pods.idle[:_IDLE_TOLD])),
        cluster if via == EXEC else None,
        account=lambda: _account(lister, via),
    )


class _Looking:
    """Asks the API server for what the pods are now."""

    def __init__(self, lister: Lister, via: str, host_map: Mapping[str, HostEntry]) -> None:
        self._lister = lister
        self._via = via
        self._host_map = host_map
        self._had_ended = False

    def look(self) -> Present:
        """The job is over when its workload says so. Where none does, when all pods have ended at two looks:
        between two pods of a workload there may be none."""
        pods = self._lister.pods()
        says = self._lister.over()
        has_ended = not pods.running and all(one.status is Status.IDLE for one in pods.idle)
        over = has_ended and self._had_ended if says is None else says
        self._had_ended = has_ended
        return Present(_hosts(pods, self._via, self._host_map), over, for_good=says is True)


def _hosts(pods: Pods, via: str, host_map: Mapping[str, HostEntry]) -> list[Host]:
    return _containers(pods) if via == EXEC else _nodes(pods, host_map)


def _notes(pods: Pods, via: str, options: KubernetesOptions) -> list[str]:
    nodes = sorted({(one.node, one.address) for one in pods.running})
    notes = [*unused_map(options.host_map, nodes)] if via == SSH else []
    if pods.strange:
        notes.append(f"{pods.strange} pods have invalid names and are left out")
    if len(pods.idle) > _IDLE_TOLD:
        notes.append(f"{len(pods.idle) - _IDLE_TOLD} more containers are not running")
    return notes


def _check(asked: str, pods: Pods, lister: Lister, options: KubernetesOptions) -> None:
    """Raises KubernetesError if nothing is running, TooMany if too much is."""
    count = len(pods.running)
    if options.limit is not None and count > options.limit:
        raise TooMany(
            f"{asked} selects {count} containers; the limit is {options.limit}",
            "narrow it with more labels or --container, or add --yes",
        )
    if count:
        return
    where = _where(lister)
    if not pods.idle:
        raise NotRunning(_no_pod(asked, lister), _LOOK)
    shown = "; ".join(f"{one.shown}: {one.reason}" for one in pods.idle[:_REASONS])
    more = f"; and {len(pods.idle) - _REASONS} more" if len(pods.idle) > _REASONS else ""
    remedy = next((one.remedy for one in pods.idle if one.remedy), "")
    raise NotRunning(f"no container of {asked} {where} is running: {shown}{more}", remedy)


def _unanswered(typed: Sequence[str], pods: Pods, lister: Lister) -> list[Outcome]:
    """An outcome for each `-j` that matches nothing while others match."""
    nobody = [
        f"k8s:{one[:_QUESTION_TOLD]}" for one, count in zip(typed, pods.counts, strict=False) if not count
    ]
    return [
        Outcome(one, Status.FAILED, "find", _no_pod(one, lister), _LOOK, code="no-match") for one in nobody
    ]


def _no_pod(asked: str, lister: Lister) -> str:
    has = f" has a container {' or '.join(lister.containers)}" if lister.containers else ""
    return (
        f"no pod of {asked} {_where(lister)}{has}" if has else f"there is no pod of {asked} {_where(lister)}"
    )


def _where(lister: Lister) -> str:
    return "in all namespaces" if lister.namespace is None else f"in the namespace {lister.namespace}"


def _account(lister: Lister, via: str) -> JobAccount:
    parts = lister.lives(by_node=via == SSH)
    return JobAccount(
        manager="kubernetes",
        parts=tuple(parts[:MOST_PARTS]),
        left_out=max(0, len(parts) - MOST_PARTS),
    )


def _containers(pods: Pods) -> list[Host]:
    return [
        Host(
            name,
            "/".join(container.key),
            labels={"node": container.node} if container.node else {},
            containers={container.id: container.labels},
            optional=not container.alone,
            inside=True,
        )
        for container, name in zip(pods.running, _names(pods.running, pods.home), strict=False)
    ]


def _names(running: Sequence[Container], home: str | None) -> list[str]:
    """The shortest unique names: pod, pod/container, or with a namespace."""
    several = Counter((container.namespace, container.pod) for container in running)
    names = []
    for container in running:
        name = container.pod
        if several[container.namespace, container.pod] > 1:
            name = f"{name}/{container.name}"
        names.append(_in_namespace(container.namespace, name, home))
    return names


def _in_namespace(namespace: str, name: str, home: str | None) -> str:
    return name if namespace == home else f"{namespace}/{name}"


def _nodes(pods: Pods, host_map: Mapping[str, HostEntry]) -> list[Host]:
    """A host for each node, with what is known of its containers."""
    nodes: dict[tuple[str, str], dict[str, Labels]] = {}
    for container, name in zip(pods.running, _names(pods.running, pods.home), strict=False):
        labels = {**container.labels, PROCESS: _shown(container, name)}
        nodes.setdefault((container.node, container.address), {})[container.id] = labels
    hosts = []
    for (node, address), containers in sorted(nodes.items()):
        entry = _entry(node, address, host_map)
        hosts.append(Host(node or address, entry.address, entry.user, entry.port, containers=containers))
    return hosts


def _entry(node: str, address: str, host_map: Mapping[str, HostEntry]) -> HostEntry:
    """The SSH name of a node: from the map (by name or address), else its address."""
    for word in (node, address):
        if word and not is_host(word):
            raise KubernetesError(f"the API server names a node {word[:100]!r}, which is not a host")
    if not node and not address:
        raise KubernetesError("the API server does not say on which node a pod runs", "use --via exec")
    return mapped(host_map, node, address) or HostEntry(address or node, None, None)


def _line(idle: Idle, home: str | None) -> Outcome:
    name = _in_namespace(idle.namespace, idle.shown, home)
    return Outcome(name, idle.status, "find", idle.reason, idle.remedy, code="container-not-running")


def _changed(lister: Lister, before: Pods, via: str, seen: Collection[str]) -> Sequence[Outcome]:
    """Outcomes of containers that started, ended or restarted since, but of no new ones that were `seen`.

    KubernetesError if the list fails.
    """
    now = lister.pods()
    names = dict(zip((one.key for one in before.running), _names(before.running, before.home), strict=False))
    running = {one.key: one for one in now.running}
    ended = {(one.namespace, one.pod, one.name): one for one in now.idle}
    lines = []
    for container in before.running:
        what = _fate(container, running.get(container.key), ended)
        if what and via == EXEC:
            lines.append(
                Outcome(names[container.key], Status.DEGRADED, "record", what, code="container-restarted")
            )
        elif what:
            node, which = container.node or container.address, _shown(container, names[container.key])
            lines.append(
                Outcome(
                    node,
                    Status.DEGRADED,
                    "record",
                    f"{which}: {what}",
                    label=which,
                    code="container-restarted",
                    notes=(Note("container-restarted", what),),
                )
            )
    named = zip(now.running, _names(now.running, before.home), strict=False)
    new = [(name, _shown(one, name)) for one, name in named if one.key not in names and one.id not in seen]
    return [*lines, *started(new)]


def _fate(container: Container, now: Container | None, ended: Mapping[tuple[str, str, str], Idle]) -> str:
    """What happened to a container; "" if it is still running."""
    if now is not None and now.uid != container.uid:
        return "the pod was deleted during the recording, and another pod now has its name"
    if now is not None and now.id != container.id:
        return "the container was restarted during the recording"
    if now is not None and (container.leaving or not now.leaving):
        return ""
    idle = ended.get(container.key) or ended.get((container.namespace, container.pod, ""))
    if idle and not idle.leaving:
        return idle.reason
    deleted = "the pod was deleted during the recording"
    return f"{deleted}; its container ended with {idle.ending}" if idle and idle.ending else deleted


def _shown(container: Container, name: str) -> str:
    labels = container.labels
    return f"{labels[PROCESS]} ({name})" if PROCESS in labels else name
