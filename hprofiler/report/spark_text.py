"""What a Spark application did, as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hprofiler.analysis.spark_findings import SparkFinding, sentence
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, duration, size
from hprofiler.report.spark_words import note_text, verdict_text
from hprofiler.spark.application import Application
from hprofiler.spark.event_log import reason_of
from hprofiler.spark.figures import Figures, StageFigures
from hprofiler.spark.memory import Memory
from hprofiler.spark.sql import SqlExecution
from hprofiler.spark.windows import stage_name

STAGES_SHOWN = 10
_GAPS_SHOWN = 3
_GAP_WORTH = 0.02  # of the elapsed time
_REASONS_SHOWN = 5
_EXECUTORS_SHOWN = 10
_QUERIES_SHOWN = 10
_LONGEST_NAME = 60
_LONGEST_STAGE = 72
_LONGEST_REASON = 100


class Part(NamedTuple):
    """A part of the answer: its title, and lines below it. Without a title there is nothing to say."""

    title: str = ""
    lines: Sequence[str] = ()

    @property
    def heading(self) -> str:
        return self.title[:1].upper() + self.title[1:]

    @property
    def text(self) -> str:
        return "\n".join([f"{self.title}:", *self.lines]) if self.lines else self.title


def headline(application: Application, found: Figures, findings: Sequence[SparkFinding]) -> list[str]:
    """What ran, for how long, and what stands out: the findings, else the stage with most task time."""
    ran = [one for one in found.stages if one.stage.status in ("COMPLETE", "FAILED", "ACTIVE")]
    name = application.id + (f" attempt {application.attempt}" if application.attempt else "")
    version = f"Spark {application.version}" if application.version else "unknown version of Spark"
    workers = application.workers
    cores, at_once = sum(max(0, one.cores) for one in workers), application.most_cores
    tasks = sum(work.tasks for work in found.work.values())
    lasted = max(0, application.until - application.start) if application.start else found.elapsed
    first = (
        f"{application.name or 'application'} ({', '.join(part for part in (name, version) if part)}): "
        f"{duration(lasted / 1e3)}, {counted(len(application.jobs), 'jobs')}, {counted(len(ran), 'stages')}, "
        f"{counted(tasks, 'tasks')} on {counted(len(workers), 'executors')}"
    )
    if at_once:
        shown = counted(at_once, "cores")
        first += f" with {shown}" if at_once == cores else f" with at most {shown} at once"
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


def application_part(application: Application, found: Figures) -> Part:
    """Sums over all succeeded tasks; what failed and was killed; times without a stage."""
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
            f"shuffle fetch wait {_share(sums['shuffleFetchWaitTime'], run)}, "
            f"shuffle write {_share(sums['shuffleWriteTime'] / 1e6, run)}",
        ),
        (
            "besides",
            f"scheduler delay {duration(sums['schedulerDelay'] / 1e3)}, deserialize "
            f"{duration(sums['executorDeserializeTime'] / 1e3)}, serialize "
            f"{duration(sums['resultSerializationTime'] / 1e3)}, getting results "
            f"{duration(sums['gettingResultTime'] / 1e3)}",
        ),
        # Garbage is collected while tasks are deserialized, too.
        ("GC", f"{_share(sums['jvmGCTime'], sums['taskTime'])} of the tasks' whole time"),
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
    if found.idle:
        rows.append(
            ("no stage", f"{duration(found.idle / 1e3)} ({_share(found.idle, found.elapsed)} of elapsed)")
        )
    lines = table_lines(rows, indent=2)
    worth = [gap for gap in found.gaps if gap.end - gap.start > _GAP_WORTH * found.elapsed]
    for gap in worth[:_GAPS_SHOWN]:
        around = [stage_name(*one) for one in (gap.before, gap.after) if one]
        lines.append(f"    {duration((gap.end - gap.start) / 1e3)} between {' and '.join(around)}")
    return Part("the application", lines)


_SHOWN_HEADINGS = (
    "share",
    "took",
    "tasks",
    "failed",
    "killed",
    "CPU/run",
    "GC",
    "fetch wait",
    "skew",
    "of data",
    "disk spill",
    "stage",
)


def stage_part(found: Figures) -> Part:
    """The stages that took most task time."""
    rows: list[Sequence[str]] = [_SHOWN_HEADINGS]
    for _, cells in stage_rows(found, STAGES_SHOWN):
        *others, stage = (cells[heading] for heading in _SHOWN_HEADINGS)
        rows.append([*others, stage[:_LONGEST_STAGE]])
    if len(rows) == 1:
        return Part()
    title = "stages by the time of their tasks (skew: largest task ÷ median task, by time and by bytes read)"
    lines = table_lines(rows, right=range(len(_SHOWN_HEADINGS) - 1), indent=2)
    return Part(title, [*lines, *and_more(len(found.by_task_time) - STAGES_SHOWN, "stages")])


def stage_rows(found: Figures, most: int) -> Iterator[tuple[StageFigures, dict[str, str]]]:
    """The stages that took most task time, with their cells by heading."""
    whole = sum(one.task_time for one in found.by_task_time)
    return ((one, _stage_cells(one, whole)) for one in found.by_task_time[:most])


def _stage_cells(one: StageFigures, whole: int) -> dict[str, str]:
    """By heading; `whole` is the task time of all stages."""
    good = one.work["succeeded"]
    sums, run = good.sums, good.sums["executorRunTime"]

    def share(part: float, of: float) -> str:
        return _share(part, of) if part and of else ""

    def data(value: int) -> str:
        return size(value) if value else ""

    def count(value: int) -> str:
        return f"{value:,}" if value else ""

    cpu = sums["executorCpuTime"] / 1e6
    return {
        "stage": printable(f"{_name(one)} {one.stage.name}"),
        "task time": duration(one.task_time / 1e3),
        "share": _share(one.task_time, whole),
        "took": duration(one.duration / 1e3) if one.duration else "",
        "tasks": f"{good.tasks:,}",
        "failed": count(one.work["failed"].tasks + one.stage.resubmitted),
        "killed": count(one.work["killed"].tasks),
        # Of tasks so short that their run time was rounded down to little or nothing, CPU may be more.
        "CPU/run": _share(min(cpu, run), run) if cpu else "",
        "GC": share(sums["jvmGCTime"], sums["taskTime"]),
        "fetch wait": share(sums["shuffleFetchWaitTime"], run),
        "median task": duration(one.median / 1e3),
        "longest": duration(one.longest / 1e3),
        "skew": f"{one.skew:.1f}" if one.skew else "",
        "of data": f"{one.data_skew:.1f}" if one.data_skew else "",
        "read": data(sums["bytesRead"]),
        "written": data(sums["bytesWritten"]),
        "shuffle read": data(sums["shuffleRemoteBytesRead"] + sums["shuffleLocalBytesRead"]),
        "shuffle written": data(sums["shuffleBytesWritten"]),
        "disk spill": data(sums["diskBytesSpilled"] or sums["memoryBytesSpilled"]),
        "peak memory": data(good.peak_memory),
    }


def failure_part(found: Figures) -> Part:
    """Stages that failed, and why tasks did."""
    lines = []
    failed = [one.stage for one in found.stages if one.stage.failure]
    for stage in failed[:_REASONS_SHOWN]:
        reason = printable(reason_of(stage.failure)[:_LONGEST_REASON])
        lines.append(f"  stage {stage.id}.{stage.attempt} failed: {reason}")
    for word, attribute in (("failed", "failures"), ("killed", "kills")):
        reasons: dict[str, int] = {}
        for one in found.stages:
            for reason, count in getattr(one.stage, attribute).items():
                reasons[reason] = reasons.get(reason, 0) + count
        for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])[:_REASONS_SHOWN]:
            lines.append(f"  {counted(count, 'tasks')} {word}: {printable(reason[:_LONGEST_REASON])}")
    resubmitted = sum(one.stage.resubmitted for one in found.stages)
    if resubmitted:
        lines.append(f"  {counted(resubmitted, 'tasks')} ran again, because their output was lost")
    return Part("failures", lines) if lines else Part()


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


def executor_part(application: Application) -> Part:
    """The executors with most task time."""
    busy = sorted(application.workers, key=lambda one: -one.total_duration)
    if not busy:
        return Part()
    headings = ("task time", "tasks", "failed", "GC", "cores", "heap peak", "executor")
    rows: list[Sequence[str]] = [headings]
    for one in busy[:_EXECUTORS_SHOWN]:
        heap = one.peak.get("JVMHeapMemory", 0)
        gone = f", removed: {one.reason[:_LONGEST_REASON]}" if one.reason else ""
        rows.append(
            [
                duration(one.total_duration / 1e3),
                f"{one.completed_tasks:,}",
                f"{one.failed_tasks:,}" if one.failed_tasks else "",
                _share(one.total_gc_time, one.total_duration),
                str(one.cores),
                size(heap) if heap else "",
                printable(f"{one.id} on {one.host}{gone}"),
            ]
        )
    lines = table_lines(rows, right=range(len(headings) - 1), indent=2)
    return Part("executors", [*lines, *and_more(len(busy) - _EXECUTORS_SHOWN, "executors")])


def sql_part(application: Application, found: Figures) -> Part:
    """The SQL queries that took longest, and the stage of each that took most task time."""
    queries = sorted(application.sql.values(), key=lambda one: _lasted(one, application), reverse=True)
    if not queries:
        return Part()
    attempts: dict[int, list[StageFigures]] = {}
    for stage in found.stages:
        attempts.setdefault(stage.stage.id, []).append(stage)
    headings = ("took", "status", "jobs", "task time", "most of it", "query")
    rows: list[Sequence[str]] = [headings]
    for one in queries[:_QUERIES_SHOWN]:
        own = [stage for id_ in one.stages for stage in attempts.get(id_, ()) if stage.task_time]
        most = max(own, key=lambda stage: stage.task_time, default=None)
        rows.append(
            [
                duration(_lasted(one, application) / 1e3),
                one.status.lower(),
                f"{len(one.jobs):,}",
                duration(sum(stage.task_time for stage in own) / 1e3) if own else "",
                _name(most) if most else "",
                printable(f"{one.id} {one.description[:_LONGEST_NAME]}"),
            ]
        )
    lines = table_lines(rows, right=(0, 2, 3), indent=2)
    return Part("SQL queries by duration", [*lines, *and_more(len(queries) - _QUERIES_SHOWN, "queries")])


def _lasted(query: SqlExecution, application: Application) -> int:
    return max(0, (query.end or application.until) - query.start)


def memory_part(memory: Memory) -> Part:
    """Whether the sizes of executors fit; then those whose heap was fullest."""
    lines = [f"  {printable(verdict_text(verdict))}" for verdict in memory.verdicts]
    sampled = [one for one in memory.executors if one.peak or one.resident]
    sampled.sort(key=lambda one: one.peak.get("JVMHeapMemory", 0) / (one.limits.heap or 1), reverse=True)
    if sampled:
        headings = ("heap", "of", "pool", "of", "off heap", "resident", "of", "disk spill", "executor")
        rows: list[Sequence[str]] = [headings]
        for one in sampled[:_EXECUTORS_SHOWN]:
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
            rows.append([*(size(figure) if figure else "" for figure in figures), printable(one.id)])
        lines += table_lines(rows, right=range(len(headings) - 1), indent=2)
        lines += and_more(len(sampled) - _EXECUTORS_SHOWN, "executors")
    return Part("peak memory of executors", lines) if lines else Part()


def note_part(application: Application) -> Part:
    """What is missing or damaged."""
    lines = [f"  {printable(note_text(note))}" for note in application.notes]
    return Part("notes", lines) if lines else Part()


def _name(one: StageFigures) -> str:
    return stage_name(*one.stage.key)


def _cpu_of(cpu: float, run: float) -> str:
    if not cpu:
        return "CPU unknown"  # Spark 1 did not count it
    if cpu > run:
        return f"CPU {duration(cpu / 1e3)} (Spark rounds run time down to milliseconds)"
    return f"of which CPU {duration(cpu / 1e3)} ({_share(cpu, run)})"


def _share(part: float, whole: float) -> str:
    return plain(percent(part, whole)) if whole else "0%"
