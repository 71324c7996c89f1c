"""Which method a cost belongs to.

The stack of a thread that waits ends in the scheduler, whatever it waits for. Every allocation of native
memory ends in malloc, and every call of a counted method in that method. Pictures show these frames; tables
and sentences name who allocates, who calls, and what is waited for by whom ("sleeps in Job.run"). They leave
out idle threads, and do not name the profiler's own work, which is a part of whom it interrupted.

Off-CPU profiles have a frame for idle threads. A wall-clock profile has none: its stacks are judged by the
same rules. All of them are in `flamegraph/rules/frames.yaml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from hprofiler._flamegraph import Profile, category_patterns
from hprofiler.analysis.facts import ASYNC_PROFILER, RunFacts, root_patterns
from hprofiler.analysis.sure_callers import Callers
from hprofiler.analysis.trust import BROKEN_PATTERN, MOST_BROKEN
from hprofiler.analysis.waits import LOCKS, OTHER_WAITS, RUNNING, SLEEP, Wait
from hprofiler.analysis.words import and_list, short_name, shown_name
from hprofiler.model.event_names import is_function, is_method, is_tracepoint
from hprofiler.model.measures import measure_of

_EVERYTHING = 2**31 - 1
# Events, and values of files, of threads that run or wait.
_THREADS = ("wall", "offcpu")
_Ends = tuple[list[str], bool]
"""What stacks end in: patterns, and whether the kernel's frames are of it."""


class Method(NamedTuple):
    """What a method costs itself, and with all it calls; or what a wait in it costs, and `name` says both.

    The total is not `known` where stubs and intrinsics may be below wrong callers.
    """

    name: str
    self_value: int
    total_value: int
    wait: Wait | None = None
    known: bool = True

    @property
    def shown(self) -> str:
        """The name as people write it."""
        return self.wait.shown if self.wait else shown_name(self.name)

    @property
    def short(self) -> str:
        """The name without the package."""
        return self.wait.short if self.wait else short_name(self.name)

    @property
    def is_sleep(self) -> bool:
        """Whether it is a sleep, which is deliberate: somebody wrote for how long."""
        return self.wait is not None and self.wait.code == SLEEP

    @property
    def method(self) -> str:
        """The name of the method itself."""
        return self.wait.method if self.wait else self.name


@dataclass(frozen=True)
class Attribution:
    """A profile whose stacks end where there is something to look at.

    `original` is the profile as it is drawn. `idle` is the value of idle threads, which are left out, and
    `profiler` that of the profiler's own work: `profile` is without it, but it counts for who was interrupted
    for it, as in the picture (`interrupted`). With `only_profiler` there is nothing else, and it stays.
    Stacks of threads that wait end in a frame for that, which `waits` explains. What is left out of the
    profiler's own work has one of the `profiler_frames`, which are patterns.
    `broken` is the value of processes whose stacks are not trusted. If that is more than `MOST_BROKEN` of
    what is left, all stays, and only self costs are right (`self_only`); else these processes are left out.
    `callers` says who surely calls stubs and intrinsics where that is not sure of all callers.
    """

    event: str
    original: Profile
    profile: Profile
    interrupted: Profile
    idle: int
    profiler: int
    only_profiler: bool
    broken: int = 0
    self_only: bool = False
    waits: Mapping[str, Wait] = field(default_factory=dict)
    profiler_frames: Sequence[str] = ()
    callers: Callers | None = None

    @cached_property
    def surely_called(self) -> Profile:
        """The profile with stubs and intrinsics below their nearest sure caller."""
        return self.callers.cut(self.profile) if self.callers else self.profile

    def sure_total(self, method: str) -> int:
        """The least that a method's total may be."""
        return next((one.total_value for one in self.surely_called.top(_EVERYTHING) if one.name == method), 0)

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """All methods, hottest by self first."""
        top = self.profile.top(_EVERYTHING)
        every = self.interrupted.top(_EVERYTHING) if self.profiler else top
        totals = {one.name: one.total_value for one in every}
        unknown = frozenset(self.callers.unknown if self.callers else ())
        return tuple(
            Method(
                one.name,
                one.self_value,
                totals[one.name],
                self.waits.get(one.name),
                not self.self_only and one.name not in unknown,
            )
            for one in top
        )

    @cached_property
    def kinds(self) -> dict[str, int]:
        """How long threads ran, and waited by kind, the longest first; none where that is not known."""
        if not self.knows_waits:
            return {}
        kinds: Counter[str] = Counter()
        others = RUNNING if self.event == "wall" else OTHER_WAITS
        for one in self.methods:
            kinds[one.wait.doing.kind if one.wait else others] += one.self_value
        return {kind: value for kind, value in kinds.most_common() if value}

    @property
    def knows_waits(self) -> bool:
        """Whether the event counts threads that may wait."""
        return counts_waits(self.event)

    @cached_property
    def attributed(self) -> int:
        """Of what methods are shares."""
        return self.interrupted.total()

    @property
    def besides(self) -> str:
        """What was left out, "" for nothing: " besides idle threads"."""
        left = {"idle threads": self.idle, "broken stacks": 0 if self.self_only else self.broken}
        named = and_list([name for name, value in left.items() if value])
        return f" besides {named}" if named else ""

    @property
    def share_of(self) -> str:
        """What the profile's total is."""
        return measure_of(self.event).share_of + self.besides


def attribute(facts: RunFacts, profile: Profile, callers: Callers | None = None) -> Attribution:
    """Give the costs of a run's profile to the callers that tables name.

    Idle threads are left out of events that count waits, unless all are idle. The profiler's own work is left
    out if there is other work.
    """
    recordings = [one for host in facts.hosts for one in host.recordings]
    sampled_itself = any(one.engine == ASYNC_PROFILER for one in recordings)
    profiler = category_patterns("profiler") if sampled_itself else []
    found = _attribute(facts.event, profile, ends_of_run(facts.event), profiler)
    return replace(found, callers=callers)


def attribute_file(profile: Profile) -> Attribution:
    """The same for a file. It is not known what recorded it: any frame may be the program's own.

    Its value may be called `time` and be no event; a frame of that name is no function that was counted.
    """
    event = profile.values[0][0]
    return _attribute(event, profile, ends_of_file(event), [])


def _attribute(event: str, profile: Profile, ends: _Ends, profiler: list[str]) -> Attribution:
    busy = _unless_empty(without_idle(event, profile), profile)
    trusted = busy.filter(exclude=BROKEN_PATTERN)
    broken = busy.total() - trusted.total()
    self_only = broken > MOST_BROKEN * busy.total()
    known = busy if self_only else trusted
    own = known.filter(include=profiler).total() if profiler else 0
    others = _unless_empty(known.filter(exclude=profiler), known) if own else known
    how, kernel = ends
    waits: dict[str, Wait] = {}

    def named(part: Profile) -> Profile:
        if counts_waits(event):
            ended, found = with_waits_named(event, part)
            waits.update(found)
            return ended
        return part.into_callers(how, kernel=kernel) if how else part

    named_others = named(others)
    return Attribution(
        event=event,
        original=profile,
        profile=named_others,
        interrupted=named(known) if others is not known else named_others,
        idle=profile.total() - busy.total(),
        profiler=known.total() - others.total(),
        only_profiler=0 < own == others.total() == known.total(),
        broken=broken,
        self_only=self_only,
        waits=waits,
        profiler_frames=profiler if others is not known else (),
    )


def counts_waits(event: str) -> bool:
    """Whether an event, or a value of a file, counts threads that may wait."""
    return event in _THREADS or event in LOCKS


def with_waits_named(event: str, profile: Profile) -> tuple[Profile, dict[str, Wait]]:
    """A profile whose stacks of waiting threads end in names of their waits, and what these names say."""
    ended, found = profile.into_waiters(locks=event in LOCKS)
    return ended, {name: Wait(code, method) for name, code, method in found}


def without_idle(event: str, profile: Profile) -> Profile:
    """Where waits are counted, the stacks of threads that do not merely wait for work."""
    if event == "offcpu":
        return profile.filter(exclude=r"^\[idle pool thread\]$")
    return profile.without_idle() if event == "wall" else profile


def _unless_empty(part: Profile, whole: Profile) -> Profile:
    return part if part.total() else whole


def ends_of_file(event: str) -> _Ends:
    """What the stacks of an event end in, except for functions."""
    if is_tracepoint(event):
        return category_patterns("wait"), True
    if event in ("nativemem", "nativelive"):
        return category_patterns("allocation"), False
    return (root_patterns([event]) if is_method(event) else []), False


def ends_of_run(event: str) -> _Ends:
    """The same, and the counted function if the event is one."""
    # The C library has other names for its functions: __libc_malloc.
    counted = rf"^_*(?:GI_)?_*(?:libc_)?{re.escape(event)}(?:64)?(?:_nocancel|_cancel)?(?:@.*)?$"
    return ([counted], False) if is_function(event) else ends_of_file(event)
