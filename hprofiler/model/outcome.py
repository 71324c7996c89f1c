"""How it went for a host or a process: one line of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Params = Mapping[str, str | int | float]
"""The figures and names of an outcome, typed: what a program reads instead of the sentence."""


class Status(str, Enum):
    """How it went for a host or a process."""

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
    "fetch": "fetching profiles",
    "clean": "cleaning up",
}
"""What goes on at a host at each stage of `Outcome`."""


@dataclass(frozen=True)
class Note:
    """One reason: a code of docs/reference/outcomes.md, its parameters, and the sentence made of them."""

    code: str
    reason: str
    remedy: str = ""
    parameters: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """One line of the ledger. Data, not an exception: one dead host never ends a run.

    `code` and `parameters` are for programs, `reason` and `remedy` for people.
    Where an outcome has several reasons, `notes` are all of them, and the code is that of the worst.
    `pid` is None when the line speaks of the whole host. `stage` is how far it came: connect, push, find,
    prepare, start, record, fetch, clean, report. A process that is `lost` was so with its host, whose
    own line says why. A process that is `gone` had ended before all of it was recorded. `seconds` is how long
    its recording lasted where that was cut short while the process went on: by us, or by a lost connection.
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
        """Its reasons one by one."""
        return self.notes or (Note(self.code, self.reason, self.remedy, self.parameters),)

    @property
    def where(self) -> str:
        """For people: "n1", "n1 pid 7 (executor 3)"."""
        if self.pid is None:
            return self.host
        return f"{self.host} pid {self.pid}" + (f" ({self.label})" if self.label else "")
