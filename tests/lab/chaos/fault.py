"""What may go wrong in a run: a fault, the moment at which it strikes, and what it excuses."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.lab.coordinator import Running

if TYPE_CHECKING:
    from tests.lab.chaos.ground import Ground

NEVER = frozenset[int]()
LEASE = 30.0
"""Seconds after which a host that hears nothing has let go of everything."""


@dataclass(frozen=True)
class Moment:
    """`delay` seconds after so many lines of stderr match `pattern`, or after the start where it is empty."""

    pattern: str
    delay: float
    times: int = 1

    def wait(self, running: Running) -> bool:
        """Wait for it; false when the run was over before."""
        if self.pattern and not running.hears(self.pattern, self.times):
            return False
        end = time.monotonic() + self.delay
        while running.process.poll() is None and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        return running.process.poll() is None

    @property
    def sure(self) -> bool:
        """Whether no run is over before."""
        late = self.times == 1 and self.delay > Circumstances.duration
        return self.pattern != ": done" and not late

    def __str__(self) -> str:
        return f"{self.delay:.2f} s after {self.pattern.strip('^') or 'the start'}"


BEFORE = None
"""Instead of a moment: before the run begins."""


def any_moment(chance: random.Random, duration: float) -> Moment:
    """Somewhere from before the first connection to while the report is made."""
    moments = (
        Moment("", chance.uniform(0.0, 1.2)),
        Moment(": ready", chance.uniform(0.0, 0.3)),
        Moment(": recording", chance.uniform(0.0, duration)),
        Moment(": recording", duration + chance.uniform(-0.1, 0.5)),
        Moment(": done", chance.uniform(0.0, 0.15), times=3),
    )
    return chance.choice(moments)


def while_recording(chance: random.Random, duration: float) -> Moment:
    """After the last of the three hosts has begun to sample."""
    return Moment(": recording", chance.uniform(0.1, 0.9) * duration, times=3)


@dataclass(frozen=True)
class Excuse:
    """What a fault may cost. Without one everything has to be there, and exit code 0."""

    hosts: frozenset[str] = frozenset()
    """Hosts whose data may be missing or short, where the ledger says so with a reason."""
    codes: frozenset[int] = NEVER
    """Exit codes that are right besides the one that follows from the ledger."""
    kept: frozenset[str] = frozenset()
    """Those of the hosts whose data may be short and not missing."""
    everything: bool = False
    """There may be no run folder, or nothing in it: the coordinator itself was ended."""
    ended: frozenset[str] = frozenset()
    """Hosts whose burner is gone."""
    still: frozenset[str] = frozenset()
    """Hosts whose burner stood still, by the fault's own doing."""

    def __or__(self, other: Excuse) -> Excuse:
        return Excuse(
            self.hosts | other.hosts,
            self.codes | other.codes,
            (self.kept - other.hosts) | (other.kept - self.hosts),
            self.everything or other.everything,
            self.ended | other.ended,
            self.still | other.still,
        )

    def __str__(self) -> str:
        hosts = ", ".join(f"{host} (kept)" if host in self.kept else host for host in sorted(self.hosts))
        codes = ", ".join(map(str, sorted(self.codes)))
        parts = (f"data of {hosts}" if hosts else "", f"exit {codes}" if codes else "")
        return "; ".join(("the run",) if self.everything else filter(None, parts)) or "nothing"


@dataclass
class Circumstances:
    """What a trial's command gets besides the usual."""

    duration: float = 2.0
    timeout: float = 20.0
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


class Fault(ABC):
    """One thing that goes wrong in one trial. Made anew for each, from the trial's own chance.

    The order: `settle` and `arrange` (before the start), `begin` at `moment`, `end` after `lasts` seconds or
    with the run, `complaints` when all is quiet again. What they broke `end` has mended, whatever failed.
    """

    name = ""
    """The words after `--only`."""
    weight = 1.0
    """How often it is drawn, against the others'."""
    alone = False
    """Whether it cannot be told what is whose fault when another one strikes too."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self.ground = ground
        self.chance = chance
        self.host = chance.choice(ground.names)
        self.lasts: float | None = None
        """Seconds from `begin` to `end`; None: until the run is over."""
        self.moment: Moment | None = self.choose_moment()
        self.struck = False
        self._mended = False

    def choose_moment(self) -> Moment | None:
        """When it strikes; BEFORE: before the start."""
        return any_moment(self.chance, Circumstances.duration)

    def settle(self) -> None:  # noqa: B027  (most take the hosts as they are)
        """Change what is on the hosts, before anybody looks at them."""

    def arrange(self, circumstances: Circumstances) -> None:  # noqa: B027  (most change nothing)
        """Change what the command is given; what is on the hosts is there."""

    @abstractmethod
    def begin(self, running: Running | None) -> None:
        """Break it. `running` is None where the moment is BEFORE."""

    def end(self) -> None:  # noqa: B027  (some leave nothing to mend)
        """Mend it; called once, also when it never began."""

    def mend(self) -> None:
        """End it, unless that was done already."""
        if not self._mended:
            self._mended = True
            self.end()

    def excuse(self) -> Excuse:
        """What it may have cost, asked when the run is over."""
        return Excuse()

    def complaints(self) -> list[str]:
        """What else ought to be and is not, asked at the end; empty when all is well."""
        return []

    def about(self) -> str:
        """For the report: what, where and when."""
        struck = "" if self.struck else ", which did not come"
        when = str(self.moment) if self.moment else "before the start"
        lasted = f" for {self.lasts:.1f} s" if self.lasts is not None else ""
        return f"{self.name} ({self.where()}), {when}{lasted}{struck}"

    def where(self) -> str:
        return self.host
