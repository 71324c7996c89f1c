"""What an agent found on its host of what hprofilers left, and what it removed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hprofiler.agent import fields

KINDS = ("agent", "program", "profiler", "folder", "file")
STATES = ("left", "used", "ending", "foreign", "unknown")
_ID_LIMIT = 100
CLEANING_SECONDS = 90.0
"""So long an agent gives itself for a host whose processes do not answer, or do not end."""


@dataclass(frozen=True)
class Leftover:
    """One thing. `state` is "left" (to be removed), "used" (by a session that lives), "foreign", "unknown" or
    "ending" (used by an agent that is stopped or should have ended, or perhaps by other hosts: left over in
    `ends` seconds).

    `id` is unlike that of whatever may come in its place. Of a process `path` is its program, of a profiler
    its library. `seconds` is its age, where that is known. `own` is the folder the agent was started from.
    """

    id: str
    kind: str
    path: str
    pid: int | None
    user: str
    seconds: int | None
    bytes: int | None
    state: str
    reason: str
    own: bool = False
    ends: int | None = None


@dataclass(frozen=True)
class Failure:
    """One thing that was not cleaned up, or could not be looked at."""

    what: str
    reason: str


@dataclass(frozen=True)
class Leftovers:
    """What a list has, what could not be looked at, and JVMs (user, how many) of users that we are not."""

    entries: tuple[Leftover, ...]
    failed: tuple[Failure, ...] = ()
    out_of_reach: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Cleaned:
    """What `clean` removed (paths), stopped and ended (pids), could not, and spared: it is in use by now."""

    removed: tuple[str, ...]
    stopped: tuple[int, ...]
    ended: tuple[int, ...]
    failed: tuple[Failure, ...]
    spared: tuple[Failure, ...] = ()


def parse_leftovers(event: Mapping[str, Any]) -> Leftovers:
    entries = tuple(_leftover(item) for item in fields.objects(event, "entries"))
    others = fields.objects(event, "out_of_reach")
    out_of_reach = tuple((fields.text(one, "user", 255), fields.integer(one, "jvms")) for one in others)
    return Leftovers(entries, _told(event, "failed"), out_of_reach)


def _leftover(item: Mapping[str, Any]) -> Leftover:
    return Leftover(
        id=fields.text(item, "id", _ID_LIMIT),
        kind=fields.choice(item, "kind", KINDS),
        path=fields.text(item, "path"),
        pid=fields.optional_pid(item),
        user=fields.text(item, "user", 255),
        seconds=fields.optional_integer(item, "seconds"),
        bytes=fields.optional_integer(item, "bytes"),
        state=fields.choice(item, "state", STATES),
        reason=fields.text(item, "reason"),
        own=item.get("own") is True,
        ends=fields.optional_integer(item, "ends"),
    )


def parse_cleaned(event: Mapping[str, Any]) -> Cleaned:
    def pids(name: str) -> tuple[int, ...]:
        return tuple(fields.pid({"pid": pid}) for pid in fields.items(event, name))

    removed = tuple(fields.texts(event, "removed"))
    told = [_told(event, name) for name in ("failed", "spared")]
    return Cleaned(removed, pids("stopped"), pids("ended"), *told)


def _told(event: Mapping[str, Any], name: str) -> tuple[Failure, ...]:
    items = fields.objects(event, name)
    return tuple(Failure(fields.text(item, "what"), fields.text(item, "reason")) for item in items)
