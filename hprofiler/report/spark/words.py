"""Sentences about a Spark application, by the codes of `hprofiler.spark`."""

from __future__ import annotations

from hprofiler.model.measures import counted, size
from hprofiler.spark.application import Note
from hprofiler.spark.memory import Verdict

NOTES = {
    "cut": "the last line is cut ({count:,}): the application still ran, or its driver was killed",
    "cut-inside": "{count:,} files end in the middle, and others follow: some events are lost ({detail})",
    "without-times": "{count:,} ended tasks have no launch or end time: times and bounds are without them",
    "clock-back": "{count:,} tasks, stages or jobs end before they start, or wait longer than they ran, as "
    "after a clock was set: such times are cut, and others may be wrong",
    "clock-forward": "the driver’s clock was set forward by {count:,} s while tasks ran: times before that "
    "are shown as if it had been right",
    "repaired": "{count:,} lines have bytes that are not UTF-8, or too large numbers: these were replaced",
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
    "batches-not-kept": "{count:,} batches of streaming queries beyond the first {detail} are left out",
    "compacted": "Spark compacted the log: {count:,} ended jobs are removed, with their stages and queries",
    "other-attempts": "of the application’s attempts only one was read: {detail}",
    "files-missing": "{count:,} files of the rolling log are missing ({detail})",
    "by-rest": "read by the REST interface, which keeps only the newest stages and does not say which stages "
    "wait for which: name the event log for more",
    "too-slow": "Spark answered too slowly: {count:,} stages lack tasks, and SQL executions are left out",
    "driver-gone": "the driver has ended, and no history server knows its application: what came after the "
    "driver’s last answer, {count:,} s before the end, is missing",
    "recorded-not-kept": "the recording had more than {detail} tasks; {count:,} of them are left out",
    "not-downloaded": "the history server did not give the event log ({detail})",
}
"""Text of every note, by its code."""
VERDICTS = {
    "memory-killed": "{executors} ended for lack of memory: give more spark.executor.memoryOverhead, or run "
    "fewer tasks at a time",
    "heap-exhausted": "{executors} ended because their heap was full: give more spark.executor.memory, or "
    "run fewer tasks at a time",
    "killed-by-signal": "{executors} ended by SIGKILL (exit code 137), and the log does not say who sent it: "
    "look at the host’s log, for its memory or that of the container may have been full",
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
    "data": "more data",
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
PARTS = {
    "before-first-stage": "no stage, before the first stage",
    "between-stages": "no stage, between stages",
    "after-last-stage": "no stage, after the last",
    "before-first-executor": "no stage, before the first executor came",
    "no-executor": "no executor, a stage waits",
    "no-task": "few tasks, a stage is open, none runs",
    "one-task": "few tasks, stages of 1 task",
    "few-tasks": "few tasks, stages of few tasks",
    "tail": "few tasks, the last of a stage",
    "retries": "few tasks, failed or tried again",
    "slow-launch": "few tasks, more wait to be launched",
    "cpu": "many tasks: CPU",
    "fetch": "many tasks: shuffle fetch",
    "gc": "many tasks: garbage collection",
    "shuffle-write": "many tasks: shuffle write",
    "python": "many tasks: Python workers",
    "deserialize": "many tasks: deserialization",
    "results": "many tasks: making and fetching results",
    "scheduler": "many tasks: scheduler delay",
    "repeated": "many tasks: failed, killed or run again",
    "other": "many tasks: not timed by Spark",
}
"""Name of each part of the account."""
REMEDIES = {
    "no-stage/before-first-stage": "see what the driver does before its first job: listing files, inferring "
    "schemas, loading, planning; record it with hprofiler run -j spark-driver",
    "no-stage/between-stages": "see what the driver does there: collected data, planning, broadcasts, "
    "listing and committing files, code of its own; record it with hprofiler run -j spark-driver. Jobs "
    "that do not depend on each other can run at the same time, from several threads. Between its batches "
    "a streaming query waits for data, or for its trigger",
    "no-stage/after-last-stage": "see what the driver does at the end: commits and renames of many files, "
    "results, cleaning up; a shell or notebook should end its session once the work is done",
    "no-stage/before-first-executor": "see why executors come late: the queue and quota of the cluster, "
    "images and packages that each container fetches, spark.scheduler.maxRegisteredResourcesWaitingTime",
    "no-executor": "ask for executors earlier or keep some (spark.dynamicAllocation.minExecutors, "
    "executorIdleTimeout), or look at the queue and quota of the cluster",
    "narrow/no-task": "see what the driver does before it launches tasks and after they ended: large "
    "closures and broadcasts, waits for locality (spark.locality.wait), results",
    "narrow/one-task": "give the stage more partitions: input that can be split, no coalesce(1), no "
    "global sort or window without PARTITION BY; or use fewer slots",
    "narrow/few-tasks": "give the stage more partitions (spark.sql.shuffle.partitions, repartition, smaller "
    "input splits); or use fewer slots",
    "narrow/tail": "spread the data of the slow tasks: more partitions, salted keys, in a join a broadcast "
    "or spark.sql.adaptive.skewJoin.enabled; if only a host is slow, spark.speculation",
    "narrow/retries": "see below why tasks failed, and mend that: all others waited for their next tries. "
    "More partitions or salted keys do not help",
    "narrow/tail/even": "its tasks take about equally long, and the last of them run alone: use as many "
    "tasks as there are slots, or many more and smaller ones",
    "narrow/input": "split the input of the slow task: see below",
    "narrow/slow-launch": "see why tasks wait though slots are free: spark.locality.wait, a busy driver, "
    "resources of a task (GPUs) that bound the slots",
    "stage-wait/fetch": "shuffle less (filter and aggregate earlier, broadcast small tables), or use larger "
    "blocks: fewer partitions on both sides",
    "stage-wait/gc": "give more memory to a task: fewer cores or a larger heap for each executor",
    "stage-wait/shuffle-write": "write less in shuffles, and to faster local disks (spark.local.dir)",
    "stage-wait/python": "replace Python functions by those of SQL, or use pandas (Arrow) functions",
    "stage-wait/deserialize": "make tasks smaller and fewer: large closures and tables should be broadcast",
    "stage-wait/scheduler": "launch fewer and longer tasks; look at the load of the driver",
    "stage-wait/results": "collect less at the driver",
    "stage-wait/other/python": "record the executors: their Python workers come along. Functions of SQL and "
    "pandas (Arrow) functions are faster than other Python",
    "stage-wait/other": "record the executors with -e wall to see what tasks wait for",
    "failed-tasks": "see the failures below: work that fails is done again",
    "lost/memory": "give more spark.executor.memoryOverhead, or run fewer tasks at a time in an executor",
    "lost/heap": "give more spark.executor.memory, or each task less data (more partitions)",
    "lost/preemption": "use a queue that is not preempted, or smaller and shorter tasks",
    "lost/decommission": "keep what is done: spark.decommission.enabled and "
    "spark.storage.decommission.shuffleBlocks.enabled",
    "lost/jvm": "give the JVM more of what it lacked, by its message: -XX:MaxDirectMemorySize, metaspace, "
    "threads",
    "lost/evicted": "see what their nodes lacked, by the reason: memory, or local disk for shuffle files and "
    "spills",
    "lost/crash": "look for hs_err_pid files, and at native code (libraries, compression, GPU)",
    "lost/exit": "look into the executors’ own logs: they ended by themselves",
    "lost/sigkill": "see who sent the signal: the log of the host’s kernel (dmesg: out of memory), and of "
    "the NodeManager or kubelet",
    "lost/sigterm": "see who stopped them: the log of the NodeManager or kubelet, and of the cluster’s "
    "autoscaler",
    "lost/heartbeat": "see why they did not answer: long garbage collection, a host that swaps or hangs, the "
    "network; spark.executor.heartbeatInterval and spark.network.timeout say how long Spark waits",
    "lost/host-lost": "see why the hosts were lost: spot instances, the cluster’s autoscaler, their own logs",
    "killed-tasks": "see why they were killed: cancelled jobs and stages, or a stage that failed",
    "speculative-tasks": "copies help only where a host is slow: raise spark.speculation.quantile and "
    "multiplier, or turn spark.speculation off",
    "repeated-tasks": "keep shuffle files when executors end (external shuffle service, or "
    "spark.decommission.enabled with spark.storage.decommission.shuffleBlocks.enabled), and see why "
    "they ended",
    "executors-lost": "see why they ended, in the table of executors",
    "executors-late": "ask for executors earlier (spark.dynamicAllocation.initialExecutors), or keep them "
    "(minExecutors, executorIdleTimeout); or see why they come late: the queue and quota of the cluster, "
    "images and packages that each container fetches",
    "spill": "give each task less data (more partitions) or more memory (fewer cores in an executor, a "
    "larger heap)",
    "idle-slots": "give stages more partitions, run jobs that do not depend on each other at the same time, "
    "or use fewer slots",
    "slow-host": "look at that host (hprofiler run on it), or take it out of the cluster; spark.speculation "
    "starts copies of its tasks elsewhere",
    "data-skew": "salt the keys that most rows have; in a join, broadcast the other side, or "
    "spark.sql.adaptive.skewJoin.enabled",
    "data-skew/input": "one part of the input is much larger: split it (a file that is not compressed by "
    "gzip, smaller row groups, spark.sql.files.maxPartitionBytes), or repartition after it was read",
    "one-partition/input": "one part holds all of the input: split it (a file that is not compressed by "
    "gzip, smaller row groups), or repartition after it was read",
    "small-files-read": "write fewer, larger files: below 4 MiB Spark counts more for opening one than for "
    "reading it",
    "small-files-written": "repartition by the output’s partition columns before the write, or into fewer "
    "partitions",
    "tiny-partitions": "use fewer partitions (spark.sql.shuffle.partitions), or let Spark join small ones "
    "(spark.sql.adaptive.enabled)",
    "join-multiplies": "look for keys that both sides have many times; aggregate or deduplicate before",
    "compares-all-rows": "give the join a condition of equality, or make one side smaller before",
    "filter-keeps-little": "partition or sort the table by what is filtered, so that less is read",
    "broadcast-fits": "broadcast the small side: a hint, or spark.sql.autoBroadcastJoinThreshold",
    "operator-spills": "use more partitions, or give more memory to a task",
    "batches-late": "make batches shorter (see their phases below), or the trigger interval longer",
    "batches-back-to-back": "nothing is left for more input: add slots or partitions, or limit the rows of a "
    "batch",
    "input-exceeds-processing": "add slots and partitions, or make the work of a row cheaper",
    "barely-keeps-up": "a little more input, and it falls behind: see the phases of its batches below",
    "batches-slow-down": "see what grows with time: state, files of the source, the checkpoint",
    "batches/source": "make the source answer faster: fewer files to list (a folder by time, file "
    "notifications), fewer partitions of a topic, or a broker that answers",
    "batches/planning": "make the plan smaller, or batches longer: planning takes the same for each",
    "batches/checkpoint": "put the checkpoint on a faster file system; or, to a sink in Kafka, the query’s "
    "option asyncProgressTrackingEnabled",
    "state-grows": "give it a watermark or a timeout, so that old state is dropped",
    "one-partition": "the rows have one key, or one partition holds them all: choose another key, or salt it",
}
"""What to do, by the code of a finding, or by that and its `part` or `what`."""
WHAT_IF = {
    "twice-slots": "twice the slots",
    "half-slots": "half the slots",
    "even-tasks": "no task slower than its stage’s median",
    "ideal": "ideal: all slots busy while stages are open",
    "critical-path": "slots for all tasks at once (critical path)",
}
"""What would be different."""
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
