"""What the command line says of the target, what a resolver is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError
from hprofiler.kubernetes import Access
from hprofiler.model import Host, Outcome, Target
from hprofiler.resolve.host_names import HostEntry

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster


class TooMany(UsageError):
    """More containers run than the limit. Nothing was asked of them yet."""


@dataclass(frozen=True)
class YarnOptions:
    """Where the ResourceManagers are, and what names SSH has for the cluster's hosts.

    `urls` is the text of -c (None: what HADOOP_CONF_DIR says), `ca_file` the CAs to trust. With `limit` more
    running containers than that are a `TooMany`, where not one application was named.
    """

    urls: str | None = None
    ca_file: str | None = None
    host_map: Mapping[str, HostEntry] = field(default_factory=dict)
    limit: int | None = None


@dataclass(frozen=True)
class KubernetesOptions:
    """Which pods of which cluster, and the way in.

    `namespace` None is the context's own. `containers` are the names of those that are meant (none: all),
    `fields` a field selector. `via` is `exec` (also where it is None) or `ssh`. `limit` as with YARN.
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
    """`hosts` is the text of -h; `hosts_file` the path of --hosts-file (`-` is standard input).

    `application` asks `yarn` for an application by its id, for those that filters mean
    (`name=nightly*,user=etl`), or for all that run (""). `pods` asks `kubernetes` for pods, once or
    several times: by a label selector, `KIND/NAME`, or for all ("").
    """

    hosts: str | None = None
    hosts_file: str | None = None
    application: str | None = None
    yarn: YarnOptions = YarnOptions()
    pods: tuple[str, ...] | None = None
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)


def _none_new() -> Sequence[Outcome]:
    return ()


@dataclass(frozen=True)
class Located:
    """The hosts of a target. `notes` say what could not be learnt of it.

    `new_processes` returns ledger lines for what joined the target since it was located. It raises
    HprofilerError where that cannot be learnt, and is called on another thread, which nobody waits for long.
    `absent` are those of what belongs to it and cannot be visited. With a `cluster` the hosts are containers.
    """

    target: Target
    hosts: list[Host]
    notes: tuple[str, ...] = ()
    new_processes: Callable[[], Sequence[Outcome]] = _none_new
    absent: tuple[Outcome, ...] = ()
    cluster: Cluster | None = None


@dataclass(frozen=True)
class Resolver:
    """`option` is the command line's word for it; `is_asked` says whether the options name its target."""

    option: str
    is_asked: Callable[[TargetOptions], bool]
    resolve: Callable[[TargetOptions], Located]
