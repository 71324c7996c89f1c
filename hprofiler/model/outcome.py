"""What happened to a host or a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Params = Mapping[str, str | int | float]
"""Typed parameters of an outcome, for programs."""


def number_of(parameters: Params, name: str, most: float) -> float | None:
    """A parameter that is a number of 0 to `most`; else None, as it comes from a host."""
    value = parameters.get(name)
    return value if isinstance(value, (int, float)) and 0 <= value <= most else None


class Status(str, Enum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    IDLE = "idle"


DOING: Mapping[str, str] = {
    "connect": "connecting",
    "push": "copying the agent",
    "find": "looking for processes",
    "prepare": "preparing",
    "start": "starting",
    "record": "recording",
    "dump": "dumping threads",
    "measure": "reading memory",
    "fetch": "fetching profiles",
    "clean": "cleaning up",
}
"""Progress text of each stage."""

VAGUE_CODES = frozenset({"", "failed", "unknown", *(f"{stage}-failed" for stage in DOING)})
"""Codes of many causes: two outcomes with the same one need not be alike."""


@dataclass(frozen=True)
class Note:
    """One reason: a code of docs/reference/outcomes.md, its parameters, and a sentence."""

    code: str
    reason: str
    remedy: str = ""
    parameters: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What happened to a host or a process. Data, not an exception: one dead host never ends a run.

    `code` and `parameters` are for programs, `reason` and `remedy` for people. If there are several reasons,
    `notes` has all of them, and the code is that of the worst. `pid` is None for the whole host. `stage` is
    the last stage: connect, push, find, prepare, start, record, dump, measure, fetch, clean, report. `lost`:
    the connection to the host was lost. `gone`: the process ended before its recording did. `seconds` is the
    length of a recording that ended early although the process continued.
    """

    host: str
    status: Status
    stage: str
    reason: str = ""
    remedy: str = ""
    pid: int | None = None
    label: str = ""
    lost: bool = False
    seconds: float | None = None
    gone: bool = False
    code: str = field(default="", kw_only=True)
    parameters: Params = field(default_factory=dict, kw_only=True)
    notes: tuple[Note, ...] = field(default=(), kw_only=True)

    @property
    def every_note(self) -> tuple[Note, ...]:
        """All reasons."""
        return self.notes or (Note(self.code, self.reason, self.remedy, self.parameters),)

    @property
    def where(self) -> str:
        """For people: "n1", "n1 pid 7 (executor 3)"."""
        if self.pid is None:
            return self.host
        return f"{self.host} pid {self.pid}" + (f" ({self.label})" if self.label else "")
