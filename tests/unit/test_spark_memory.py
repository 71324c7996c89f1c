"""Peak memory beside limits, and what is said about the sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from hprofiler.report.spark.words import verdict_text
from hprofiler.spark.application import Application, Executor, Stage, TaskTable
from hprofiler.spark.memory import Memory, application_memory, size

GIB, MIB = 1 << 30, 1 << 20
ON_YARN = {"spark.master": "yarn", "spark.executor.memory": "8g"}
SAMPLED = {"JVMHeapMemory": 6 * GIB}


def memory_of(
    settings: Mapping[str, str] = ON_YARN,
    peak: Mapping[str, int] = SAMPLED,
    spilled: int = 0,
    gc_time: int = 0,
    resident: Mapping[str, int] | None = None,
    reason: str = "",
) -> Memory:
    """Of two executors; tasks ran on the first one, for 1000 ms."""
    times = {"launch": 1, "finish": 1001, "gc_time": gc_time}
    task = {"executor": 0, "disk_spilled": spilled, "status": 1, **times}
    executors = Executor("1", "node1", peak=dict(peak)), Executor("2", "node2", reason=reason)
    return application_memory(application_of(*executors, tasks=[task], settings=settings), resident)


def application_of(
    *executors: Executor, tasks: Iterable[dict[str, int]] = (), settings: Mapping[str, str] = ON_YARN
) -> Application:
    application = Application(properties=dict(settings), executor_ids=[one.id for one in executors])
    application.executors = {one.id: one for one in executors}
    application.stages[0, 0] = Stage(0, tasks=TaskTable.of(tasks))
    return application


def test_limits_of_a_container() -> None:
    """The pool is 60 % of the heap without 300 MiB; the overhead a tenth of the heap, at least 384 MiB."""
    limits = memory_of().executors[0].limits
    assert (limits.heap, limits.unified) == (8 * GIB, round((8 * GIB - 300 * MIB) * 0.6))
    assert limits.overhead == round(0.8 * GIB) + 0 and limits.container == limits.heap + limits.overhead
    small = memory_of({**ON_YARN, "spark.executor.memory": "1g"}).executors[0].limits
    assert small.overhead == 384 * MIB
    settings = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1073741824"}
    more = {"spark.executor.memoryOverhead": "512", "spark.executor.pyspark.memory": "2g"}
    limits = memory_of({**ON_YARN, **settings, **more}).executors[0].limits
    assert (limits.off_heap, limits.overhead, limits.python) == (GIB, 512 * MIB, 2 * GIB)
    assert limits.container == (8 + 1 + 2) * GIB + 512 * MIB
    assert memory_of({"spark.master": "spark://host:7077"}).executors[0].limits.container == 0


def test_a_resource_profile_comes_before_the_settings() -> None:
    application = application_of(Executor("1", resource_profile=2))
    application.resource_profiles[2] = {"executor": {"memory": 2048.0, "memoryOverhead": 1024.0}, "task": {}}
    (executor,) = application_memory(application).executors
    assert (executor.limits.heap, executor.limits.overhead) == (2 * GIB, GIB)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("4g", "m", 4 * GIB),
        ("512", "m", 512 * MIB),
        ("10 GB", "m", 10 * GIB),
        ("7kib", "", 7 << 10),
        ("1.5g", "m", 0),
        ("", "m", 0),
        ("-1", "m", 0),
    ],
)
def test_sizes_of_settings(text: str, unit: str, expected: int) -> None:
    assert size(text, unit) == expected


FREE = {"JVMHeapMemory": 3 * GIB}
PYTHON = {**SAMPLED, "ProcessTreeJVMRSSMemory": 8 * GIB, "ProcessTreePythonRSSMemory": GIB}


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("memory-not-sampled", {"peak": {}}),
        ("memory-not-sampled", {"peak": {"JVMHeapMemory": 0}}),
        ("memory-too-short", {"settings": {**ON_YARN, "spark.eventLog.logStageExecutorMetrics": "true"},
                              "peak": {}}),
        ("heap-too-large", {"peak": FREE}),
        ("heap-too-small", {"peak": {"JVMHeapMemory": 15 * GIB // 2}, "gc_time": 300}),
        ("gc-heavy", {"gc_time": 300}),
        ("spill", {"spilled": 5 * GIB}),
        ("spill-beside-free-heap", {"spilled": GIB, "peak": FREE}),
        ("spill-beside-cache", {"spilled": GIB, "peak": {**SAMPLED, "OnHeapStorageMemory": 2 * GIB}}),
        ("overhead-too-small", {"peak": PYTHON}),
        ("overhead-too-small", {"resident": {"1": 9 * GIB}}),
        ("memory-killed", {"reason": "Container killed by YARN for exceeding physical memory limits"}),
        ("killed-by-signal", {"reason": "Command exited with code 137"}),
        ("heap-exhausted", {"reason": "Command exited with code 52"}),
        ("heap-exhausted", {"reason": "java.lang.OutOfMemoryError: Java heap space"}),
        ("off-heap-unused", {"settings": {**ON_YARN, "spark.memory.offHeap.enabled": "true",
                                          "spark.memory.offHeap.size": "2g"}}),
        ("overhead-too-large", {"settings": {**ON_YARN, "spark.executor.memoryOverhead": "4g"},
                                "resident": {"1": 8 * GIB},
                                "peak": {**SAMPLED, "JVMOffHeapMemory": 200 * MIB}}),
    ],
)  # fmt: skip
def test_verdicts(code: str, given: dict[str, object]) -> None:
    (verdict,) = memory_of(**given).verdicts  # type: ignore[arg-type]
    assert verdict.code == code
    text = verdict_text(verdict)
    assert text and "{" not in text


def test_heap_and_collections_are_those_of_one_executor() -> None:
    """The first executor is full and calm; the second one collects a third of the time, with room."""
    rows = [{"executor": number, "launch": 1, "finish": 1001, "gc_time": 300 * number} for number in (0, 1)]
    heaps = {"1": 15 * GIB // 2, "2": 5 * GIB}
    executors = [Executor(id_, peak={"JVMHeapMemory": heap}) for id_, heap in heaps.items()]
    (verdict,) = application_memory(application_of(*executors, tasks=rows)).verdicts
    assert verdict.code == "gc-heavy"
    assert verdict.figures == {"heap": 8 * GIB, "peak": 5 * GIB, "gc_share": 0.3}


def test_a_spill_and_the_heap_beside_it_are_those_of_one_executor() -> None:
    rows = [{"executor": number, "disk_spilled": spilled} for number, spilled in enumerate((GIB, 5 * GIB))]
    application = application_of(Executor("1", peak=FREE), Executor("2", peak=SAMPLED), tasks=rows)
    (verdict,) = application_memory(application).verdicts
    assert (verdict.code, verdict.figures["spilled"]) == ("spill", 5 * GIB)
    application.executors["2"].peak = {}  # the first one's heap says nothing of the second one's spill
    (verdict,) = application_memory(application).verdicts
    assert (verdict.code, verdict.figures["spilled"]) == ("spill", 5 * GIB)


def test_nothing_is_said_where_sizes_fit() -> None:
    fits = {**SAMPLED, "ProcessTreeJVMRSSMemory": 8 * GIB}
    assert memory_of(peak=fits, gc_time=20, reason="Executor decommissioned").verdicts == []


def test_figures_of_a_verdict() -> None:
    (verdict,) = memory_of(peak=FREE).verdicts
    assert verdict.figures == {"heap": 8 * GIB, "peak": 3 * GIB, "suggested": 4 * GIB}
    assert verdict_text(verdict) == "at most 3 GiB of the heap of 8 GiB was used: 4 GiB would do"


def test_an_overhead_that_is_used_by_what_spark_does_not_count_is_not_too_large() -> None:
    """Stacks of threads and the allocator's own memory are in no metric but the process's."""
    settings = {**ON_YARN, "spark.executor.memoryOverhead": "4g"}
    peak = {**SAMPLED, "JVMOffHeapMemory": 200 * MIB}
    assert memory_of(settings, peak, resident={"1": 11 * GIB}).verdicts == []


def test_the_agent_measures_the_jvm_alone() -> None:
    assert memory_of(peak=PYTHON, resident={"1": 9 * GIB}).executors[0].resident == 10 * GIB
    assert memory_of(peak=PYTHON, resident={"1": GIB}).executors[0].resident == 9 * GIB, "late in the job"
    assert memory_of(peak=PYTHON).executors[0].resident == 9 * GIB
    assert memory_of(peak=PYTHON).executors[1].resident == 0


def test_the_driver_is_shown_where_it_was_sampled_and_not_judged() -> None:
    driver = Executor("driver", peak={"JVMHeapMemory": 700 * MIB})
    application = application_of(driver, Executor("1", peak=SAMPLED))
    memory = application_memory(application)
    assert [one.id for one in memory.executors] == ["driver", "1"] and memory.verdicts == []
    application.executors["driver"].peak = {}
    assert [one.id for one in application_memory(application).executors] == ["1"]
