"""What a rule is given, and what it gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hprofiler._flamegraph import Method, Profile
from hprofiler.model import Outcome
from hprofiler.model.event_names import is_each_one
from hprofiler.model.measures import Measure, ends_in_classes, measure_of
from hprofiler.report.comparison import Compared
from hprofiler.report.facts import RunFacts
from hprofiler.report.findings.evidence import Evidence
from hprofiler.report.findings.families import Family
from hprofiler.report.findings.walk import Walk
from hprofiler.report.telling import Telling

# How many standard deviations are no chance.
SIGMAS = 4.5
_EVERYTHING = 2**31 - 1
# Of a method's share, before what it is spent on is worth saying; and of the whole.
_OF_WHICH = 0.25
_POINTS = 0.03
_OWNERS = 3
# Events of which a method's cost is its own doing, and those of waits.
_DOING = ("cpu", "alloc", "live")
_WAITS = ("wall", "offcpu", "lock")


@dataclass(frozen=True)
class Finding:
    """A sentence; the whole name of the method that it speaks of, and its host's key in the run folder.

    A method stands in the text by its name without the package; `with_calls` says that its share is that of
    all it calls, too, and `at` where in the text it stands: a word may be called like a method.
    """

    text: str
    method: str | None = None
    host: str | None = None
    with_calls: bool = False
    at: int | None = None


@dataclass(frozen=True)
class Owner:
    """A method of the job's own, and the well-known code below it that costs most, with that cost."""

    method: Method
    family: Family
    cost: int


@dataclass(frozen=True)
class Subject:
    """An event with samples; without facts and evidence a profile of which nothing else is known."""

    facts: RunFacts | None
    cluster: Profile
    told: Telling
    compared: Compared
    evidence: Evidence | None
    problems: Sequence[Outcome]

    @property
    def event(self) -> str:
        return self.facts.event if self.facts else self.cluster.values[0][0]

    @property
    def measure(self) -> Measure:
        return measure_of(self.event)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """All methods of what tells, hottest by self first."""
        return {one.name: one for one in self.told.profile.top(_EVERYTHING)}

    @cached_property
    def walk(self) -> Walk:
        return Walk(self.told.profile, self.of_classes)

    @property
    def of_classes(self) -> bool:
        """The last frame of a stack is a class."""
        return ends_in_classes(self.event)

    @property
    def of_doing(self) -> bool:
        """A method's cost is its own doing, not somebody's it waits for."""
        return self.event in _DOING or (self.facts is None and self.event not in _WAITS)

    @property
    def hottest(self) -> Method:
        return next(iter(self.methods.values()))

    @cached_property
    def owner(self) -> Owner | None:
        """The innermost method of the job's own that most is below, where much of that is well-known code."""
        if not self.of_doing:
            return None
        for name, cost in self.walk.owners.most_common(_OWNERS):
            method = self.methods.get(name)
            if method is not None and cost >= self.hottest.self_value:
                costs = self.walk.below(name)
                family = max(costs, key=lambda one: costs[one], default=None)
                if family is not None and self._matters(costs[family], method.total_value):
                    return Owner(method, family, costs[family])
        return None

    def _matters(self, cost: int, of: int) -> bool:
        return cost >= _OF_WHICH * of and self.surely(cost / self.total) >= _POINTS

    @property
    def total(self) -> int:
        """Of what the shares in sentences are."""
        return self.told.profile.total()

    @property
    def samples(self) -> int:
        """How many samples stand behind what is told of the cluster; 0 where nobody knows."""
        taken = sum(one.samples for one in self.compared.hosts)
        count = next((value for value, (_, unit) in enumerate(self.cluster.values) if unit == "count"), 0)
        every, told = self.cluster.total(count), self.told.profile.total(count)
        return taken if not taken or told == every else max(1, round(taken * told / every))

    @property
    def sampled(self) -> str:
        """What these samples are called: each event is one where all are recorded."""
        return self.measure.words[0] if is_each_one(self.event) else "samples"

    def surely(self, share: float) -> float:
        """The least that a share (0 to 1) may be, as far as the samples tell."""
        if not self.samples:
            return share
        return share - SIGMAS * math.sqrt(max(share * (1 - share), 0.0) / self.samples)
