"""Target, host, selector, process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]
_PIDS = re.compile(r"[0-9]+(?:,[0-9]+)*")
PROCESS = "process"
"""The label with a process's short name."""
PROGRAM = "program"
"""The label of a Spark driver with the name of its application, or of its program."""
OWNER = "owner"
"""Label of a container: the user whose processes belong to it."""
RUN_FOR = "run_for"
"""Label of a container: its application's user, who is trusted before other users."""
MANAGER_PORT = "manager_port"
"""Label of a container: the port of its node's manager."""
PARENT = "parent"
"""Label of a process that was found because it descends from a JVM: the pid of that JVM."""
STARTED = "started"
"""Label of a process that was found because it has started a JVM: the pid of that JVM."""
SCRIPT = "script"
"""Label of a Python program: the file, or the module, that it runs."""
HERE = "localhost"
"""The address of this machine, which is reached without SSH."""


@dataclass(frozen=True)
class Target:
    """What the user asked for: `kind` is local, hosts, yarn or kubernetes; `name` as typed."""

    kind: str
    name: str


@dataclass(frozen=True)
class Host:
    """A machine found by a resolver. `name` is shown in reports; `address` is where to connect.

    `containers` are labels by container id; if there are any, only their processes match. `prefixes` are
    labels by the beginning of ids: containers of the same applications, which may start later. `processes`
    are labels by pid. An `optional` host was not named by the user: if it has no shell, nothing is missing.
    `inside`: the host is a container, reached through the Kubernetes API server; its address is
    NAMESPACE/POD/CONTAINER.
    """

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    labels: Labels = field(default_factory=dict)
    containers: Mapping[str, Labels] = field(default_factory=dict)
    prefixes: Mapping[str, Labels] = field(default_factory=dict)
    processes: Mapping[int, Labels] = field(default_factory=dict)
    optional: bool = False
    inside: bool = False


@dataclass(frozen=True)
class Present:
    """What a target has now: its hosts, and whether its job is `over`; `for_good` if nothing of it can come
    any more."""

    hosts: Sequence[Host]
    over: bool = False
    for_good: bool = False


@dataclass(frozen=True)
class SliceRule:
    """How the name of a JVM's thread says to which slice of the job, such as a stage, its samples belong.

    Such threads are in JVMs with these main classes (`*` is any text; none: all), and their names begin with
    `prefix`. What the only group of `regex` finds in the name takes the place of `{}` in the slice's `name`.
    """

    prefix: str
    regex: str
    name: str
    main_class: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selector:
    """Which processes match. `text` is as typed; `query` is the protocol's selector object.

    `kind` is one of `rule` (a YAML selector), `pipe` (a shell pipe over the process list), `text` (a
    substring of the command line), `regex`, `pids` and `containers` (everything in the hosts' containers).
    With `native`, processes other than JVMs may match too. `roots` are the frames at which the job's own
    stacks start; none if they are not known. `slices` are rules for names of threads. `children` are rules
    for processes that match too if they descend from a JVM that matches, `starters` for one that has started
    such a JVM. `program_roots` are the roots of those of them that are the job's program. If `name` is given,
    only JVMs (or others) match that have it in their names.
    """

    text: str
    kind: str
    query: Mapping[str, Any]
    native: bool = False
    roots: tuple[str, ...] = ()
    program_roots: tuple[str, ...] = ()
    slices: tuple[SliceRule, ...] = ()
    children: tuple[Mapping[str, Any], ...] = ()
    starters: tuple[Mapping[str, Any], ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Process:
    """One process on one host. `start_time` (clock ticks since boot) guards against a reused pid.

    The version of a JVM may be unknown ("").
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

    def profile_labels(self, host: str) -> dict[str, str]:
        """Labels of its profiles on a host."""
        return {**self.labels, "host": host, "pid": str(self.pid), "process": self.label}


def pids_alone(text: str) -> bool:
    """Whether a word of the command line is a process id, or several: `123,456`."""
    return _PIDS.fullmatch(text) is not None
