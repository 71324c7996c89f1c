"""What a Spark application did, in parts: lines for the terminal, tables for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hprofiler.analysis.spark.failures import Failure, Failures
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.words import LOSSES, reason_text, sentence, sentences
from hprofiler.analysis.words import percent, plain
from hprofiler.base.text import printable, some
from hprofiler.model.measures import counted, duration, size
from hprofiler.report.blocks import Block, Cell, Column, Facts, Lines, Part, Row, Table, cell
from hprofiler.report.spark.cells import executor_key, share
from hprofiler.report.spark.words import note_text, verdict_text
from hprofiler.spark.application import Application
from hprofiler.spark.causes import cause_of
from hprofiler.spark.figures import Figures, StageFigures
from hprofiler.spark.memory import Memory
from hprofiler.spark.streams import StreamQuery
from hprofiler.spark.windows import stage_name

_REASONS_SHOWN = 5
_EXECUTORS_SHOWN = 10


def headline(application: Application, found: Figures, findings: Sequence[SparkFinding]) -> list[str]:
    """What ran, for how long, and the first of what stands out, else the stage with most task time."""
    ran = [one for one in found.stages if one.stage.status in ("COMPLETE", "FAILED", "ACTIVE")]
    name = application.id + (f" attempt {application.attempt}" if application.attempt else "")
    version = f"Spark {application.version}" if application.version else "unknown version of Spark"
    workers = application.workers
    cores, at_once = sum(max(0, one.cores) for one in workers), application.most_cores
    tasks = sum(work.tasks for work in found.work.values())
    ended = application.until if application.until > application.start else application.last_event
    lasted = max(0, ended - application.start) if application.start else found.elapsed
    first = (
        f"{application.name or 'application'} ({', '.join(part for part in (name, version) if part)}): "
        f"{duration(lasted / 1e3)}, {counted(len(application.jobs), 'jobs')}, {counted(len(ran), 'stages')}, "
        f"{counted(tasks, 'tasks')} on {counted(len(workers), 'executors')}"
    )
    if at_once:
        shown = counted(at_once, "cores")
        first += f" with {shown}" if at_once == cores else f" with at most {shown} at once"
    if any(note.code == "no-end" for note in application.notes):
        first += "; its log has no end: it still runs, or its driver was killed"
    if findings:
        return [printable(first), sentence(findings)]
    lines = [printable(first)]
    if not ran:
        lines.append("No stage ran." if application.end else "No stage has started yet.")
    most = found.by_task_time[0] if found.by_task_time else None
    whole = sum(one.task_time for one in found.by_task_time)
    if most is not None and whole:
        share = plain(percent(most.task_time, whole))
        lines.append(
            f"{_name(most)} takes {share} of all task time ({duration(most.task_time / 1e3)} of "
            f"{duration(whole / 1e3)}): {printable(most.stage.name)}"
        )
    return lines


def page_headline(
    application: Application, found: Figures, findings: Sequence[SparkFinding]
) -> tuple[list[str], list[str]]:
    """What ran, and what stands out most; what else stands out."""
    ran, *others = headline(application, found, findings)
    most, *more = sentences(findings) or [*others, ""]
    return [line for line in (ran, most) if line], [line for line in more if line]


def application_part(application: Application, found: Figures) -> Part:
    """Sums over all succeeded tasks; what failed and was killed."""
    good = found.work["succeeded"]
    sums = good.sums
    run, cpu = sums["executorRunTime"], sums["executorCpuTime"] / 1e6
    rows = [
        ("elapsed", f"{duration(found.elapsed / 1e3)} from the first stage to the end of the last"),
        (
            "active tasks",
            f"{found.average_active_tasks:.2f} on average (tasks’ time from launch to end ÷ elapsed time)",
        ),
        ("run time", f"{duration(run / 1e3)}, {_cpu_of(cpu, run)}"),
        (
            "in it",
            f"shuffle fetch wait {share(sums['shuffleFetchWaitTime'], run)}, "
            f"shuffle write {share(sums['shuffleWriteTime'] / 1e6, run)}",
        ),
        (
            "besides",
            f"scheduler delay {duration(sums['schedulerDelay'] / 1e3)}, deserialize "
            f"{duration(sums['executorDeserializeTime'] / 1e3)}, serialize "
            f"{duration(sums['resultSerializationTime'] / 1e3)}, getting results "
            f"{duration(sums['gettingResultTime'] / 1e3)}",
        ),
        # Garbage is collected while tasks are deserialized, too.
        ("GC", f"{share(sums['jvmGCTime'], sums['taskTime'])} of the tasks' whole time"),
        (
            "data",
            f"read {size(sums['bytesRead'])}, written {size(sums['bytesWritten'])}, shuffle read "
            f"{size(sums['shuffleRemoteBytesRead'] + sums['shuffleLocalBytesRead'])} "
            f"({size(sums['shuffleRemoteBytesRead'])} remote), "
            f"shuffle written {size(sums['shuffleBytesWritten'])}",
        ),
        (
            "memory",
            f"peak execution memory of a task {size(good.peak_memory)}, spilled "
            f"{size(sums['memoryBytesSpilled'])} ({size(sums['diskBytesSpilled'])} on disk)",
        ),
    ]
    for status in ("failed", "killed"):
        work = found.work[status]
        if work.tasks:
            lost = duration(work.sums["taskTime"] / 1e3)
            rows.append((status, f"{counted(work.tasks, 'tasks')}, which took {lost}"))
    return Part("the application", [Facts(rows)])


def failure_part(failures: Failures, found: Figures, streams: Mapping[str, StreamQuery]) -> Part:
    """What failed and why, oldest first; then why tasks did."""
    shown = list(failures.causes[:_REASONS_SHOWN])
    shown += [failures.fatal] if failures.fatal and failures.fatal not in shown else []
    lines = [_failure_text(one, streams) for one in shown]
    more = failures.all_causes - len(lines)
    if more > 0:
        lines.append(f"{counted(more, 'more causes')}")
    if failures.cut_off:
        lines.append(reason_text(failures.cut_off.text))
    for count, what in (
        (failures.consequences, "ended only because SparkContext was shut down"),
        (failures.cancelled, "cancelled"),
        (failures.recovered, "failed, though its query completed"),
    ):
        lines += [f"{counted(count, 'jobs')} {what}"] if count else []
    if failures.exit_code:
        lines.append(f"the application ended with exit code {failures.exit_code}")
    stages = {one.stage.key: one.stage for one in found.stages}
    for key in failures.repeated[:_REASONS_SHOWN]:
        reason = reason_text(cause_of(stages[key].failure).text)
        lines.append(f"{stage_name(*key)} failed and was repeated: {reason}")
    for word, attribute in (("failed", "failures"), ("killed", "kills")):
        reasons: dict[str, int] = {}
        for one in found.stages:
            for reason, count in getattr(one.stage, attribute).items():
                reasons[reason] = reasons.get(reason, 0) + count
        for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])[:_REASONS_SHOWN]:
            stage_killed, cancelled, why = reason.partition("Stage cancelled: ")
            reason = stage_killed + cancelled + cause_of(why).text if cancelled else reason
            lines.append(f"{counted(count, 'tasks')} {word}: {reason_text(reason)}")
    resubmitted = sum(one.stage.resubmitted for one in found.stages)
    if resubmitted:
        lines.append(f"{counted(resubmitted, 'tasks')} ran again, because their output was lost")
    return Part("failures", [Lines(lines, list=True)]) if lines else Part()


def _failure_text(one: Failure, streams: Mapping[str, StreamQuery]) -> str:
    what = []
    if one.stage:
        what.append(stage_name(*one.stage))
    if one.query is not None:
        what.append(f"query {one.query}")
    if one.streams:
        what.append(
            f"streaming query {some(list(dict.fromkeys(streams[run].title for run in one.streams)), 3)}"
        )
    if len(one.jobs) > 1 or (one.jobs and not what):
        what.append(f"job {some([str(job) for job in one.jobs], 5)}")
    reason = reason_text(one.cause.text)
    within = f" (within {reason_text(one.cause.within)})" if one.cause.within not in reason else ""
    return f"{', '.join(what)} failed: {reason}{within}"


def locality_part(found: Figures) -> Part:
    """How near to their data tasks ran, if it was not always the same."""
    counts: dict[str, int] = {}
    for one in found.stages:
        for name, count in one.localities.items():
            counts[name] = counts.get(name, 0) + count
    if len(counts) < 2:
        return Part()
    whole = sum(counts.values())
    parts = (f"{name} {plain(percent(count, whole))}" for name, count in counts.items())
    return Part(f"locality of tasks: {', '.join(parts)}")


def executor_part(application: Application, losses: Mapping[str, str]) -> Part:
    """The executors with most task time."""
    busy = sorted(application.workers, key=lambda one: -one.total_duration)
    if not busy:
        return Part()
    rows = []
    for one in busy:
        heap = one.peak.get("JVMHeapMemory", 0)
        gone = f", removed {LOSSES[losses[one.id]]}: {reason_text(one.reason)}" if one.reason else ""
        cells: list[Cell] = [
            (duration(one.total_duration / 1e3), one.total_duration),
            (f"{one.completed_tasks:,}", one.completed_tasks),
            (f"{one.failed_tasks:,}", one.failed_tasks) if one.failed_tasks else "",
            cell(share(one.total_gc_time, one.total_duration), one.total_gc_time / (one.total_duration or 1)),
            (str(one.cores), one.cores),
            (size(heap), heap) if heap else "",
            printable(f"{one.id} on {one.host}{gone}"),
        ]
        rows.append(Row(cells, executor_key(one.id)))
    columns = (
        Column("task time"),
        Column("tasks"),
        Column("failed"),
        Column("GC", about="garbage collection as a part of task time"),
        Column("cores"),
        Column("heap peak", about="highest heap that Spark sampled"),
        Column("executor", number=False),
    )
    return Part("executors", [Table("executors", columns, rows, "executors", _EXECUTORS_SHOWN)])


def memory_part(memory: Memory) -> Part:
    """Whether the sizes of executors fit; then those whose heap was fullest."""
    verdicts = [printable(verdict_text(verdict)) for verdict in memory.verdicts]
    blocks: list[Block] = [Lines(verdicts, list=True)] if verdicts else []
    sampled = [one for one in memory.executors if one.peak or one.resident]
    sampled.sort(key=lambda one: one.peak.get("JVMHeapMemory", 0) / (one.limits.heap or 1), reverse=True)
    if sampled:
        rows = []
        for one in sampled:
            limits = one.limits
            figures = (
                one.peak.get("JVMHeapMemory", 0),
                limits.heap,
                one.peak.get("OnHeapUnifiedMemory", 0),
                limits.unified,
                one.peak.get("JVMOffHeapMemory", 0) + one.peak.get("OffHeapUnifiedMemory", 0),
                one.resident,
                limits.container,
                one.disk_spilled,
            )
            cells: list[Cell] = [(size(figure), figure) if figure else "" for figure in figures]
            rows.append(Row([*cells, printable(one.id)], executor_key(one.id)))
        columns = (
            Column("heap"),
            Column("of", name="heap’s limit"),
            Column("pool", about="for execution and storage together"),
            Column("of", name="pool’s limit"),
            Column("off heap"),
            Column("resident", about="memory of its processes"),
            Column("of", name="container"),
            Column("disk spill"),
            Column("executor", number=False),
        )
        blocks.append(Table("memory", columns, rows, "executors", _EXECUTORS_SHOWN))
    return Part("peak memory of executors", blocks) if blocks else Part()


def note_part(application: Application) -> Part:
    """What is missing or damaged."""
    lines = [printable(note_text(note)) for note in application.notes]
    return Part("notes", [Lines(lines, list=True)]) if lines else Part()


def _name(one: StageFigures) -> str:
    return stage_name(*one.stage.key)


def _cpu_of(cpu: float, run: float) -> str:
    if not cpu:
        return "CPU unknown"  # Spark 1 did not count it
    if cpu > run:
        return f"CPU {duration(cpu / 1e3)} (Spark rounds run time down to milliseconds)"
    return f"of which CPU {duration(cpu / 1e3)} ({share(cpu, run)})"
