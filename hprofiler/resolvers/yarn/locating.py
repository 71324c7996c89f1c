"""From applications to hosts, each with its containers and what is known of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from hprofiler.errors import UsageError
from hprofiler.model import PROCESS, Host, Labels, Outcome, Status, Target
from hprofiler.resolvers.host_names import MAX_HOSTS, HostEntry, is_host
from hprofiler.resolvers.options import Located, TooMany, YarnOptions
from hprofiler.resolvers.yarn.applications import Application, application, parse_filter, running
from hprofiler.resolvers.yarn.containers import Container, by_node, containers
from hprofiler.resolvers.yarn.ids import attempt_of, is_application_id
from hprofiler.resolvers.yarn.rest import ResourceManager, Rest, YarnError, base_urls
from hprofiler.resolvers.yarn.site import configured
from hprofiler.resolvers.yarn.spark import SparkFacts, spark_facts

_AT_ONCE = 8


@dataclass(frozen=True)
class _Found:
    """The containers of one application and what is known of them."""

    containers: Sequence[Container]
    labels: Mapping[str, Labels]
    notes: Tuple[str, ...]


def locate(asked: str, options: YarnOptions) -> Located:
    """The hosts of what was asked for: an application's id, filters (`name=nightly*`), or "" for all.

    YarnError when the ResourceManagers do not answer, or nothing that runs is meant.
    """
    manager = _manager(options)
    chosen = _chosen(manager, asked, options.limit)
    found = _look_at_all(manager, chosen)
    hosts = _hosts(found, options.host_map)
    if not hosts:
        names = ", ".join(app.id for app in chosen[:5])
        raise YarnError(f"{names}: no container runs", "wait until it has one; `hprofiler apps` counts them")
    name = asked if is_application_id(asked) else f"yarn:{asked}" if asked else "every running application"
    return Located(
        Target("yarn", name),
        hosts,
        tuple(note for one in found for note in one.notes),
        lambda: _came_since(manager, chosen, hosts),
    )


def running_applications(asked: str, options: YarnOptions) -> List[Application]:
    """The running applications that a filter means, newest first; all for ""."""
    return running(_manager(options), parse_filter(asked))


def _manager(options: YarnOptions) -> ResourceManager:
    bases = base_urls(options.urls, "-c") if options.urls is not None else configured()
    if bases is None:
        raise UsageError(
            "where is the ResourceManager?", "name it with -c http://rm:8088, or set HADOOP_CONF_DIR"
        )
    return ResourceManager(Rest(options.ca_file), bases)


def _chosen(manager: ResourceManager, asked: str, limit: Optional[int]) -> List[Application]:
    if is_application_id(asked):
        return [application(manager, asked)]
    chosen = running(manager, parse_filter(asked))
    if not chosen:
        which = f" matches {asked}" if asked else ""
        raise YarnError(f"no running application{which} on {manager.base}", "`hprofiler apps` lists them")
    count = sum(app.containers for app in chosen)
    if limit is not None and count > limit:
        applications = "1 application" if len(chosen) == 1 else f"{len(chosen)} applications"
        raise TooMany(
            f"{applications} with {count} containers in all, and the limit is {limit}",
            "narrow it with -j yarn:name=…,user=…,queue=…, or say --yes",
        )
    return chosen


def _look_at_all(manager: ResourceManager, applications: Sequence[Application]) -> List[_Found]:
    """What is found of each. Of several one may fail, which is a note."""

    def look(app: Application) -> _Found:
        try:
            return _look(manager, app)
        except YarnError as error:
            if len(applications) == 1:
                raise
            return _Found((), {}, (f"the containers of {app.id} are not known: {error.reason}",))

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="hprofiler-yarn") as pool:
        return list(pool.map(look, applications))


def _look(manager: ResourceManager, app: Application) -> _Found:
    """Ask for one application's containers, and the Spark driver at the same time."""
    with ThreadPoolExecutor(1) as aside:
        asking = aside.submit(spark_facts, manager, app.id) if app.type == "SPARK" else None
        found, unknown = containers(manager, app.id)
        facts = asking.result() if asking else SparkFacts({})
    labels = {
        container.id: {
            "application": app.id,
            "app_attempt": attempt_of(container.id),
            "node": container.node,
            **facts.labels.get(container.id, {}),
        }
        for container in found
    }
    return _Found(found, labels, (*unknown, *facts.notes))


def _hosts(located: Sequence[_Found], host_map: Mapping[str, HostEntry]) -> List[Host]:
    labels: Dict[str, Labels] = {}
    for found in located:
        labels.update(found.labels)
    nodes = by_node(container for found in located for container in found.containers)
    if len(nodes) > MAX_HOSTS:
        raise YarnError(f"containers on more than {MAX_HOSTS} nodes", "name one application")
    hosts = []
    for node, ids in nodes.items():
        entry = _entry(node, host_map)
        known = {identity: labels[identity] for identity in ids}
        hosts.append(Host(node, entry.address, entry.user, entry.port, containers=known))
    return hosts


def _entry(node: str, host_map: Mapping[str, HostEntry]) -> HostEntry:
    """How SSH knows a node: by the map's word for its whole or its short name, else by the same name.

    YarnError for what is no host's name at all: it would end up in ssh's arguments.
    """
    if not is_host(node):
        raise YarnError(
            f"the ResourceManager names a node {node[:100]!r}, which is no host", "see who answers there"
        )
    return host_map.get(node) or host_map.get(node.partition(".")[0]) or HostEntry(node, None, None)


def _came_since(
    manager: ResourceManager, applications: Sequence[Application], hosts: Sequence[Host]
) -> Sequence[Outcome]:
    known = {container for host in hosts for container in host.containers}
    lines = []
    try:
        by_application = _look_at_all(manager, applications)
    except YarnError:
        return ()  # what can be said of its processes is in the ledger
    for found in by_application:
        for container in found.containers:
            if container.id not in known:
                what = found.labels[container.id].get(PROCESS, container.id)
                reason = f"{what} on {container.node} began during the recording and is not in it"
                lines.append(Outcome(container.node, Status.DEGRADED, "find", reason))
    return lines
