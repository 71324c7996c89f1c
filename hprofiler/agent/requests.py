"""Requests to the agent."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hprofiler.model import Sampling, SliceRule

PROTOCOL = 3
LEASE_SECONDS = 30
"""An agent waits this long for a request. Then it keeps what it recorded for as long again."""


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    """One request; its type on the wire is the name of its class."""


class Exclude(msgspec.Struct, frozen=True):
    """The coordinator's own process and its ancestors, which are never profiled."""

    boot_id: str
    pid_namespace: str
    pids: Sequence[int]


@functools.lru_cache(maxsize=1)
def own_processes() -> Exclude:
    """Nothing is excluded where there is no /proc."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot_id = namespace = ""
    pids: list[int] = []
    pid = os.getpid()
    while pid > 0 and pid not in pids:
        pids.append(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
    return Exclude(boot_id, namespace, pids)


class Hello(Request, frozen=True):
    """`resume` is the token by which another connection may continue the session."""

    resume: str
    audit: bool
    lease_seconds: float
    protocol: int = PROTOCOL
    exclude: Exclude = msgspec.field(default_factory=own_processes)


class Resume(Request, frozen=True):
    token: str
    received: int


class Received(Request, frozen=True):
    bytes: int


class Put(Request, frozen=True):
    """A file of `size` bytes follows."""

    name: str
    sha256: str
    size: int


class List(Request, frozen=True):
    pass


class Find(Request, frozen=True, omit_defaults=True):
    """The processes that match the protocol's selector object; `native`: also those that are not JVMs.

    With `containers` (ids) only what is in them, each process with its container's id as a label; there
    the selector may be None for all of it. `own` is the one of them that the agent itself is in; `owners` are
    the users of the containers' applications and `manager_port` is the NodeManager's, where they are known.
    Processes that match one of the rules `children` and descend from a JVM that is found are found too. So is
    one that has started such a JVM and matches one of the `starters`.
    """

    selector: Mapping[str, Any] | None
    native: bool = False
    containers: Sequence[str] | None = None
    own: str | None = None
    owners: Mapping[str, str] = {}
    manager_port: int | None = None
    children: Sequence[Mapping[str, Any]] = ()
    starters: Sequence[Mapping[str, Any]] = ()


class Follow(Find, frozen=True, omit_defaults=True):
    """Name the processes that a `Find` would find, and that appear during the recording."""


class Chosen(msgspec.Struct, frozen=True):
    """A process to record. `engine` is the only one that may record it, where that is known."""

    pid: int
    start_time: int
    label: str
    labels: Mapping[str, str]
    engine: str | None = None


@dataclass(frozen=True)
class Plan:
    """What to record, and with what.

    `blobs` are the SHA-256 of what the engines load into processes, by the protocol's names. `agent_cpu` are
    the processors that the agent may use, `slices` rules for names of threads.
    """

    sampling: Sampling
    blobs: Mapping[str, str] = field(default_factory=dict)
    agent_cpu: float = 1.0
    slices: Sequence[SliceRule] = ()


class Prepare(Request, frozen=True):
    """Record these processes by a `Plan`. `clock_offset` is that of a `model.Clock`."""

    processes: Sequence[Chosen]
    sampling: Sampling
    blobs: Mapping[str, str]
    agent_cpu: float
    slices: Sequence[SliceRule] = ()
    clock_offset: float = 0.0


class Check(Prepare, frozen=True):
    """The same question, and nothing is touched."""


class Clock(Request, frozen=True):
    """What time it is on the host."""


class Start(Request, frozen=True):
    pass


class Join(Request, frozen=True):
    """Record these processes too, for the rest of the recording's time."""

    processes: Sequence[Chosen]


class Stop(Request, frozen=True):
    pass


class Watched(msgspec.Struct, frozen=True):
    """A process to read, or to dump, and to record nothing of."""

    pid: int
    start_time: int


class Watch(Request, frozen=True, omit_defaults=True):
    """What was read since the last such request. With `processes`, those are read and counted from now on."""

    processes: Sequence[Watched] | None = None
    counters: Sequence[str] = ()


class Dump(Request, frozen=True):
    """What all threads of these processes do now; with `owners` also who owns locks of
    java.util.concurrent."""

    processes: Sequence[Watched]
    owners: bool
    agent_cpu: float


class Memory(Request, frozen=True):
    """Where the memory of these processes is. With `heap`, JVMs stand still and count their objects."""

    processes: Sequence[Watched]
    heap: bool = False


class Ping(Request, frozen=True):
    pass


class Clean(Request, frozen=True):
    """Remove what earlier sessions left, or only list it (`dry`). `brought`: this session sent the agent."""

    dry: bool = False
    brought: bool = False


class Bye(Request, frozen=True):
    pass
