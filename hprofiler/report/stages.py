"""Stages of a Spark application: lanes of the page, lines for the terminal, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hprofiler.analysis.blocked_stacks import BLOCKED_ON, most_first
from hprofiler.analysis.stages import UNSAMPLED, StageShare, StageShares
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable, some
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import duration
from hprofiler.report.page import Lane
from hprofiler.spark.facts import SparkFacts
from hprofiler.spark.windows import stage_name

_STAGES_SHOWN = 10
_ROWS = 4
_TOO_MUCH = 1.15
_PYTHON = "python"
_WORKERS_SHOWN = 4
_OTHER_APPLICATION = (
    "That is more CPU time than Spark counts for these tasks: samples of another application may be among "
    "them."
)
_MOST_SPANS = 5000
_TEXTS = {**BLOCKED_ON, UNSAMPLED: "local disk reads and time without samples"}
_TWO_WAYS = "  They measure the same waits in two ways: do not add them."

Span = tuple[float, float, str]


def spark_lanes(spark: SparkFacts, start: int, seconds: float) -> list[Lane]:
    """Jobs and stages in the seconds since `start` (microseconds since 1970).

    What overlaps is in several lanes.
    """
    zero = start / 1e6 + (spark.clock.offset if spark.clock else 0.0)

    def span(from_: int, to: int, label: str) -> Span:
        begin, end = from_ / 1e3 - zero, (to or spark.until) / 1e3 - zero
        return max(0.0, round(begin, 3)), min(seconds, round(end, 3)), label

    jobs = (span(one.from_, one.to, f"job {one.id}: {one.description}") for one in spark.jobs)
    stages = (
        span(one.from_, one.to, f"{stage_name(one.id, one.attempt)}: {one.name}") for one in spark.stages
    )
    return [*_lanes("Spark jobs", "job", jobs), *_lanes("Spark stages", "stage", stages)]


def _lanes(name: str, kind: str, spans: Iterable[Span]) -> Iterator[Lane]:
    """Each span goes to the first row in which there is room for it."""
    rows: list[list[Span]] = []
    for span in sorted(spans)[:_MOST_SPANS]:
        if span[1] <= span[0]:
            continue
        row = next((row for row in rows if row[-1][1] <= span[0]), None)
        if row is not None:
            row.append(span)
        elif len(rows) < _ROWS:
            rows.append([span])
    return (Lane(name, kind, row) for row in rows)


def stages_text(shares: StageShares) -> str:
    """The stages with most samples as lines of text, and how sure that is."""
    certain, likely = (plain(percent(part, 1)) for part in (shares.certain, shares.likely))
    others = f"{shares.several:,} of several stages, {shares.none:,} of no task"
    lines = [f"by Spark stage ({certain} of task samples certain, {likely} likely; {others}):"]
    total = shares.none + shares.several + sum(one.samples for one in shares.stages)
    has_cpu = any(one.cpu is not None for one in shares.stages)
    waits = [(_waits(one), _spark_waits(one)) for one in shares.stages]
    has_waits = any(wait for wait, _ in waits)
    has_python = any(one.python for one in shares.stages)
    more_columns = ("CPU", *(("Python",) if has_python else ()), "of Spark's") if has_cpu else ()
    more_columns = more_columns or (("blocked on", "Spark counts") if has_waits else ())
    rows: list[tuple[str, ...]] = [("samples", *more_columns, "stage")]
    for one, wait in list(zip(shares.stages, waits, strict=True))[:_STAGES_SHOWN]:
        python = [plain(percent(one.python, one.cpu or 1))] if has_python else []
        cpu = [duration(one.cpu or 0.0), *python, _ratio(one.jvm_cpu, one.spark_cpu)] if has_cpu else []
        share = plain(percent(one.samples, total))
        stage = printable(f"{one.name} {one.label}".rstrip())
        rows.append((share, *cpu, *(wait if has_waits else ()), stage))
    lines += table_lines(rows, right=range(1 + len(more_columns) if has_cpu else 1), indent=2)
    lines += and_more(len(shares.stages) - _STAGES_SHOWN, "stages")
    sampled, counted_by_spark = _cpu_in_all(shares)
    if counted_by_spark and has_cpu:
        part = plain(percent(sampled / counted_by_spark, 1))
        lines.append(f"  sampled in all: {part} of the {duration(counted_by_spark)} of CPU that Spark counts")
    if sampled > _TOO_MUCH * max(1.0, counted_by_spark):
        lines.append(f"  {_OTHER_APPLICATION}")
    if shares.workers and any(_PYTHON in one.blocked for one in shares.stages):
        workers = some(sorted(set(shares.workers)), _WORKERS_SHOWN)
        lines.append(f"  What Python does meanwhile is in the flame graphs of {workers}.")
    lines += [f"  {line}" for line in gain_lines(shares)]
    return "\n".join([*lines, *([_TWO_WAYS] if has_waits else [])])


def _cpu_in_all(shares: StageShares) -> tuple[float, float]:
    """The CPU time of JVMs in stages whose CPU time Spark counts, and that count; in seconds."""
    known = [one for one in shares.stages if one.spark_cpu]
    return sum(one.jvm_cpu or 0.0 for one in known), sum(one.spark_cpu or 0.0 for one in known)


def gain_lines(shares: StageShares) -> list[str]:
    """By how much the job would be shorter without the waits that stacks show; none where unknown."""
    gains = sorted(shares.gains.items(), key=lambda pair: (-pair[1].time, pair[0]))
    bounds = [
        f"{_TEXTS[rule]} {duration(round(gain.time) / 1e3)} ({plain(percent(gain.share, 1))})"
        for rule, gain in gains
    ]
    if not bounds:
        return []
    if shares.is_recorded:
        return [f"by stacks, the job would be at most so much shorter without: {', '.join(bounds)}"]
    return [
        f"by stacks, in the recorded part, the job would be so much shorter without: {', '.join(bounds)}; "
        "that is no bound for the whole job"
    ]


def _waits(one: StageShare) -> str:
    """What a stage's samples are blocked on: "shuffle fetch 41.2%, local disk read 3.0%"."""
    parts = [f"{text} {plain(percent(count, one.samples))}" for text, count in most_first(one.blocked)]
    if one.unsampled:
        parts.append(f"no sample (waits for disks or a CPU) {plain(percent(one.unsampled, 1))} of task time")
    return ", ".join(parts)


def _spark_waits(one: StageShare) -> str:
    """The same by Spark's own count, as parts of the run time of all tasks."""
    waits = one.spark_waits
    run = waits.run
    known = (("shuffle fetch", waits.fetch), ("shuffle write", waits.shuffle_write), ("GC", waits.gc))
    return ", ".join(f"{text} {plain(percent(time, run))}" for text, time in known if time and run)


def _ratio(cpu: float | None, spark_cpu: float | None) -> str:
    """Sampled CPU time as a part of Spark's own count, "" if that is not known."""
    return plain(percent(cpu / spark_cpu, 1)) if cpu is not None and spark_cpu else ""


def stages_record(shares: StageShares) -> dict[str, object]:
    """The same for JSON; all stages."""
    return {
        "stages": [
            {
                **members(one, "name", "label", "certain", "likely"),
                "cpu_seconds": one.cpu,
                "python_cpu_seconds": one.python,
                "spark_cpu_seconds": one.spark_cpu,
                "blocked": dict(one.blocked),
                "unsampled": one.unsampled,
                "spark_waits": members(one.spark_waits, "run", "fetch", "shuffle_write", "gc"),
            }
            for one in shares.stages
        ],
        "upper_bounds": {rule: {"time": one.time, "share": one.share} for rule, one in shares.gains.items()},
        "recorded_whole": shares.is_recorded,
        "several": shares.several,
        "none": shares.none,
    }
