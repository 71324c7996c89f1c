"""What an agent found on its host of what hprofilers left, and what it removed of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from hprofiler.agent import fields

KINDS = ("agent", "program", "profiler", "folder", "file")
STATES = ("left", "used", "foreign", "unknown")
_ID_LIMIT = 100
CLEANING_SECONDS = 90.0
"""So long an agent gives itself for a host whose processes do not answer, or do not end."""


@dataclass(frozen=True)
class Leftover:
    """One thing. `state` is "left" (to be removed), "used" (by a session that lives), "foreign" or "unknown".

    `id` is unlike that of whatever may come in its place. Of a process `path` is its program, of a profiler
    its library. `seconds` is its age, where that is known. `own` is the folder the agent was started from.
    """

    id: str
    kind: str
    path: str
    pid: Optional[int]
    user: str
    seconds: Optional[int]
    bytes: Optional[int]
    state: str
    reason: str
    own: bool = False


@dataclass(frozen=True)
class Failure:
    """One thing that could not be cleaned up, or looked at."""

    what: str
    reason: str


@dataclass(frozen=True)
class Leftovers:
    """What a list has, and what could not be looked at."""

    entries: Tuple[Leftover, ...]
    failed: Tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Cleaned:
    """What `clean` removed (paths), what it stopped and ended (pids), and what it could not."""

    removed: Tuple[str, ...]
    stopped: Tuple[int, ...]
    ended: Tuple[int, ...]
    failed: Tuple[Failure, ...]


def parse_leftovers(event: Mapping[str, Any]) -> Leftovers:
    return Leftovers(tuple(_leftover(item) for item in fields.objects(event, "entries")), _failed(event))


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
    )


def parse_cleaned(event: Mapping[str, Any]) -> Cleaned:
    def pids(name: str) -> Tuple[int, ...]:
        return tuple(fields.pid({"pid": pid}) for pid in fields.items(event, name))

    return Cleaned(tuple(fields.texts(event, "removed")), pids("stopped"), pids("ended"), _failed(event))


def _failed(event: Mapping[str, Any]) -> Tuple[Failure, ...]:
    failed = fields.objects(event, "failed")
    return tuple(Failure(fields.text(item, "what"), fields.text(item, "reason")) for item in failed)
