"""One occurrence of a fault of faults.py in a trial: its host, its moment, and what it excuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.lab import procs
from tests.lab.coordinator import ALL, Running
from tests.lab.hosts import Host

if TYPE_CHECKING:
    from tests.lab.chaos.ground import Ground

LEASE = 30.0
"""Seconds after which a host without a connection has removed everything."""
DURATION = 2.0
"""Seconds of a recording, unless a fault needs more."""


@dataclass(frozen=True)
class Moment:
    """`delay` seconds after `times` lines of stderr match `pattern`, or after the start if it is empty."""

    pattern: str
    delay: float
    times: int = 1

    def wait(self, running: Running) -> bool:
        """Wait for it; false if the run ended before."""
        if self.pattern and not running.hears(self.pattern, self.times):
            return False
        end = time.monotonic() + self.delay
        while running.process.poll() is None and time.monotonic() < end:
            time.sleep(min(0.01, max(0.0, end - time.monotonic())))
        return running.process.poll() is None

    @property
    def sure(self) -> bool:
        """Whether every run lasts until then."""
        return self.pattern != ": done" and not (self.times == 1 and self.delay > DURATION)

    def __str__(self) -> str:
        return f"{self.delay:.2f} s after {self.pattern.strip('^') or 'the start'}"


When = Callable[[random.Random], Moment | None]
"""None: before the run starts."""


def any_moment(chance: random.Random) -> Moment:
    """From before the first connection until the report is made."""
    moments = (
        Moment("", chance.uniform(0.0, 1.2)),
        Moment(": ready", chance.uniform(0.0, 0.3)),
        Moment(": recording", chance.uniform(0.0, DURATION)),
        Moment(": recording", DURATION + chance.uniform(-0.1, 0.5)),
        Moment(": done", chance.uniform(0.0, 0.15), times=3),
    )
    return chance.choice(moments)


def before(chance: random.Random) -> None:
    """Before the run starts."""


def before_or(later: When, share: float = 0.5) -> When:
    return lambda chance: None if chance.random() < share else later(chance)


def while_recording(chance: random.Random) -> Moment:
    """After the last of the three hosts has begun to sample."""
    return Moment(": recording", chance.uniform(0.1, 0.9) * DURATION, times=3)


@dataclass(frozen=True)
class Excuse:
    """The damage that a fault may do. Without one all data are complete, and the exit status is 0."""

    hosts: frozenset[str] = frozenset()
    """Hosts whose data may be missing or short, if an outcome says so."""
    codes: frozenset[int] = frozenset()
    """Allowed exit statuses besides the one that follows from the outcomes."""
    kept: frozenset[str] = frozenset()
    """Those of the hosts whose data may be short but not missing."""
    everything: bool = False
    """There may be no run folder, or an empty one: the coordinator itself was ended."""
    ended: frozenset[str] = frozenset()
    """Hosts whose burner is gone."""
    still: frozenset[str] = frozenset()
    """Hosts whose burner the fault itself stopped."""

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
        return "the run" if self.everything else f"data of {hosts}" if hosts else "nothing"


@dataclass
class Circumstances:
    """The options and environment of a trial's command."""

    duration: float = DURATION
    timeout: float = 20.0
    target: list[str] = field(default_factory=lambda: ["-h", ALL])
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A row of the table of faults."""

    breaks: Callable[[Fault], Iterator[None]]
    """Breaks something, yields, and repairs it."""
    costs: str = ""
    """Words for the damage: `data` of the host, if not `kept`, or `recorded` before; its JVM `ended` or stood
    `still`; data of `all` hosts; the `run`. Empty: none."""
    when: When = any_moment
    lasts: tuple[float, float] | None = None
    """The range of its duration in seconds; None: until the run is over."""
    weight: float = 1.0
    """How often it is drawn, compared with the others."""
    alone: bool = False
    """It is not combined with another fault."""
    codes: tuple[int, ...] = ()
    settle: Callable[[Fault], None] | None = None
    """Changes the hosts before the trial looks at them."""
    arrange: Callable[[Fault, Circumstances], None] | None = None
    """Changes the command's options and environment."""
    complaints: Callable[[Fault], list[str]] | None = None
    """Further complaints after the run."""


class Fault:
    """One fault in one trial. All randomness comes from the trial's `chance`."""

    def __init__(self, name: str, kind: Kind, ground: Ground, chance: random.Random) -> None:
        self.name = name
        self.kind = kind
        self.ground = ground
        self.chance = random.Random(chance.random())
        self.host_name = chance.choice(ground.names)
        self.moment = kind.when(chance)
        self.lasts = chance.uniform(*kind.lasts) if kind.lasts else None
        self.struck = False
        self.running: Running | None = None
        self.detail = ""
        """For the report: its strength."""
        self._repair = ExitStack()

    @property
    def host(self) -> Host:
        return self.ground.host(self.host_name)

    @property
    def jvm(self) -> procs.Identity:
        return self.ground.burners[self.host_name].outer

    def strike(self, running: Running | None) -> None:
        """Break it; `running` is None before the start."""
        self.running, self.struck = running, True
        self._repair.enter_context(contextmanager(self.kind.breaks)(self))

    def mend(self) -> None:
        """Repair it, unless that was done before."""
        self._repair.close()

    def excuse(self) -> Excuse:
        """The damage that it may have done; called after the run."""
        words = self.kind.costs.split()
        here, nowhere = frozenset({self.host_name}), frozenset[str]()
        was_recorded = self.moment is not None and self.moment.times == len(self.ground.names)
        kept = "kept" in words or ("recorded" in words and was_recorded)
        everywhere = "all" in words or "run" in words
        return Excuse(
            frozenset(self.ground.names) if everywhere else here if words else nowhere,
            frozenset(self.kind.codes),
            here if kept else nowhere,
            "run" in words,
            here if "ended" in words else nowhere,
            here if "still" in words else nowhere,
        )

    def __str__(self) -> str:
        """For the report: what, where and when."""
        struck = "" if self.struck else ", which did not happen"
        lasted = f" for {self.lasts:.1f} s" if self.lasts is not None else ""
        where = f"{self.host_name} {self.detail}".strip()
        return f"{self.name} ({where}), {self.moment or 'before the start'}{lasted}{struck}"
