"""What an agent found on its host of what hprofiler sessions left, and what it removed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hprofiler.agent import fields

KINDS = ("agent", "program", "profiler", "folder", "file")
STATES = ("left", "unknown", "used", "foreign")
RESULTS = ("removed", "emptied", "ended", "stopped", "failed")
CLEANING_SECONDS = 90.0
"""The most time an agent takes for a host whose processes do not answer, or do not end."""


@dataclass(frozen=True)
class Leftover:
    """One thing. `state` is "left" (to be removed), "used" (by a session), "foreign" or "unknown".

    Of a process `path` is its program, of a profiler its library. `seconds` is its age, where that is known.
    `result` is what a cleanup did: "removed" (a folder, a file), "emptied" (a folder that stays with what is
    not ours), "ended" (a process), "stopped" (a profiler), "failed" (`reason` says why), or "" for nothing.
    """

    kind: str
    path: str
    pid: int | None
    user: str
    seconds: int | None
    bytes: int | None
    state: str
    reason: str
    result: str = ""

    @property
    def what(self) -> str:
        return self.path if self.pid is None else f"process {self.pid}"


@dataclass(frozen=True)
class Failure:
    """Something that could not be cleaned up, or not be looked at."""

    what: str
    reason: str


@dataclass(frozen=True)
class Leftovers:
    """All of them, what could not be checked, and JVMs (user, how many) of users that the agent is not."""

    entries: tuple[Leftover, ...]
    unseen: tuple[Failure, ...] = ()
    out_of_reach: tuple[tuple[str, int], ...] = ()

    @property
    def failed(self) -> tuple[Failure, ...]:
        failed = (Failure(one.what, one.reason) for one in self.entries if one.result == "failed")
        return (*failed, *self.unseen)

    def count(self, result: str) -> int:
        return sum(one.result == result for one in self.entries)


def parse_leftovers(event: Mapping[str, Any]) -> Leftovers:
    entries = tuple(_leftover(item) for item in fields.objects(event, "entries"))
    failed = fields.objects(event, "failed")
    unseen = tuple(Failure(fields.text(one, "what"), fields.text(one, "reason")) for one in failed)
    others = fields.objects(event, "out_of_reach")
    out_of_reach = tuple((fields.text(one, "user", 255), fields.integer(one, "jvms")) for one in others)
    return Leftovers(entries, unseen, out_of_reach)


def _leftover(item: Mapping[str, Any]) -> Leftover:
    return Leftover(
        kind=fields.choice(item, "kind", KINDS),
        path=fields.text(item, "path"),
        pid=fields.optional_pid(item),
        user=fields.text(item, "user", 255),
        seconds=fields.optional_integer(item, "seconds"),
        bytes=fields.optional_integer(item, "bytes"),
        state=fields.choice(item, "state", STATES),
        reason=fields.text(item, "reason"),
        result="" if item.get("result") is None else fields.choice(item, "result", RESULTS),
    )
