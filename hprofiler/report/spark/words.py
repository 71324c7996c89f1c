"""Sentences about a Spark application, by the codes of `hprofiler.spark`."""

from __future__ import annotations

from hprofiler.model.measures import counted, size
from hprofiler.spark.application import Note
from hprofiler.spark.memory import Verdict

NOTES = {
    "cut": "the last line is cut ({count:,}): the application still ran, or its driver was killed",
    "cut-inside": "{count:,} files end in the middle, and others follow: some events are lost ({detail})",
    "without-times": "{count:,} ended tasks have no launch or end time: times and bounds are without them",
    "damaged": "{count:,} damaged lines were skipped ({detail})",
    "too-long": "{count:,} lines are longer than {detail} and were skipped",
    "too-many": "{count:,} lines hold more objects than there is memory for, and were skipped",
    "unreadable": "{count:,} files cannot be read to their end ({detail})",
    "no-end": "the log has no end of the application",
    "tasks-missing": "{count:,} ends of tasks are missing in ended stages: Spark dropped events ({detail})",
    "stages-missing": "{count:,} stages have no end, though the application has ended",
    "jobs-missing": "{count:,} jobs have no end, though the application has ended",
    "tasks-not-kept": "{count:,} tasks beyond the first {detail} are left out",
    "stages-not-kept": "{count:,} stages beyond the first {detail} are left out",
    "jobs-not-kept": "{count:,} jobs beyond the first {detail} are left out",
    "executors-not-kept": "{count:,} executors beyond the first {detail} are left out",
    "sql-not-kept": "{count:,} SQL executions beyond the first {detail} are left out",
    "plans-not-kept": "the plans of {count:,} SQL executions are left out: those before took {detail}",
    "sql-stages-not-kept": "{count:,} stages of SQL executions beyond the first {detail} are left out",
    "sql-metrics-not-kept": "{count:,} metrics of SQL executions are left out: {detail} values are kept",
    "files-missing": "{count:,} files of the rolling log are missing ({detail})",
    "by-rest": "read by the REST interface, which keeps only the newest stages and does not say which stages "
    "wait for which: name the event log for more",
    "too-slow": "Spark answered too slowly: {count:,} stages lack tasks, and SQL executions are left out",
    "recorded-not-kept": "the recording had more than {detail} tasks; {count:,} of them are left out",
    "not-downloaded": "the history server did not give the event log ({detail})",
}
"""Text of every note, by its code."""
VERDICTS = {
    "memory-killed": "{executors} ended for lack of memory: give more spark.executor.memoryOverhead, or run "
    "fewer tasks at a time",
    "heap-exhausted": "{executors} ended because their heap was full: give more spark.executor.memory, or "
    "run fewer tasks at a time",
    "memory-not-sampled": "Spark logged no peak memory of {executors}: set "
    "spark.eventLog.logStageExecutorMetrics=true and spark.executor.processTreeMetrics.enabled=true",
    "memory-too-short": "Spark took no sample of the memory of {executors}, as in runs shorter than its "
    "heartbeat (10 s): set spark.executor.metrics.pollingInterval",
    "heap-too-small": "an executor’s heap was full ({peak} of {heap}) and its tasks spent {gc_share} of "
    "their time in garbage collection: give more spark.executor.memory, or run fewer tasks at a time",
    "gc-heavy": "an executor’s tasks spent {gc_share} of their time in garbage collection, though its "
    "heap was not full ({peak} of {heap}): look at what allocates",
    "heap-too-large": "at most {peak} of the heap of {heap} was used: {suggested} would do",
    "overhead-too-small": "processes used {resident} of the container's {container}: give more "
    "spark.executor.memoryOverhead (now {overhead})",
    "overhead-too-large": "{non_heap} was used outside of the heap, of an overhead of {overhead}",
    "off-heap-unused": "the {off_heap} of spark.memory.offHeap.size were never used",
    "spill": "an executor spilled {spilled} to disk; its pool for execution and storage is {pool}: "
    "use more partitions, or more memory for each task",
    "spill-beside-free-heap": "an executor spilled {spilled} to disk, though only {peak} of its heap of "
    "{heap} was used: the pool of {pool} is too small; raise spark.memory.fraction, or run fewer tasks at "
    "a time",
    "spill-beside-cache": "an executor spilled {spilled} to disk while cached data held {storage} of its "
    "pool of {pool}: cache less, or in serialized form",
}
"""Text of every verdict, by its code."""
CAUSES = {
    "gc": "garbage collection",
    "shuffle read": "shuffle read",
    "shuffle write": "shuffle write",
    "scheduler": "scheduler delay",
    "output": "more output",
    "spill": "spilled",
    "locality": "data far away",
    "cold": "cold JVM",
    "host": "slow host",
    "cpu": "little CPU",
}
"""Text of each cause of stragglers."""
RESOURCES = {
    "network": ("waits for shuffle blocks of other executors", "input and output over the network"),
    "disk": (
        "shuffle writes, and waits for shuffle blocks of other executors, which may wait for a disk there",
        "input, output, spills and shuffle blocks of the same host",
    ),
    "gc": ("all collectors’ time while a task ran", ""),
    "scheduler": ("launches and results, on the driver’s clock", "gaps between stages"),
    "python": (
        "all time of Python workers of SQL, in which they may wait for rows",
        "Python outside SQL or before Spark 4: record the executors with -e wall",
    ),
    "locks": ("", "needs stacks: record the executors with -e wall"),
}
"""What is counted of the waits for each resource, and what is not."""
NEVER_ADD_UP = (
    "These never add up: a pause of the collector may fall into a wait for the network, a remote read is "
    "network and disk at once, and without one wait another may take its place."
)


def note_text(note: Note) -> str:
    return NOTES.get(note.code, note.code).format(count=note.count, detail=note.detail).replace(" ()", "")


def verdict_text(verdict: Verdict) -> str:
    def shown(name: str, value: float) -> str:
        if name == "executors":
            return counted(value, "executors")
        return f"{value:.0%}" if name.endswith("_share") else size(value)

    figures = {name: shown(name, one) for name, one in verdict.figures.items()}
    return VERDICTS[verdict.code].format_map(figures)
