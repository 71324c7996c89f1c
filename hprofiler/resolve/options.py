"""Options of the target, and the result of a resolver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError
from hprofiler.kubernetes import Access
from hprofiler.model import Host, JobAccount, Outcome, Present, Status, Target
from hprofiler.resolve.host_names import HostEntry

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster
    from hprofiler.resolve.yarn.rest import Body

_STARTED_TOLD = 20


class TooMany(UsageError):
    """More containers are running than the limit allows."""


@dataclass(frozen=True)
class YarnOptions:
    """Options for YARN.

    `urls` is the text of -c (None: from HADOOP_CONF_DIR), `ca_file` the trusted CAs. More running containers
    than `limit` are a `TooMany`, unless one application is named.
    """

    urls: str | None = None
    ca_file: str | None = None
    host_map: Mapping[str, HostEntry] = field(default_factory=dict)
    limit: int | None = None


@dataclass(frozen=True)
class KubernetesOptions:
    """Which pods of which cluster, and how to reach them.

    `namespace` None is the context's own. `containers` are names of containers (none: all), `fields` is a
    field selector. `via` is `exec` (the default for None) or `ssh`. `limit` as with YARN.
    """

    access: Access = field(default_factory=Access)
    namespace: str | None = None
    all_namespaces: bool = False
    containers: tuple[str, ...] = ()
    fields: str | None = None
    via: str | None = None
    host_map: Mapping[str, HostEntry] = field(default_factory=dict)
    limit: int | None = None


@dataclass(frozen=True)
class TargetOptions:
    """`hosts` is the text of -h; `hosts_file` the path of --hosts-file (`-` is stdin).

    `application` is an id, filters (`name=nightly*,user=etl`), or "" for all running applications. `pods`
    are label selectors, `KIND/NAME`, or "" for all.
    """

    hosts: str | None = None
    hosts_file: str | None = None
    application: str | None = None
    yarn: YarnOptions = YarnOptions()
    pods: tuple[str, ...] | None = None
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)


@dataclass(frozen=True)
class SparkDriver:
    """Spark's REST interface of a running application, or of a server that knows several (`application`
    None). `attempt` is "" for the newest. `ended` gives the interface that knows it once it has ended.

    `get` takes a path below `/api/v1` and its parameters, and returns the JSON and the answer's `Date`. It
    may raise HprofilerError. `open` takes a path, too, and gives a body of any length, None if it cannot.
    """

    application: str | None
    get: Callable[[str, Mapping[str, str]], tuple[object, str | None]]
    open: Callable[[str], AbstractContextManager[Body]] | None = None
    attempt: str = ""
    ended: Callable[[], SparkDriver] | None = None


@dataclass(frozen=True)
class Located:
    """The hosts of a target. `notes` say what is not known.

    `look` asks what the target has now, None if its hosts are fixed. `new_processes` returns outcomes for
    what changed since, but not for new containers with the given ids. Both may raise HprofilerError and are
    called on other threads, the latter with a short deadline. `absent` are outcomes for parts that cannot be
    visited. With a `cluster` the hosts are containers. `driver` is that of the only application, if it is one
    of Spark. `account` asks what the manager knows of the job at the end; it may raise HprofilerError, and is
    called on another thread.
    """

    target: Target
    hosts: list[Host]
    notes: tuple[str, ...] = ()
    look: Callable[[], Present] | None = None
    new_processes: Callable[[Collection[str]], Sequence[Outcome]] = lambda containers: ()
    absent: tuple[Outcome, ...] = ()
    cluster: Cluster | None = None
    driver: SparkDriver | None = None
    account: Callable[[], JobAccount] | None = None


def started(containers: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Outcomes of containers (host, name) that started during the recording, one for all further ones."""
    told = [(host, f"{name} started during the recording and is not in it") for host, name in containers]
    if more := told[_STARTED_TOLD:]:
        reason = f"{len(more)} more containers started during the recording and are not in it"
        told[_STARTED_TOLD:] = [(more[0][0], reason)]
    return [Outcome(host, Status.DEGRADED, "find", reason, code="new-process") for host, reason in told]
