"""Applications → hosts with their containers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hprofiler.base.answers import member, text
from hprofiler.base.background import in_order
from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.model import (
    MANAGER_PORT,
    OWNER,
    PROCESS,
    RUN_FOR,
    Host,
    JobAccount,
    JobPart,
    Labels,
    Outcome,
    Present,
    Target,
)
from hprofiler.model.job import MOST_PARTS
from hprofiler.resolve.host_list import mapped, unused_map
from hprofiler.resolve.host_names import MAX_HOSTS, HostEntry, is_host
from hprofiler.resolve.options import Located, SparkDriver, TooMany, YarnOptions, started
from hprofiler.resolve.yarn.applications import (
    Application,
    application,
    has_ended,
    if_running,
    parse_filter,
    running,
)
from hprofiler.resolve.yarn.containers import Container, containers
from hprofiler.resolve.yarn.ids import application_id, attempt_of, is_application_id, prefix_of
from hprofiler.resolve.yarn.mapreduce import MAPREDUCE, job_account
from hprofiler.resolve.yarn.rest import NotRunning, ResourceManager, Rest, YarnError, base_urls
from hprofiler.resolve.yarn.site import configured
from hprofiler.resolve.yarn.spark import SparkFacts, driver_at, driver_of, spark_facts

_AT_ONCE = 8


@dataclass(frozen=True)
class _Found:
    """The containers of one application, and the answer of its Spark driver."""

    containers: Sequence[Container]
    labels: Mapping[str, Labels]
    notes: tuple[str, ...]
    spark: SparkFacts = field(default_factory=lambda: SparkFacts({}))


def locate(asked: str, options: YarnOptions) -> Located:
    """The hosts of an application id, of filters (`name=nightly*`), or of all applications ("").

    YarnError if no ResourceManager answers, or nothing running matches.
    """
    manager = _manager(options)
    asked = application_id(asked)
    chosen = _chosen(manager, asked, options.limit)
    found = _found(manager, chosen, options.host_map)
    hosts = _hosts(found, options.host_map)
    if not hosts:
        names = ", ".join(app.id for app in chosen[:5])
        raise NotRunning(
            f"{names}: no running container", "wait until it has one: --wait; `hprofiler apps` counts them"
        )
    name = asked if is_application_id(asked) else f"yarn:{asked}" if asked else "every running application"
    notes = [note for one in found for note in one.notes]
    notes += unused_map(options.host_map, [(host.name,) for host in hosts])
    driver = None
    if len(chosen) == 1 and chosen[0].type == "SPARK":
        application = chosen[0].id
        driver = replace(driver_of(manager, application), ended=lambda: tracked(application, options))
    return Located(
        Target("yarn", name),
        hosts,
        tuple(notes),
        lambda: _present(manager, asked, options.host_map),
        lambda seen: _new_processes(manager, asked, hosts, seen),
        driver=driver,
        account=(lambda: _account(manager, chosen[0])) if len(chosen) == 1 and driver is None else None,
    )


def running_applications(asked: str, options: YarnOptions) -> list[Application]:
    """The running applications that match a filter, newest first; all for ""."""
    return running(_manager(options), parse_filter(asked))


def tracked(asked: str, options: YarnOptions) -> SparkDriver:
    """Spark's REST interface of an application: its driver while it runs, then the history server that YARN
    links to. Raises YarnError if there is none."""
    manager = _manager(options)
    app = member(manager.get(f"/apps/{asked}"), "app")
    if text(app, "state") == "RUNNING":
        return driver_of(manager, asked)
    page = text(app, "trackingUrl", limit=2000)
    remedy = "name its event log, or its page: http://history:18080/history/ID"
    if not page.startswith(("http://", "https://")):
        raise YarnError(f"{asked} is {text(app, 'state')}, and YARN links to no history server", remedy)
    with manager.rest.opened(page, anywhere=True) as body:
        found = driver_at(body.url, options.ca_file)
    if found.application is None:
        raise YarnError(f"{asked}: {shown_url(page)} is not the page of a history server", remedy)
    return found


def _manager(options: YarnOptions) -> ResourceManager:
    bases = base_urls(options.urls, "-c") if options.urls is not None else configured()
    if bases is None:
        raise UsageError(
            "no ResourceManager is configured", "name it with -c http://rm:8088, or set HADOOP_CONF_DIR"
        )
    return ResourceManager(Rest(options.ca_file), bases)


def _present(manager: ResourceManager, asked: str, host_map: Mapping[str, HostEntry]) -> Present:
    """The hosts of the applications now. Those that a filter matches may be others than before."""
    applications = _running_now(manager, asked)
    one = is_application_id(asked)
    over = not applications and (not one or has_ended(manager, asked))
    return Present(_hosts(_found(manager, applications, host_map), host_map), over, for_good=over and one)


def _running_now(manager: ResourceManager, asked: str) -> list[Application]:
    if is_application_id(asked):
        app = if_running(manager, asked)
        return [app] if app else []
    return running(manager, parse_filter(asked))


def _chosen(manager: ResourceManager, asked: str, limit: int | None) -> list[Application]:
    if is_application_id(asked):
        return [application(manager, asked)]
    chosen = running(manager, parse_filter(asked))
    if not chosen:
        which = f" matches {asked}" if asked else ""
        remedy = "`hprofiler apps` lists them; --wait waits for one"
        raise NotRunning(f"no running application{which} on {manager.base}", remedy)
    count = sum(app.containers for app in chosen)
    if limit is not None and count > limit:
        applications = "1 application" if len(chosen) == 1 else f"{len(chosen)} applications"
        raise TooMany(
            f"{applications} with {count} containers in all; the limit is {limit}",
            "narrow it with -j yarn:name=…,user=…,queue=…, or add --yes",
        )
    return chosen


def _found(
    manager: ResourceManager, applications: Sequence[Application], host_map: Mapping[str, HostEntry]
) -> list[_Found]:
    """Containers of each application, with drivers outside of containers."""
    looked = _look_at_all(manager, applications)
    nodes = {container.node for one in looked for container in one.containers}
    return [_with_driver(one, nodes, host_map) for one in looked]


def _look_at_all(manager: ResourceManager, applications: Sequence[Application]) -> list[_Found]:
    """Containers of each application. If one of several fails, that is a note."""

    def look(app: Application) -> _Found:
        try:
            return _look(manager, app)
        except YarnError as error:
            if len(applications) == 1:
                raise
            return _Found((), {}, (f"cannot list the containers of {app.id}: {error.reason}",))

    return list(in_order(look, applications, _AT_ONCE))


def _look(manager: ResourceManager, app: Application) -> _Found:
    """Get the containers of one application, and query its Spark driver at the same time."""
    asks: list[Callable[[], Any]] = [lambda: containers(manager, app.id)]
    asks += [lambda: spark_facts(manager, app.id)] if app.type == "SPARK" else []
    (found, unknown), facts = (*in_order(lambda ask: ask(), asks, 2), SparkFacts({}))[:2]
    labels = {
        container.id: {
            "application": app.id,
            "app_attempt": attempt_of(container.id),
            "node": container.node,
            **facts.labels.get(container.id, {}),
            # These distinguish its processes from those that only claim to belong to it.
            RUN_FOR: app.user,
            **({MANAGER_PORT: str(container.port)} if container.port else {}),
        }
        for container in found
    }
    if facts.driver:
        # The driver itself reports its port, and other users run drivers on the same host.
        labels[facts.driver.id] = {"application": app.id, OWNER: app.user, **facts.labels[facts.driver.id]}
    return _Found(found, labels, (*unknown, *facts.notes), facts)


def _with_driver(found: _Found, nodes: set[str], host_map: Mapping[str, HostEntry]) -> _Found:
    """Add a driver in client mode to the containers, if its host is visited anyway.

    A driver reports its own host and runs its user's code, so it must not decide which hosts are visited.
    """
    driver = found.spark.driver
    if driver is None:
        return found
    same = [node for node in sorted(nodes) if _is_same_host(node, driver.host)]
    if not same and not mapped(host_map, driver.host):
        note = (
            f"the Spark driver runs on {driver.host}, in no container, and is not profiled; "
            f"--host-map {driver.host}={driver.host} profiles it too"
        )
        return replace(found, notes=(*found.notes, note))
    container = Container(driver.id, same[0] if same else driver.host)
    return replace(found, containers=(*found.containers, container))


def _is_same_host(one: str, other: str) -> bool:
    """Whether two names mean the same host; a short name matches its long forms."""
    one, other = one.lower(), other.lower()
    return one == other or one.partition(".")[0] == other or one == other.partition(".")[0]


def _hosts(located: Sequence[_Found], host_map: Mapping[str, HostEntry]) -> list[Host]:
    nodes: dict[str, dict[str, Labels]] = {}
    for found in located:
        for container in found.containers:
            nodes.setdefault(container.node, {})[container.id] = found.labels[container.id]
    if len(nodes) > MAX_HOSTS:
        raise YarnError(f"containers on more than {MAX_HOSTS} nodes", "name one application")
    prefixes = {
        prefix: {name: value for name, value in labels.items() if name in ("application", RUN_FOR)}
        for found in located
        for identity, labels in found.labels.items()
        if (prefix := prefix_of(identity))
    }
    hosts = []
    for node, containers_there in sorted(nodes.items()):
        entry = _entry(node, host_map)
        known = dict(sorted(containers_there.items()))
        # A driver outside of containers may run where no container can begin.
        begin = prefixes if any(map(prefix_of, known)) else {}
        host = Host(node, entry.address, entry.user, entry.port, containers=known, prefixes=begin)
        hosts.append(host)
    return hosts


def _entry(node: str, host_map: Mapping[str, HostEntry]) -> HostEntry:
    """The SSH name of a node: from the map (long or short name), else the same name.

    YarnError for an invalid host name: it would become an argument of ssh.
    """
    if not is_host(node):
        raise YarnError(
            f"the ResourceManager names a node {node[:100]!r}, which is not a host", "check the address"
        )
    return mapped(host_map, node) or HostEntry(node, None, None)


def _account(manager: ResourceManager, app: Application) -> JobAccount:
    """What YARN, or the job, knows of its processes. Of others than MapReduce these are those that run."""
    if app.type == MAPREDUCE:
        return job_account(manager, app.id)
    running, _ = containers(manager, app.id) if if_running(manager, app.id) else ([], [])
    parts = [
        JobPart(name=one.id, host=one.node[:255], labels={"container": one.id}, started=one.started / 1e3)
        for one in running
    ]
    return JobAccount(manager="yarn", parts=tuple(parts[:MOST_PARTS]))


def _new_processes(
    manager: ResourceManager, asked: str, hosts: Sequence[Host], seen: Collection[str]
) -> Sequence[Outcome]:
    known = {container for host in hosts for container in host.containers}.union(seen)
    new: list[tuple[str, str]] = []
    for now in _look_at_all(manager, _running_now(manager, asked)):
        for one in now.containers:
            if one.id not in known:
                new.append((one.node, f"{now.labels[one.id].get(PROCESS, one.id)} on {one.node}"))
    return started(new)
