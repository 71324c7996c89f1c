"""Input and output of the rules for findings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Attribution, Method
from hprofiler.analysis.coverage import CoverageText
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.families import Family, family_of, is_own
from hprofiler.analysis.outliers import Compared
from hprofiler.analysis.work import EventWork, Sums, is_work
from hprofiler.model import HostRecord, Outcome
from hprofiler.model.event_names import is_each_one
from hprofiler.model.measures import Measure, ends_in_classes, measure_of

# Standard deviations beyond which a difference is not chance.
SIGMAS = 4.5
# A method with a smaller share does not lead.
WORTH_A_HEADLINE = 0.03
# Least part of a method, and of the whole, for which a finding says what it is spent on.
_OF_WHICH = 0.25
_POINTS = 0.03
_OWNERS = 3
# Events of which a method's cost is its own doing.
_DOING = ("cpu", "alloc", "live")
# Most frames to look at; smaller ones are nobody's.
_MOST_NODES = 200_000
_SMALLER = re.compile(r"^\(\d+ smaller frames?\)$")


Work = Counter[str]
"""Parts of `total`, in the value that is shown: `gc`, `jit` (the compilers) and `kernel`."""


def _own_work(categories: Sums) -> Work:
    kernel = sum(cost for category, cost in categories.items() if category.startswith("kernel-"))
    gc, jit = categories.get("gc", 0), categories.get("jit", 0)
    return Work(total=sum(categories.values()), gc=gc, jit=jit, kernel=kernel)


def share_of_work(work: Work, kind: str) -> float:
    return work[kind] / work["total"] if work["total"] else 0.0


class _Place(NamedTuple):
    """Where a node is: below which own method, in which family, called by which frame outside the kernel."""

    owner: str = ""
    family: Family | None = None
    caller: str = ""


_ROOT = _Place()
# Of frames that were left out as too small.
_NOBODY = _Place()


class Walk:
    """One pass over a call tree, root first. Costs below a callback into own code are that code's again.

    With `classes` the last frame of a stack is the class of what was allocated, not a method.
    """

    def __init__(self, profile: Profile, classes: bool = False) -> None:
        self.total = profile.total()
        self.owners: Counter[str] = Counter()
        self.families: Counter[Family] = Counter()
        self.kernel_callers: Counter[str] = Counter()
        # Name, parent, place and cost of each node; the root is the first.
        self._tree: list[tuple[str, int, _Place, int]] = [("", 0, _ROOT, 0)]
        self._known: dict[tuple[str, str], tuple[bool, Family | None] | None] = {}
        self._walk(profile, classes)

    def below(self, method: str) -> dict[Family, int]:
        """What each family costs below a method."""
        inside: list[bool] = []
        costs: Counter[Family] = Counter()
        for name, parent, place, cost in self._tree:
            inside.append(name == method or (bool(inside) and inside[parent]))
            if inside[-1] and place.family is not None:
                costs[place.family] += cost
        return costs

    def owner_of(self, method: Method) -> str:
        """The own method that most of a method's own cost is for; "" where none has more than half of it."""
        costs: Counter[str] = Counter()
        for name, _, place, cost in self._tree:
            if name == method.name:
                costs[place.owner] += cost
        owner, most = costs.most_common(1)[0] if costs else ("", 0)
        return owner if 2 * most > method.self_value else ""

    def _walk(self, profile: Profile, classes: bool) -> None:
        places = [_ROOT]
        for node in profile.pruned(frames=_MOST_NODES).nodes()[1:]:
            cost, above = node.self_value, places[node.parent]
            place = self._below(above, node.name, node.kind)
            if classes and cost and place is not _NOBODY:
                place = above
            places.append(place)
            self._tree.append((node.name, node.parent, place, cost))
            if place.owner:
                self.owners[place.owner] += cost
            if place.family:
                self.families[place.family] += cost
            if node.kind == "kernel":
                self.kernel_callers[place.caller] += cost

    def _below(self, above: _Place, name: str, kind: str) -> _Place:
        key = (name, kind)
        if key not in self._known:
            self._known[key] = None if _SMALLER.match(name) else (is_own(name, kind), family_of(name))
        known = self._known[key]
        if known is None:
            return _NOBODY
        own, family = known
        caller = above.caller if kind == "kernel" else name
        return _Place(name, None, caller) if own else _Place(above.owner, above.family or family, caller)


Part = tuple[Literal["", "method", "share"], str]


@dataclass(frozen=True)
class Finding:
    """What stands out: a code, and a sentence in parts; the whole name of the method that it speaks of, and
    its host's key in the run folder.

    The part "method" is that method's name without the package, and "share" its share. `with_calls` says that
    the share is that of all it calls, too; `row` is the name in tables if it is a wait's. A `caveat` says
    what is wrong with other figures; it is always shown. `parameters` are figures of the sentence, for
    programs.
    """

    code: str
    parts: tuple[Part, ...]
    method: str | None = None
    host: str | None = None
    with_calls: bool = False
    caveat: bool = False
    row: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def listed(self) -> str | None:
        """What tables call the method, or its wait."""
        return self.row or self.method

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.parts)

    @property
    def has_share(self) -> bool:
        return any(kind == "share" for kind, _ in self.parts)


def says(
    code: str,
    *parts: str | Part,
    method: str | None = None,
    host: str | None = None,
    with_calls: bool = False,
    caveat: bool = False,
    row: str | None = None,
) -> Finding:
    """A finding whose text is these parts, most of which are plain text."""
    marked: list[Part] = [("", one) if isinstance(one, str) else one for one in parts]
    return Finding(code, tuple(marked), method, host, with_calls, caveat, row)


@dataclass(frozen=True)
class Owner:
    """A method of the job's own, its total, and the well-known code below it that costs most, with that cost.

    Both are the least that they may be if the method's total is not known.
    """

    method: Method
    total: int
    family: Family
    cost: int


@dataclass(frozen=True)
class Subject:
    """An event with samples. A profile alone has no facts, work or coverage."""

    facts: RunFacts | None
    cluster: Profile
    compared: Compared
    work: EventWork
    coverage: CoverageText | None
    problems: Sequence[Outcome]
    attribution: Attribution

    @property
    def event(self) -> str:
        return self.facts.event if self.facts else self.cluster.values[0][0]

    @property
    def hosts(self) -> Sequence[HostRecord]:
        return self.facts.hosts if self.facts else ()

    @property
    def measure(self) -> Measure:
        return measure_of(self.event)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """All methods, hottest by self first."""
        return {one.name: one for one in self.attribution.methods}

    @cached_property
    def walk(self) -> Walk:
        return Walk(self.attribution.surely_called, self.of_classes)

    @cached_property
    def work_of_hosts(self) -> Mapping[str, Work]:
        """What of each host's CPU time is the JVMs' and the kernel's own work.

        Threads that wait are in garbage collection or compilers all the time: only CPU time shows work.
        """
        return (
            {host: _own_work(sums) for host, sums in self.work.hosts.items()} if self.event == "cpu" else {}
        )

    @property
    def of_classes(self) -> bool:
        """The last frame of a stack is a class."""
        return ends_in_classes(self.event)

    @property
    def of_doing(self) -> bool:
        """A method's cost is its own doing, not somebody's it waits for."""
        return self.event in _DOING or (self.facts is None and is_work(self.event))

    @cached_property
    def hottest(self) -> Method:
        """The method with the highest self cost. A sleep is one only if nothing else is worth a headline."""
        first = next(iter(self.methods.values()))
        other = next((one for one in self.methods.values() if not one.is_sleep), first)
        return other if other.self_value >= WORTH_A_HEADLINE * self.total else first

    @cached_property
    def owner(self) -> Owner | None:
        """The innermost method of the job's own that most is below, where much of that is well-known code."""
        if not self.of_doing or self.attribution.self_only:
            return None
        for name, cost in self.walk.owners.most_common(_OWNERS):
            method = self.methods.get(name)
            if method is not None and cost >= self.hottest.self_value:
                total = method.total_value if method.known else self.attribution.sure_total(name)
                costs = self.walk.below(name)
                family = max(costs, key=lambda one: costs[one], default=None)
                if family is None:
                    continue
                cost = costs[family]
                if cost >= _OF_WHICH * total and self.surely(cost / self.total) >= _POINTS:
                    return Owner(method, total, family, cost)
        return None

    @property
    def total(self) -> int:
        """Of what the shares in sentences are."""
        return self.attribution.attributed

    @property
    def samples(self) -> int:
        """How many samples stand behind the cluster's shares; 0 where unknown."""
        taken = sum(one.samples for one in self.compared.hosts)
        count = next((value for value, (_, unit) in enumerate(self.cluster.values) if unit == "count"), 0)
        kept = self.attribution.interrupted.total(count)
        # Idle threads are not among those taken.
        whole, idle = self.cluster.total(), self.attribution.idle
        every = round(self.cluster.total(count) * (whole - idle) / whole) if whole else 0
        return taken if not taken or not every or kept == every else max(1, round(taken * kept / every))

    @property
    def sampled(self) -> str:
        """What these samples are called: each event is one where all are recorded."""
        return self.measure.words[0] if is_each_one(self.event) else "samples"

    def surely(self, share: float) -> float:
        """The least that a share (0 to 1) may be, with chance in mind."""
        if not self.samples:
            return share
        return share - SIGMAS * math.sqrt(max(share * (1 - share), 0.0) / self.samples)
