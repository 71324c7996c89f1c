"""Peak memory of executors beside their configured limits, and whether the sizes fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hprofiler.spark.application import Application, Executor
from hprofiler.spark.losses import losses

RESERVED = 300 << 20
"""Bytes of the heap that Spark leaves to itself, outside of the unified pool."""
_LEAST_OVERHEAD = 384 << 20
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SIZE = re.compile(r"(\d{1,12})\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_FULL = 0.9
_LOST_MEMORY = {"heap": "heap-exhausted", "memory": "memory-killed", "sigkill": "killed-by-signal"}
_NON_HEAP = (
    "JVMOffHeapMemory",
    "DirectPoolMemory",
    "ProcessTreePythonRSSMemory",
    "ProcessTreeOtherRSSMemory",
)
_RESIDENT_JVM = "ProcessTreeJVMRSSMemory"
_RESIDENT_OTHERS = ("ProcessTreePythonRSSMemory", "ProcessTreeOtherRSSMemory")
_GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """What an executor may use, in bytes; 0 is none or not known.

    `unified` is the part of the heap for execution and storage together. `container` is the whole of a YARN
    or Kubernetes container; elsewhere nothing but the heap is limited.
    """

    heap: int = 0
    unified: int = 0
    off_heap: int = 0
    overhead: int = 0
    python: int = 0
    container: int = 0


@dataclass(frozen=True)
class ExecutorMemory:
    """`peak` has Spark's names; what was not sampled is not in it.

    `resident` is the memory of all its processes, 0 if nobody measured it; that of the JVM is the larger one
    of what the agent and Spark measured.
    """

    id: str
    host: str
    limits: Limits
    peak: dict[str, int]
    resident: int
    memory_spilled: int
    disk_spilled: int
    gc_share: float


@dataclass(frozen=True)
class Verdict:
    """What is to be said about the sizes. `figures` are bytes, except for shares and counts."""

    code: str
    figures: dict[str, float]


@dataclass(frozen=True)
class Memory:
    executors: list[ExecutorMemory]
    verdicts: list[Verdict]


def application_memory(application: Application, resident: Mapping[str, int] | None = None) -> Memory:
    """`resident` is the memory of executors' JVMs by executor, where an agent has measured it."""
    used = _used_by_executor(application)
    executors = []
    workers = {executor.id for executor in application.workers}
    for executor in application.executors.values():
        if executor.id not in workers and not executor.peak:
            continue  # a driver of which nothing is known
        memory_spilled, disk_spilled, time, gc = used.get(executor.id, (0, 0, 0, 0))
        peak = {name: value for name, value in executor.peak.items() if value}
        jvm = max((resident or {}).get(executor.id, 0), peak.get(_RESIDENT_JVM, 0))
        executors.append(
            ExecutorMemory(
                id=executor.id,
                host=executor.host,
                limits=limits(application, executor),
                peak=peak,
                resident=jvm + sum(peak.get(name, 0) for name in _RESIDENT_OTHERS),
                memory_spilled=memory_spilled,
                disk_spilled=disk_spilled,
                gc_share=gc / time if time else 0.0,
            )
        )
    return Memory(executors, verdicts(application, [one for one in executors if one.id in workers]))


def limits(application: Application, executor: Executor) -> Limits:
    """From the executor's resource profile, else from the settings."""
    settings = application.properties
    alone = executor.id == "driver"
    fraction = _share(settings.get("spark.memory.fraction"), 0.6)
    profile = application.resource_profiles.get(executor.resource_profile, {}).get("executor", {})
    requested = (
        {} if alone else {name: int(min(max(amount, 0), 1 << 33)) << 20 for name, amount in profile.items()}
    )
    heap = requested.get("memory") or size(
        settings.get(f"spark.{'driver' if alone else 'executor'}.memory", ""), "m"
    )
    if not heap and alone and executor.max_onheap:  # its launcher's -Xmx is not in the log
        heap = round(executor.max_onheap / fraction) + RESERVED
    heap = heap or _GIB
    unified = executor.max_onheap or max(0, round((heap - RESERVED) * fraction))
    off_heap = requested.get("offHeap", 0)
    if not off_heap and settings.get("spark.memory.offHeap.enabled") == "true":
        off_heap = size(settings.get("spark.memory.offHeap.size", "0"), "")
    if alone or not settings.get("spark.master", "").startswith(("yarn", "k8s")):
        return Limits(heap, unified, off_heap)
    python = requested.get("pyspark.memory") or size(settings.get("spark.executor.pyspark.memory", ""), "m")
    overhead = requested.get("memoryOverhead") or size(settings.get("spark.executor.memoryOverhead", ""), "m")
    if not overhead:
        least = size(settings.get("spark.executor.minMemoryOverhead", ""), "m") or _LEAST_OVERHEAD
        of_kubernetes = settings.get("spark.kubernetes.memoryOverheadFactor")
        factor = _share(settings.get("spark.executor.memoryOverheadFactor", of_kubernetes), 0.1)
        overhead = max(least, round(heap * factor))
    return Limits(heap, unified, off_heap, overhead, python, heap + off_heap + overhead + python)


def verdicts(application: Application, executors: list[ExecutorMemory]) -> list[Verdict]:
    """Over all executors, by the one that needed most: their sizes are set together."""
    if not executors:
        return []
    found = []
    sampled = [one for one in executors if one.peak.get("JVMHeapMemory")]
    spilled = any(one.disk_spilled for one in executors)
    for code, count in _ended_for_memory(application, executors).items():
        found.append(Verdict(code, {"executors": count}))
    if not sampled:
        asked = application.properties.get("spark.eventLog.logStageExecutorMetrics") == "true"
        why = "memory-too-short" if asked else "memory-not-sampled"
        found.append(Verdict(why, {"executors": len(executors)}))
        return [*found, _spill(executors)] if spilled else found
    found += _collection(sampled)
    fullest = max(sampled, key=_fullness)
    heap, peak = fullest.limits.heap, fullest.peak["JVMHeapMemory"]
    if spilled:
        found.append(_spill(executors))
    elif (
        not _is_full(found)
        and heap >= 2 * _GIB
        and peak < 0.5 * heap
        and max(one.gc_share for one in executors) < 0.05
    ):
        suggested = max(_GIB, -(-round(1.3 * peak) // (256 << 20)) * (256 << 20))
        found.append(Verdict("heap-too-large", {"heap": heap, "peak": peak, "suggested": suggested}))
    found += _overhead(executors)
    if any(one.limits.off_heap for one in sampled) and not any(
        one.peak.get("OffHeapUnifiedMemory") for one in sampled
    ):
        size_of = max(one.limits.off_heap for one in sampled)
        found.append(Verdict("off-heap-unused", {"off_heap": size_of}))
    return found


def _is_full(found: list[Verdict]) -> bool:
    """Whether a heap was, though Spark sampled less: it takes a sample in ten seconds."""
    return any(one.code == "heap-exhausted" for one in found)


def _fullness(one: ExecutorMemory) -> float:
    return one.peak["JVMHeapMemory"] / (one.limits.heap or 1)


def _collection(sampled: list[ExecutorMemory]) -> list[Verdict]:
    """Of the fullest executor among those whose collector took long."""
    busy = [one for one in sampled if one.gc_share >= 0.1]
    if not busy:
        return []
    one = max(busy, key=_fullness)
    full = one.limits.heap and _fullness(one) >= 0.9
    figures = {"heap": one.limits.heap, "peak": one.peak["JVMHeapMemory"], "gc_share": one.gc_share}
    return [Verdict("heap-too-small" if full else "gc-heavy", figures)]


def _spill(executors: list[ExecutorMemory]) -> Verdict:
    """By what the executor that spilled most had in its memory at the same time, as far as peaks show it."""
    one = max(executors, key=lambda one: one.disk_spilled)
    pool, heap, peak = one.limits.unified, one.limits.heap, one.peak.get("JVMHeapMemory", 0)
    storage = one.peak.get("OnHeapStorageMemory", 0)
    figures: dict[str, float] = {"spilled": one.disk_spilled, "pool": pool}
    if not peak:
        return Verdict("spill", figures)
    figures |= {"heap": heap, "peak": peak}
    if storage > 0.3 * pool:
        return Verdict("spill-beside-cache", {**figures, "storage": storage})
    return Verdict("spill-beside-free-heap" if peak < 0.7 * heap else "spill", figures)


def _overhead(executors: Iterable[ExecutorMemory]) -> list[Verdict]:
    """Of containers whose processes' memory is known."""
    known = [one for one in executors if one.limits.container and one.resident]
    if not known:
        return []
    fullest = max(known, key=lambda one: one.resident / one.limits.container)
    figures: dict[str, float] = {
        "overhead": fullest.limits.overhead,
        "container": fullest.limits.container,
        "resident": fullest.resident,
    }
    if fullest.resident > 0.95 * fullest.limits.container:
        return [Verdict("overhead-too-small", figures)]
    most = max(known, key=_non_heap)
    overhead, non_heap = most.limits.overhead, _non_heap(most)
    if overhead >= _GIB and 0 < non_heap < 0.3 * overhead:
        return [Verdict("overhead-too-large", {"overhead": overhead, "non_heap": non_heap})]
    return []


def _non_heap(one: ExecutorMemory) -> int:
    """At least so much was outside of the heap: what was sampled of it, and what cannot have been in it."""
    return max(sum(one.peak.get(name, 0) for name in _NON_HEAP), one.resident - one.limits.heap)


def _ended_for_memory(application: Application, executors: list[ExecutorMemory]) -> dict[str, int]:
    """How many executors ended for lack of memory, or may have, by the code of its verdict. Nobody knows who
    sent a SIGKILL; a container that was full then ended for lack of memory."""
    full = {one.id for one in executors if one.resident > _FULL * one.limits.container > 0}
    counts: dict[str, int] = {}
    for id_, loss in losses(application).items():
        verdict = "memory-killed" if loss == "sigkill" and id_ in full else _LOST_MEMORY.get(loss)
        if verdict:
            counts[verdict] = counts.get(verdict, 0) + 1
    return counts


def _used_by_executor(application: Application) -> dict[str, tuple[int, int, int, int]]:
    """Bytes spilled in memory and on disk, duration and GC time of its tasks, by executor."""
    ids = application.executor_ids
    sums: dict[int, list[int]] = {}
    names = ("memory_spilled", "disk_spilled", "duration", "gc_time")
    for stage in application.stages.values():
        for number, *values in stage.tasks.columns("executor", *names):
            before = sums.setdefault(number, [0, 0, 0, 0])
            for place, value in enumerate(values):
                before[place] += value
    return {ids[number]: (one[0], one[1], one[2], one[3]) for number, one in sums.items()}


def size(text: str, unit: str) -> int:
    """Bytes of a setting such as `4g`; `unit` is that of a number without one. 0 if it is none."""
    found = _SIZE.fullmatch(text.strip())
    return int(found.group(1)) << _UNITS[(found.group(2) or unit).lower()] if found else 0


def _share(text: str | None, default: float) -> float:
    try:
        found = float(text) if text else default
    except ValueError:
        return default
    return found if 0 < found <= 10 else default
