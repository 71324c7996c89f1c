"""Files in HDFS, by WebHDFS: what a path is, what a folder holds, and a file's bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from hprofiler.base.answers import objects, text
from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.resolve.yarn.rest import Body, NotFound, Rest, YarnError

_SCHEMES = {"hdfs": "http", "webhdfs": "http", "swebhdfs": "https"}
_RPC_PORTS = (8020, 9000, 9820)
_WEB_PORTS = {"http": 9870, "https": 9871}
_EXAMPLE = "write hdfs://namenode:9870/path (the port of its web page)"


@dataclass(frozen=True)
class HdfsPath:
    """A path on one of the NameNodes `bases` (their web addresses); the active one answers."""

    bases: tuple[str, ...]
    path: str

    def names(self, rest: Rest) -> list[str] | None:
        """Names of the files in a folder; None for a file. Raises YarnError."""
        answer = self._ask(rest, "LISTSTATUS")
        found = objects(answer, "FileStatuses", "FileStatus")
        if len(found) == 1 and not text(found[0], "pathSuffix"):
            return None
        return [text(one, "pathSuffix") for one in found if text(one, "type") == "FILE"]

    @contextmanager
    def open(self, rest: Rest) -> Iterator[Body]:
        """The bytes of a file, to the end of what is written of it. Raises YarnError."""
        base = self._active(rest)
        with rest.opened(_url(base, self.path), _parameters("OPEN"), anywhere=True) as body:
            yield body

    def joined(self, name: str) -> HdfsPath:
        return HdfsPath(self.bases, f"{self.path.rstrip('/')}/{name}")

    def _ask(self, rest: Rest, operation: str) -> object:
        failures = []
        for base in self.bases:
            try:
                return rest.get(_url(base, self.path), _parameters(operation))
            except NotFound as error:
                raise YarnError(f"hdfs: {self.path} does not exist", "check the path") from error
            except YarnError as error:  # a standby NameNode answers 403
                failures.append(error)
        raise failures[0]

    def _active(self, rest: Rest) -> str:
        if len(self.bases) == 1:
            return self.bases[0]
        for base in self.bases:
            try:
                rest.get(_url(base, "/"), _parameters("GETFILESTATUS"))
                return base
            except YarnError:
                continue
        return self.bases[0]


def hdfs_path(address: str, environment: Mapping[str, str] = os.environ) -> HdfsPath:
    """The path of an hdfs:// address. Raises UsageError if it does not say which NameNode.

    A name service, or an address without a host, is looked up in `hdfs-site.xml`.
    """
    # A path may have a "?" or "#" in it: HDFS's addresses have no queries.
    start, slash, path = address.partition("://")[2].partition("/")
    try:
        parts = urlsplit(f"//{start}")
        host, port = _host(parts.netloc), parts.port
    except ValueError:
        raise UsageError(f"{shown_url(address)} is not an address", _EXAMPLE) from None
    scheme = _SCHEMES[address.partition("://")[0].lower()]
    configured = _configured(host, scheme, environment) if port is None else ()
    if configured:
        return HdfsPath(tuple(f"{scheme}://{one}" for one in configured), slash + path or "/")
    if not host:
        raise UsageError(f"{shown_url(address)} names no NameNode", _EXAMPLE)
    web = _WEB_PORTS[scheme] if port is None or port in _RPC_PORTS else port
    name = f"[{host}]" if ":" in host else host
    login, at, _ = parts.netloc.rpartition("@")
    return HdfsPath((f"{scheme}://{login}{at}{name}:{web}",), slash + path or "/")


def _host(place: str) -> str:
    """The host of `user@host:port`, in upper and lower case as it is written: names of services have both."""
    name = place.rpartition("@")[2]
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]


def _configured(service: str, scheme: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Web addresses of a name service's NameNodes, or of the only one, by the files of HADOOP_CONF_DIR."""
    from hprofiler.base.paths import is_file
    from hprofiler.resolve.yarn.site import properties_of, value_of

    folder = Path(environment.get("HADOOP_CONF_DIR") or "/nonexistent")
    properties: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml"):
        if is_file(folder / name):
            properties.update(properties_of(folder / name))
    default = _host(urlsplit(value_of(properties, "fs.defaultFS")).netloc)
    nodes = value_of(properties, f"dfs.ha.namenodes.{service or default}").split(",")
    key = f"dfs.namenode.{scheme}-address"
    names = [f"{key}.{service or default}.{node.strip()}" for node in nodes if node.strip()]
    found = tuple(one for name in names if (one := value_of(properties, name)))
    if found or service or not default:
        return found
    return (value_of(properties, key) or f"{default}:{_WEB_PORTS[scheme]}",)


def _url(base: str, path: str) -> str:
    return f"{base}/webhdfs/v1{quote(path)}"


def _parameters(operation: str) -> dict[str, str]:
    user = os.environ.get("HADOOP_USER_NAME", "")
    return {"op": operation, **({"user.name": user} if user else {})}
