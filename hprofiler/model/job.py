"""What the manager of a job knows of it at the end: its processes, and the CPU time that it counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hprofiler.model.recording import Name, Seconds

MOST_PARTS = 20_000

Manager = Literal["mapreduce", "yarn", "kubernetes"]


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a job: an attempt of a task, or a container.

    A recorded process is this one if it has its `labels`. `host` is the name or the address of its host.
    Times are seconds since 1970 on the coordinator's clock; 0 is unknown, or not yet. `cpu_seconds` is None
    if it is unknown. `counts` says whether the CPU time of the job has that of the part: of a task only one
    attempt counts.
    """

    name: Name
    host: Name = ""
    labels: Annotated[Mapping[Name, Name], Meta(max_length=20)] = {}
    started: Seconds = 0.0
    ended: Seconds = 0.0
    cpu_seconds: Seconds | None = None
    counts: bool = True


class JobAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A job by its manager. `cpu_seconds` are of all that counts, None if unknown. `left_out` parts are known
    and not listed. `problem` says why nothing is known."""

    manager: Manager
    cpu_seconds: Seconds | None = None
    parts: Annotated[tuple[JobPart, ...], Meta(max_length=MOST_PARTS)] = ()
    left_out: Annotated[int, Meta(ge=0)] = 0
    problem: Annotated[str, Meta(max_length=2000)] = ""
