"""What the work of an event was: its cost by category (JSON, compression, GC …) and phase (scan, join …).

The rules are in `flamegraph/rules/frames.yaml`. A sample has one category, that of the frame nearest to its
leaf which has one. What was inlined has no frame, so each category is at least what it is said to be.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from hprofiler._flamegraph import Profile, WorkTable
from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home
from hprofiler.model.measures import measure_of

OTHER = "other"
RULES = 2
"""Raised when the rules, or how they are applied, give another category or phase to a stack."""
RULES_FILE = "HPROFILER_RULES"
_RULE = re.compile(r"([a-z][a-z0-9-]{0,39}):((?:\s+\S+)+)")
# Events whose stacks say who waits, not who works.
_NO_WORK = ("wall", "offcpu", "lock")
_OF_MEMORY = ("alloc", "live", "nativemem", "nativelive")
_COLUMNS_OF_MEMORY = frozenset(name for event in _OF_MEMORY for name, _ in measure_of(event).columns)
_TAKEN = (OTHER, "none", "library")
_MOST_RULES = 100

Sums = Mapping[str, int]
"""Parts of a total by the code of a category."""


@dataclass(frozen=True)
class EventWork:
    """Costs in the value that is shown. `stages` are by name, `processes` by host and pid, `by_phase` by the
    code of a phase, "" for none."""

    categories: Sums = field(default_factory=dict)
    by_phase: Mapping[str, Sums] = field(default_factory=dict)
    hosts: Mapping[str, Sums] = field(default_factory=dict)
    processes: Mapping[tuple[str, int], Sums] = field(default_factory=dict)
    stages: Mapping[str, Sums] = field(default_factory=dict)

    @property
    def phases(self) -> Sums:
        return {phase: sum(of.values()) for phase, of in self.by_phase.items()}


def largest_first(sums: Sums) -> list[tuple[str, int]]:
    """What no rule knows is last."""
    return sorted(sums.items(), key=lambda pair: (pair[0] == OTHER, -pair[1], pair[0]))


def is_work(event: str) -> bool:
    return event not in _NO_WORK


def has_kernel(event: str) -> bool:
    """Whether frames of that kind are the kernel's. Where memory was allocated, they are classes."""
    return event not in _OF_MEMORY


def has_kernel_in(column: str) -> bool:
    """The same by the name of a profile's value."""
    return column not in _COLUMNS_OF_MEMORY


@lru_cache(maxsize=1)
def user_rules() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Rules of the user's own, which come first: a line for each category with its patterns, in the file that
    $HPROFILER_RULES names. Raises UsageError."""
    name = os.environ.get(RULES_FILE)
    if not name:
        return ()
    try:
        lines = at_home(name).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"${RULES_FILE}: cannot read {name}: {reason}", "name a file, or unset it"
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        rule = line.partition("#")[0].strip()
        known = _RULE.fullmatch(rule)
        if known and known[1] in _TAKEN:
            raise UsageError(
                f"${RULES_FILE}: line {number} of {name}: {known[1]} has a meaning of its own",
                "choose another name",
            )
        if known:
            found.append((known[1], tuple(known[2].split())))
        elif rule:
            remedy = "write lines such as `pricing: com.acme.pricing.* com.acme.quotes.*`"
            raise UsageError(f"${RULES_FILE}: line {number} of {name} is not a rule", remedy)
    if len(found) > _MOST_RULES:
        raise UsageError(
            f"${RULES_FILE}: {name} has more than {_MOST_RULES} rules", "write several patterns in a line"
        )
    return tuple(found)


def rules_version() -> str:
    """By which rules work has categories here: their version, and a hash of the user's own."""
    own = user_rules()
    return f"{RULES}+{hashlib.sha256(repr(own).encode()).hexdigest()[:8]}" if own else str(RULES)


class WorkSums:
    """Takes the profiles of an event's processes one by one; they have groups of threads."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._table = WorkTable(user_rules())
        self._categories = Counter[str]()
        self._phases: dict[str, Counter[str]] = {}
        self._hosts: dict[str, Counter[str]] = {}
        self._processes: dict[tuple[str, int], Sums] = {}
        self._stages: dict[str, Counter[str]] = {}

    def add(self, host: str, pid: int, profile: Profile) -> None:
        if not is_work(self._event) or not profile.total():
            return
        categories = Counter[str]()
        for category, phase, stage, value in self._table.sums(profile, kernel=has_kernel(self._event)):
            categories[category] += value
            self._phases.setdefault(phase, Counter())[category] += value
            if stage:
                self._stages.setdefault(stage, Counter())[category] += value
        self._categories.update(categories)
        self._hosts.setdefault(host, Counter()).update(categories)
        self._processes[host, pid] = categories

    def finish(self) -> EventWork:
        return EventWork(self._categories, self._phases, self._hosts, self._processes, self._stages)
