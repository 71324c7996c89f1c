"""What stands out in the memory of processes: codes and bytes, no sentences; docs/memory.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from hprofiler.model import PARENT
from hprofiler.model.memory import PARTS, GroupMemory, MeasuredProcess, Part
from hprofiler.spark.memory import Limits

NAMELESS: tuple[Part, ...] = ("malloc", "anonymous")
"""Where direct buffers are, and all other memory of native code and of the JVM itself."""
# What these categories of NativeMemoryTracking have is in parts of their own.
_HAS_A_PART = frozenset({"Java Heap", "Thread", "Code", "Class", "Metaspace", "Shared class space"})
_MIB = 1 << 20
_NEAR = 0.9
_MUCH_OFF_HEAP, _OFF_HEAP_SHARE = 512 * _MIB, 1 / 8
_MUCH_MALLOC, _MALLOC_SHARE, _MANY_ARENAS = 512 * _MIB, 1 / 10, 8
_MANY_THREADS = 1000
_ALIKE, _MUCH_MORE, _MORE = 4, 1.5, 256 * _MIB
_GREW, _GREW_SHARE = 32 * _MIB, 0.02
_SWAPPED = 64 * _MIB
_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class MemoryFinding:
    """`figures` are bytes, but for counts and `seconds`. `pid` is None for a control group; `scope` is it.

    `parts` are bytes by part, the largest first.
    """

    code: str
    severity: str
    host: str
    figures: Mapping[str, float]
    pid: int | None = None
    label: str = ""
    scope: str = ""
    parts: Mapping[Part, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Scope:
    """Processes that share a limit.

    `now` is what they have and the kernel cannot take back. `rest` is that without Java heaps, and `most`
    with these as large as they may become; both are None if a JVM did not say where its heap is. `group` is
    their control group; without one the limit is that of Spark's container.
    """

    host: str
    name: str
    limit: int
    now: int
    heap_max: int
    heap_committed: int
    rest: int | None
    processes: tuple[MeasuredProcess, ...]
    group: GroupMemory | None = None

    @property
    def most(self) -> int | None:
        return None if self.rest is None else self.rest + self.heap_max


@dataclass(frozen=True)
class MergedClass:
    """A class in all histograms, with the median of processes and the largest one."""

    name: str
    objects: int
    bytes: int
    median: float
    largest: int
    largest_process: MeasuredProcess


@dataclass(frozen=True)
class MemoryResult:
    """`limits` are those that Spark was configured with, by pid of each host."""

    processes: tuple[MeasuredProcess, ...]
    scopes: tuple[Scope, ...]
    findings: tuple[MemoryFinding, ...]
    classes: tuple[MergedClass, ...]
    limits: Mapping[tuple[str, int], Limits]


def analyse_memory(
    processes: Sequence[MeasuredProcess], limits: Mapping[tuple[str, int], Limits] | None = None
) -> MemoryResult:
    """`limits`: Spark's configured sizes, by host and pid, where they are known."""
    limits = limits or {}
    scopes = tuple(_scopes(processes, limits))
    findings = [
        *(finding for scope in scopes for finding in _of_scope(scope)),
        *(finding for one in processes for finding in _of_process(one, _off_heap(one, limits))),
        *_differing(processes),
    ]
    findings.sort(key=lambda one: _SEVERITIES.index(one.severity))
    return MemoryResult(tuple(processes), scopes, tuple(findings), tuple(_classes(processes)), limits)


def tracked(process: MeasuredProcess) -> int | None:
    """What the JVM says it has outside of parts of their own; None if it does not track that."""
    jvm = process.last.jvm
    if not jvm or not jvm.native:
        return None
    return sum(size for name, size in jvm.native.items() if name not in _HAS_A_PART)


def _scopes(
    processes: Sequence[MeasuredProcess], limits: Mapping[tuple[str, int], Limits]
) -> Iterator[Scope]:
    """Those of control groups, and of Spark's containers where no group limits them."""
    groups: dict[tuple[str, str], list[MeasuredProcess]] = {}
    for one in processes:
        group = one.last.group
        if group and group.limit is not None:
            groups.setdefault((one.process.host, group.id), []).append(one)
    limited = {id(one) for members in groups.values() for one in members}
    for (host, name), members in groups.items():
        group = members[0].last.group
        assert group and group.limit is not None
        yield _scope(host, name, group.limit, _kept(group), members, group)
    children: dict[tuple[str, str], list[MeasuredProcess]] = {}
    for one in processes:
        if parent := one.process.labels.get(PARENT):
            children.setdefault((one.process.host, parent), []).append(one)
    for one in processes:
        host, pid = one.process.host, one.process.pid
        known = limits.get((host, pid))
        if not known or not known.container or id(one) in limited:
            continue
        members = [one, *children.get((host, str(pid)), ())]
        yield _scope(host, one.process.label, known.container, sum(m.last.resident for m in members), members)


def _kept(group: GroupMemory) -> int:
    """Without the page cache, and the kernel's own memory: mostly names of files, which it can forget."""
    if group.anonymous is None:
        return group.used or 0
    return group.anonymous + (group.shared or 0)


def _scope(
    host: str,
    name: str,
    limit: int,
    now: int,
    members: Sequence[MeasuredProcess],
    group: GroupMemory | None = None,
) -> Scope:
    jvms = [one.last for one in members if one.last.jvm]
    known = all(memory.jvm and memory.jvm.heap_max and "heap" in memory.parts for memory in jvms)
    heap = sum(memory.of("heap") for memory in jvms)
    return Scope(
        host=host,
        name=name,
        limit=limit,
        now=now,
        heap_max=sum(memory.jvm.heap_max or 0 for memory in jvms if memory.jvm),
        heap_committed=sum(memory.jvm.heap_committed or 0 for memory in jvms if memory.jvm),
        rest=max(0, now - heap) if jvms and known else None,
        processes=tuple(members),
        group=group,
    )


def _of_scope(scope: Scope) -> Iterator[MemoryFinding]:
    def finding(code: str, severity: str, **figures: float) -> MemoryFinding:
        only = scope.processes[0].process if len(scope.processes) == 1 else None
        return MemoryFinding(
            code,
            severity,
            scope.host,
            {"limit": scope.limit, "now": scope.now, **figures},
            only.pid if only else None,
            only.label if only else "",
            scope.name,
        )

    if scope.most is not None and scope.rest is not None and scope.most > scope.limit:
        committed = scope.rest + scope.heap_committed > scope.limit
        yield finding(
            "heap-does-not-fit",
            "error" if committed else "warning",
            rest=scope.rest,
            heap_max=scope.heap_max,
            heap_committed=scope.heap_committed,
            over=scope.most - scope.limit,
            nameless=sum(one.last.of(*NAMELESS) for one in scope.processes),
        )
    elif scope.now > _NEAR * scope.limit:
        yield finding("limit-near", "warning")
    if scope.group and scope.group.oom_kills:
        yield finding("oom-kills", "warning", kills=scope.group.oom_kills)


def _off_heap(one: MeasuredProcess, limits: Mapping[tuple[str, int], Limits]) -> int:
    """What Spark may have off the heap."""
    known = limits.get((one.process.host, one.process.pid))
    return known.off_heap if known else 0


def _of_process(one: MeasuredProcess, of_spark: int) -> Iterator[MemoryFinding]:
    memory, resident = one.last, one.last.resident
    nameless, malloc = memory.of(*NAMELESS), memory.of("malloc")
    known = tracked(one)
    unknown = nameless - (of_spark if known is None else known)
    if memory.jvm and "heap" in memory.parts and unknown > max(_MUCH_OFF_HEAP, _OFF_HEAP_SHARE * resident):
        figures: dict[str, float] = {"bytes": unknown, "nameless": nameless}
        if known is not None:
            figures["tracked"] = known
        elif direct := memory.jvm.flags.get("MaxDirectMemorySize") or memory.jvm.heap_max:
            figures["direct_max"] = direct
        yield _finding("off-heap", "warning", one, figures)
    if memory.arenas >= _MANY_ARENAS and malloc > max(_MUCH_MALLOC, _MALLOC_SHARE * resident):
        yield _finding("arenas", "warning", one, {"arenas": memory.arenas, "bytes": malloc})
    if memory.threads >= _MANY_THREADS:
        yield _finding(
            "many-threads", "warning", one, {"threads": memory.threads, "bytes": memory.of("stacks")}
        )
    if memory.swap > _SWAPPED:
        yield _finding("swapped", "warning", one, {"bytes": memory.swap})
    (first, before), (last, _) = one.looks[0], one.looks[-1]
    grew = resident - before.resident
    if grew > max(_GREW, _GREW_SHARE * before.resident):
        parts = {part: memory.of(part) - before.of(part) for part in PARTS}
        yield _finding("grew", "info", one, {"bytes": grew, "seconds": last - first}, _largest_first(parts))


def _differing(processes: Sequence[MeasuredProcess]) -> Iterator[MemoryFinding]:
    """Processes that are much larger than others that run the same program."""
    kinds: dict[str, list[MeasuredProcess]] = {}
    for one in processes:
        kinds.setdefault(one.process.main_class or one.process.label, []).append(one)
    for alike in kinds.values():
        if len(alike) < _ALIKE:
            continue
        usual = median(one.last.resident for one in alike)
        for one in alike:
            more = one.last.resident - usual
            if one.last.resident > _MUCH_MORE * usual and more > _MORE:
                parts = {
                    part: one.last.of(part) - int(median(other.last.of(part) for other in alike))
                    for part in PARTS
                }
                figures = {"bytes": one.last.resident, "median": usual, "processes": len(alike)}
                yield _finding("differs", "warning", one, figures, _largest_first(parts))


def _largest_first(parts: Mapping[Part, int]) -> dict[Part, int]:
    positive = ((part, size) for part, size in parts.items() if size > 0)
    return dict(sorted(positive, key=lambda pair: -pair[1]))


def _finding(
    code: str,
    severity: str,
    one: MeasuredProcess,
    figures: Mapping[str, float],
    parts: Mapping[Part, int] | None = None,
) -> MemoryFinding:
    process = one.process
    return MemoryFinding(code, severity, process.host, figures, process.pid, process.label, parts=parts or {})


def _classes(processes: Iterable[MeasuredProcess]) -> list[MergedClass]:
    """The classes of all histograms, the largest first. One that is not among a JVM's largest has 0 there."""
    found: dict[str, dict[int, tuple[int, int]]] = {}
    counted = [one for one in processes if one.last.jvm and one.last.jvm.histogram]
    for number, one in enumerate(counted):
        assert one.last.jvm and one.last.jvm.histogram
        for row in one.last.jvm.histogram.classes:
            objects, size = found.setdefault(row.name, {}).get(number, (0, 0))
            found[row.name][number] = (objects + row.objects, size + row.bytes)
    merged = []
    for name, rows in found.items():
        sizes = [rows.get(number, (0, 0))[1] for number in range(len(counted))]
        largest = max(range(len(counted)), key=sizes.__getitem__)
        objects = sum(row[0] for row in rows.values())
        merged.append(MergedClass(name, objects, sum(sizes), median(sizes), sizes[largest], counted[largest]))
    return sorted(merged, key=lambda one: (-one.bytes, one.name))
