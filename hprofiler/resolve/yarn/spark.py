"""The Spark driver's executors, queried through the ResourceManager's proxy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from hprofiler.base.answers import mapping, number, objects, text
from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.model import PROCESS
from hprofiler.resolve.host_names import is_host
from hprofiler.resolve.options import SparkDriver
from hprofiler.resolve.yarn.ids import container_id
from hprofiler.resolve.yarn.rest import OF_DRIVER, ResourceManager, Rest, YarnError

_STAGES_NAMED = 5
_PAGE_OF = re.compile(r"/(?:history|api/v1/applications)/([A-Za-z0-9_-]{1,200})(?:/([0-9]{1,9}))?(?:/.*)?$")
_PROXIED = re.compile(r"/proxy/(application_[0-9_]{1,40})(?:/.*)?$")
_BELOW_BASE = re.compile(r"/(?:api(?:/v1)?|jobs|stages|storage|environment|executors|SQL)(?:/.*)?$")
_NOWHERE = "the Spark driver runs outside of containers at an unknown address, and is not profiled"


@dataclass(frozen=True)
class Driver:
    """A driver in client mode, outside containers: its address."""

    host: str
    port: int

    @property
    def id(self) -> str:
        """Its id among container ids (agents/PROTOCOL.md)."""
        return f"spark_driver_{self.port}"


@dataclass(frozen=True)
class SparkFacts:
    """Labels of each container by its id; `notes` say what the driver did not report."""

    labels: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...] = ()
    driver: Driver | None = None


def spark_facts(manager: ResourceManager, application: str) -> SparkFacts:
    """Executor ids, roles and active stages. If the driver does not answer, only these labels are missing."""
    api = f"/proxy/{application}/api/v1/applications/{application}"
    try:
        executors = objects(manager.ask(f"{api}/executors", None, OF_DRIVER))
        active = objects(manager.ask(f"{api}/stages", {"status": "active"}, OF_DRIVER))
    except YarnError as error:
        return SparkFacts({}, (f"the Spark driver did not list its executors: {error.reason}",))
    numbers = sorted({number(stage, "stageId") for stage in active})
    stages = ", ".join(map(str, numbers[:_STAGES_NAMED])) + (", …" if len(numbers) > _STAGES_NAMED else "")
    labels: dict[str, dict[str, str]] = {}
    driver = None
    notes = []
    for executor in executors:
        identity, container = text(executor, "id", limit=64), _container(executor)
        if identity == "driver" and container is None:
            driver = _driver(text(executor, "hostPort", limit=300))
            container = driver.id if driver else None
            notes += [] if driver else [_NOWHERE]
        if not identity or container is None:
            continue
        role = "driver" if identity == "driver" else "executor"
        shown = identity if role == "driver" else f"executor {identity}"
        labels[container] = {"role": role, "executor": identity, PROCESS: shown}
        if stages and number(executor, "activeTasks"):
            labels[container]["stage"] = stages
    return SparkFacts(labels, tuple(notes[:1]), driver)


def driver_of(manager: ResourceManager, application: str) -> SparkDriver:
    """The REST interface of an application's driver, through the ResourceManager's proxy."""
    base = f"/proxy/{application}/api/v1"
    return SparkDriver(
        application, lambda path, parameters: manager.ask_dated(base + path, parameters, OF_DRIVER)
    )


def driver_at(address: str, ca_file: str | None) -> SparkDriver:
    """The REST interface at the address of a driver's or a history server's page. Raises UsageError.

    `http://driver:4040/jobs/`, `http://history:18080/history/ID/1/stages` and addresses of the interface
    itself are known.
    """
    word = address if "://" in address else f"http://{address}"
    parts = urlsplit(word)
    try:
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        is_address = False
    if not is_address or not word.isprintable() or " " in word:
        remedy = "write --spark http://driver:4040, or name an event log"
        raise UsageError(f"--spark: {shown_url(address)!r} is not an address", remedy)
    named = _PAGE_OF.search(parts.path)
    base = _BELOW_BASE.sub("", parts.path[: named.start()] if named else parts.path).rstrip("/")
    base = urlunsplit((parts.scheme, parts.netloc, f"{base}/api/v1", "", ""))
    rest = Rest(ca_file)
    rest.know([word])

    def get(path: str, parameters: Mapping[str, str]) -> tuple[object, str | None]:
        return rest.get_dated(base + path, parameters, OF_DRIVER)

    proxied = _PROXIED.search(parts.path)
    application = named.group(1) if named else proxied.group(1) if proxied else None
    attempt = (named.group(2) or "") if named else ""
    return SparkDriver(application, get, lambda path: rest.opened(base + path), attempt)


def _host(address: str) -> str:
    """The host of `host:port`, or ""."""
    host = address.rpartition(":")[0]
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return host if is_host(host) else ""


def _driver(address: str) -> Driver | None:
    """The driver at `host:port`, or None."""
    host, port = _host(address), address.rpartition(":")[2]
    known = host and port.isdecimal() and 0 < int(port) < 1 << 16
    return Driver(host, int(port)) if known else None


def _container(executor: object) -> str | None:
    """The container of an executor, from its attributes (Spark 3) or the address of its logs."""
    addresses = list(mapping(executor, "executorLogs").values())[:20]
    places = [
        text(executor, "attributes", "CONTAINER_ID"),
        *(one for one in addresses if isinstance(one, str)),
    ]
    return next((found for place in places if (found := container_id(place[:2000]))), None)
