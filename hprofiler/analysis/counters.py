"""What processors counted (`--counters`): ratios, top-down shares, totals. Pure functions of sums of groups.

A group's counters were counted in the same moments, so a ratio is made from one group. Where a group was
counted for a part of the time only, its counts are scaled to all of the time. A group that was never counted
has no counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from hprofiler.analysis.noise import SIGMAS

Counts = Mapping[str, float]
_ENOUGH_HOSTS = 4
# The standard deviation of a normal distribution is so many times its median distance from the median.
_NORMAL = 1.4826
MACHINE = "machine"
"""The owner of what is counted for the machine as a whole; others are processes, by pid."""
BANDWIDTH = "memory_bandwidth"
"""The fact: bytes a second that the machine can read from its memory at most."""
LINE = 64
"""Bytes of a cache line: what a load that missed the last cache brings."""


class Ratio(NamedTuple):
    """A figure of counters of one group: its unit, what it needs, and the formula. The divisor is not 0."""

    name: str
    unit: str
    needs: Sequence[str]
    divisor: Callable[[Counts], float]
    part: Callable[[Counts], float]


def _per_thousand(name: str, of: str, by: str) -> Ratio:
    return Ratio(name, "", (of, by), lambda counts: counts[by], lambda counts: 1000 * counts[of])


def _topdown(
    divisor: Callable[[Counts], float], parts: Mapping[str, Callable[[Counts], float]], *needs: str
) -> list[Ratio]:
    return [
        Ratio(name, "%", needs, divisor, lambda counts, part=part: 100 * part(counts))  # type: ignore[misc]
        for name, part in parts.items()
    ]


def _slots(counts: Counts) -> float:
    return counts.get("slots", 0.0)


def _intel_slots(counts: Counts) -> float:
    return sum(counts[name] for name in _INTEL)


def _zen_lost(counts: Counts) -> float:
    """Slots of wrong predictions: what no other counter has."""
    known = sum(counts[name] for name in (*_IDLE, "idle_slots_smt", "retired_ops"))
    return max(0.0, counts["slots"] - known)


def _arm_used(counts: Counts) -> float:
    return max(0.0, counts["slots"] - sum(counts[name] for name in _IDLE))


def _arm_retired(counts: Counts) -> float:
    issued = counts["issued_ops"]
    return min(1.0, counts["retired_ops"] / issued) if issued else 0.0


_INTEL = tuple(f"topdown_{name}" for name in ("retiring", "bad_spec", "fe_bound", "be_bound"))
_IDLE = ("idle_slots_frontend", "idle_slots_backend")
_MISSES = ("l1d", "l1i", "l2", "llc", "dtlb", "branch")

RATIOS: Sequence[Ratio] = (
    Ratio(
        "ipc",
        "",
        ("cycles", "instructions"),
        lambda counts: counts["cycles"],
        lambda counts: counts["instructions"],
    ),
    *(_per_thousand(f"stalls_{end}_pkc", f"stalls_{end}", "cycles") for end in ("frontend", "backend")),
    *(_per_thousand(f"{kind}_mpki", f"{kind}_misses", "instructions") for kind in _MISSES),
    # Ice Lake and later: the processor gives the four shares itself.
    *_topdown(
        _intel_slots,
        {
            "retiring": lambda counts: counts["topdown_retiring"],
            "bad_speculation": lambda counts: counts["topdown_bad_spec"],
            "frontend_bound": lambda counts: counts["topdown_fe_bound"],
            "backend_bound": lambda counts: counts["topdown_be_bound"],
        },
        *_INTEL,
    ),
    # Zen 4 and later.
    *_topdown(
        _slots,
        {
            "retiring": lambda counts: counts["retired_ops"],
            "bad_speculation": _zen_lost,
            "frontend_bound": lambda counts: counts["idle_slots_frontend"],
            "backend_bound": lambda counts: counts["idle_slots_backend"],
            "smt_contention": lambda counts: counts["idle_slots_smt"],
        },
        "cycles",
        *_IDLE,
        "idle_slots_smt",
        "retired_ops",
    ),
    # Neoverse V1 and later.
    *_topdown(
        _slots,
        {
            "retiring": lambda counts: _arm_used(counts) * _arm_retired(counts),
            "bad_speculation": lambda counts: _arm_used(counts) * (1 - _arm_retired(counts)),
            "frontend_bound": lambda counts: counts["idle_slots_frontend"],
            "backend_bound": lambda counts: counts["idle_slots_backend"],
        },
        "cycles",
        *_IDLE,
        "retired_ops",
        "issued_ops",
    ),
)
"""Of several with one name, the first whose counters are there."""


def with_slots(counts: Counts, slots_per_cycle: float) -> Counts:
    """With how many operations could have begun, for groups whose formulas need it."""
    if "idle_slots_frontend" not in counts:
        return counts
    return {**counts, "slots": slots_per_cycle * counts["cycles"]}


def ratio(one: Ratio, counts: Counts) -> float | None:
    """None: a counter is missing, or nothing was counted."""
    if any(name not in counts for name in one.needs):
        return None
    divisor = one.divisor(counts)
    return one.part(counts) / divisor if divisor > 0 else None


@dataclass(frozen=True)
class Group:
    """The scaled counts of a group over a time, and for how many nanoseconds it was to count, and did."""

    counts: Counts
    enabled: float
    running: float

    @property
    def counted(self) -> float:
        """The share of the time that was counted."""
        return self.running / self.enabled if self.enabled else 1.0


Groups = Mapping[str, Group]


def added(all_: Iterable[Groups]) -> dict[str, Group]:
    """The sums of several owners, group by group."""
    sums: dict[str, Group] = {}
    for groups in all_:
        for name, one in groups.items():
            other = sums.get(name)
            if other is None:
                sums[name] = one
                continue
            names = {**other.counts, **one.counts}
            counts = {name: other.counts.get(name, 0.0) + one.counts.get(name, 0.0) for name in names}
            sums[name] = Group(counts, other.enabled + one.enabled, other.running + one.running)
    return sums


def ratios(groups: Groups) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in RATIOS:
        values = (ratio(one, group.counts) for group in groups.values())
        value = next((value for value in values if value is not None), None)
        if value is not None:
            found.setdefault(one.name, value)
    return found


def totals(groups: Groups) -> dict[str, tuple[float, float]]:
    """Each counter's count, and the share of the time that was counted: of several groups that with most."""
    found: dict[str, tuple[float, float]] = {}
    for group in sorted(groups.values(), key=lambda one: -one.counted):
        for name, count in group.counts.items():
            found.setdefault(name, (count, group.counted))
    return found


def low_ipc(by_host: Mapping[str, float]) -> list[tuple[str, float, float, float]]:
    """Hosts with fewer instructions a cycle than the others: host, IPC, the median, and the times of chance.

    The spread of hosts is their median distance from the median, and at least a twentieth of it.
    """
    if len(by_host) < _ENOUGH_HOSTS:
        return []
    middle = median(by_host.values())
    spread = max(_NORMAL * median(abs(one - middle) for one in by_host.values()), middle / 20)
    least = middle - SIGMAS * spread
    return [
        (host, one, middle, (middle - one) / (SIGMAS * spread))
        for host, one in by_host.items()
        if one < least
    ]


@dataclass(frozen=True)
class HostCounters:
    """What was counted on a host in so many seconds: by each recorded process, and by the machine.

    `bandwidth` is the fact BANDWIDTH, 0 where it is unknown.
    """

    seconds: float
    processes: Mapping[str, Groups]
    machine: Groups = field(default_factory=dict)
    bandwidth: int = 0

    @property
    def all(self) -> dict[str, Group]:
        return added(self.processes.values())

    @property
    def watts(self) -> float | None:
        """What the sockets and their memory used on average."""
        group = self.machine.get("energy")
        return sum(group.counts.values()) / 1e6 / self.seconds if group else None

    @property
    def memory(self) -> dict[str, float]:
        """Bytes a second between the processors and the memory: "read" and "written", or "total" alone.

        Where the machine does not count them: "estimate", of the recorded processes' loads alone.
        """
        counts = {name: count for group in self.machine.values() for name, count in group.counts.items()}
        found: dict[str, float] = {}
        for kind, begin in (
            ("read", "memory_read"),
            ("written", "memory_written"),
            ("total", "memory_bytes"),
        ):
            those = [count for name, count in counts.items() if name.startswith(begin)]
            if those:
                found[kind] = sum(those) / self.seconds
        estimated = self.all.get("memory")
        if not found and estimated and "llc_misses" in estimated.counts:
            found["estimate"] = LINE * estimated.counts["llc_misses"] / self.seconds
        return found

    @property
    def memory_of_peak(self) -> float | None:
        """What the machine's memory traffic is of the most that it can be, in percent."""
        traffic = sum(value for kind, value in self.memory.items() if kind != "estimate")
        return 100 * traffic / self.bandwidth if traffic and self.bandwidth else None
