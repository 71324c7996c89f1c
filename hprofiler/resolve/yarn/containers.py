"""The containers of a running application, and the nodes they are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from hprofiler.base.answers import milliseconds, number, objects, text
from hprofiler.base.background import in_order
from hprofiler.resolve.host_names import MAX_HOSTS, is_host
from hprofiler.resolve.yarn.ids import belongs
from hprofiler.resolve.yarn.rest import OF_NODE, NotFound, ResourceManager, YarnError

_AT_ONCE = 32


@dataclass(frozen=True)
class Container:
    """A running container. `node` is its node in the cluster, `port` the port of the NodeManager. `started`
    is in milliseconds since 1970, 0 if it is unknown."""

    id: str
    node: str
    port: int | None = None
    started: int = 0


def containers(manager: ResourceManager, application: str) -> tuple[list[Container], list[str]]:
    """The running containers of the running attempt, and notes.

    This takes two requests to the ResourceManager. If it is too old for them, every node with containers is
    queried.
    """
    try:
        attempts = objects(manager.get(f"/apps/{application}/appattempts"), "appAttempts", "appAttempt")
        running = [
            identity
            for attempt in attempts
            if text(attempt, "appAttemptState") in ("RUNNING", "")
            and _is_attempt(identity := text(attempt, "appAttemptId"), application)
        ]
        if not running:
            return [], []
        newest = max(running, key=lambda identity: int(identity.rpartition("_")[2]))
        answer = manager.get(f"/apps/{application}/appattempts/{newest}/containers")
    except NotFound:
        return _from_nodes(manager, application)
    return _running(answer, application), []


def _is_attempt(identity: str, application: str) -> bool:
    """Whether it is an attempt of the application, safe in a URL."""
    begin, _, count = identity.rpartition("_")
    known = count.isascii() and count.isdecimal() and len(count) < 12
    return known and begin == f"appattempt_{application.partition('_')[2]}"


def _running(answer: object, application: str) -> list[Container]:
    found = []
    for container in objects(answer, "container"):
        identity = text(container, "containerId")
        address = text(container, "nodeHttpAddress") or text(container, "nodeId")
        node = host_of(address)
        if text(container, "containerState") == "RUNNING" and node and belongs(identity, application):
            found.append(Container(identity, node, _port(address), milliseconds(container, "startedTime")))
    return found


def host_of(address: str) -> str:
    """The host of `http://host:8042` or `host:8041`, with its case kept."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host = parts.hostname or ""
    except ValueError:
        return ""
    at = parts.netloc.lower().rfind(host)
    return parts.netloc[at : at + len(host)]


def _port(address: str) -> int | None:
    try:
        return urlsplit(address if "://" in address else f"//{address}").port or None
    except ValueError:
        return None


def _from_nodes(manager: ResourceManager, application: str) -> tuple[list[Container], list[str]]:
    nodes = objects(manager.get("/nodes", {"states": "RUNNING"}), "nodes", "node")
    busy = _addresses(nodes, manager.scheme)
    if len(busy) > MAX_HOSTS:
        raise YarnError(f"the ResourceManager has more than {MAX_HOSTS} nodes", "check the address")
    found: list[Container] = []
    unknown: list[str] = []

    def ask(base: str) -> tuple[list[Container], str]:
        """Keep only what is needed: there may be thousands."""
        node = busy[base]
        try:
            answer = manager.rest.get(f"{base}/ws/v1/node/containers", None, OF_NODE)
        except YarnError as error:
            return [], f"node {node} did not list its containers: {error.reason}"
        listed = objects(answer, "containers", "container")
        running = (text(item, "id") for item in listed if text(item, "state") == "RUNNING")
        port = _port(base)
        return [Container(identity, node, port) for identity in running if belongs(identity, application)], ""

    for there, failure in in_order(ask, list(busy), _AT_ONCE):
        found += there
        unknown += [failure] if failure else []
    return found, unknown


def _addresses(nodes: Iterable[Mapping[str, object]], scheme: str) -> dict[str, str]:
    """Nodes with containers: address of the NodeManager -> name."""
    busy = {}
    for node in nodes:
        address = text(node, "nodeHTTPAddress")
        try:
            parts = urlsplit(f"//{address}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            continue
        if number(node, "numContainers") and is_host(host) and port:
            shown = f"[{host}]" if ":" in host else host
            busy[f"{scheme}://{shown}:{port}"] = text(node, "nodeHostName") or host
    return busy
