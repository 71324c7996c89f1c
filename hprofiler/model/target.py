"""What the user asked for, and what it leads to: target, host, selector, process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]
PROCESS = "process"
"""The label that is a process's short name."""
OWNER = "owner"
"""Of a container that is not certain: whose processes are its. Others' are not believed to be."""
RUN_FOR = "run_for"
"""Of a container: its application's user, whose word that a process is in it goes before other users'."""
MANAGER_PORT = "manager_port"
"""Of a container: where its node's manager listens, as whose user it may run."""


@dataclass(frozen=True)
class Target:
    """What the user asked for: `kind` is local, hosts, yarn or kubernetes; `name` is what they typed."""

    kind: str
    name: str


@dataclass(frozen=True)
class Host:
    """One machine as a resolver yields it. `name` is what the reports show; `address` is where to connect.

    `containers` is what the resolver knows of the processes there: labels by container id. Where there are
    any, only their processes are meant. An `optional` host is one that nobody named: where it has no
    shell nothing is missing.

    One that is `inside` is a container that is visited through the API server of Kubernetes; its address is
    NAMESPACE/POD/CONTAINER.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    labels: Labels = field(default_factory=dict)
    containers: Mapping[str, Labels] = field(default_factory=dict)
    optional: bool = False
    inside: bool = False


@dataclass(frozen=True)
class Selector:
    """Which processes are meant. `text` is what the user typed; `query` is the protocol's selector object.

    `kind` is one of `rule` (a YAML selector), `pipe` (a shell pipe over the process list),
    `text` (a substring of the command line), `regex`, `pids` and `containers` (everything in the hosts'
    containers). With `native` processes that are no JVMs may match too. `roots` are the frames at which the
    job's own stacks begin, as `report.facts` reads them; none where they are not known.
    """

    text: str
    kind: str
    query: Mapping[str, Any]
    native: bool = False
    roots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Process:
    """One process on one host. `start_time` (clock ticks since boot) guards against a reused pid.

    Of some JVMs the version is not known ("").
    """

    host: str
    pid: int
    start_time: int
    uid: int
    user: str
    label: str
    main_class: str = ""
    command: str = ""
    namespace_pid: int | None = None
    jvm_version: str = ""
    labels: Labels = field(default_factory=dict)
    is_jvm: bool = False
