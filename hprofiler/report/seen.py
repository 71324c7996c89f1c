"""What part of a job was recorded, in words, tables and lanes over time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil, floor

from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.seen import (
    CUT,
    HOST_FAILED,
    HOST_UNKNOWN,
    MAPREDUCE,
    NOT_RECORDED,
    NOTHING,
    PROCESS,
    PROCESSES,
    RUN,
    SHORT,
    SPARK,
    CpuSeen,
    Missed,
    Presence,
    Seen,
)
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable, short_host
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, duration
from hprofiler.report.blocks import Block, Column, Lines, Part, Row, Span, SpanLane, Table, Timeline, cell

_SHOWN = 8
_DIGITS = re.compile("[0-9]+")
_BUCKETS = 300
_ALMOST_ALL = 0.98
_ENDED = {RUN: "the recording ended", PROCESS: "it ended", CUT: "it was cut short"}
_STATES = {RUN: "", PROCESS: "ended", CUT: "cut"}
_MISSED = "missed"
_LEGEND = (
    ("", "recorded until the end of the recording"),
    ("ended", "until it ended"),
    ("cut", "cut short"),
    ("before", "lived, not recorded yet"),
    (_MISSED, "not recorded"),
)
_WHY = {
    SHORT: "it lived for less than 2 s",
    NOT_RECORDED: "it could not be recorded",
    NOTHING: "its host was visited, and nothing of it was recorded",
    HOST_FAILED: "its host, or container, failed",
    HOST_UNKNOWN: "its host was not visited while it ran",
}
_COUNTS = {
    MAPREDUCE: ("the job's tasks", "by MapReduce's counters", "Tasks"),
    SPARK: ("the application's tasks", "by Spark's count", "Executors"),
    PROCESSES: ("the recorded processes", "by the kernel, until the recording of each ended", ""),
}


def seen_text(seen: Seen) -> str:
    """Processes that joined, the first of them in a table, the part of the CPU time, and processes that were
    missed; "" where none came or went."""
    if not seen.changes:
        return ""
    lines = [*_joined(seen.presences), *map(plain, sentences(seen))]
    table = _missed_table(seen)
    return "\n".join([*lines, *(table.lines() if table.rows else ())])


def _joined(presences: Sequence[Presence]) -> Iterator[str]:
    joined = [one for one in presences if one.joined]
    if not joined:
        return
    several = len({one.host for one in joined}) > 1
    rows = [("joined after", "recorded for", "until", "process")]
    rows += [
        (
            duration(one.joined),
            duration(one.ended - one.joined),
            _ENDED[one.ended_by],
            printable(f"{one.host}: {_name(one)}" if several else _name(one)),
        )
        for one in joined[:_SHOWN]
    ]
    yield f"{len(joined):,} of {counted(len(presences), 'processes')} joined during the recording:"
    yield from table_lines(rows, right=(0, 1), indent=2)
    yield from and_more(len(joined) - _SHOWN, "processes")


def _name(one: Presence) -> str:
    return f"{one.process.label} (pid {one.process.pid})"


def sentences(seen: Seen) -> list[str]:
    """The part of the CPU time, and how many processes were missed."""
    found = list(_of_cpu(seen.cpu)) if seen.cpu else []
    if seen.problem:
        found.append(printable(f"What the job counts is not known: {seen.problem}."))
    missed = len(seen.missed) + seen.missed_more
    if missed:
        were = "was" if missed == 1 else "were"
        found.append(f"{counted(missed, 'processes')} of the job {were} not recorded.")
    if seen.others:
        others = counted(seen.others, "processes")
        found.append(f"{others} of the job ended before the recording began, or started at its end.")
    return found


def _of_cpu(cpu: CpuSeen) -> Iterator[str]:
    of, by, things = _COUNTS[cpu.counted_by]
    seconds = f"{_seconds(cpu.recorded)} of {_seconds(cpu.whole)} s {by}"
    yield f"hprofiler saw {percent(cpu.share, 1)} of the CPU time of {of}: {seconds}."
    if cpu.missed:
        yield f"{things} that were not recorded used {percent(cpu.missed, cpu.whole)}."


def seen_share(seen: Seen) -> tuple[str, bool] | None:
    """ "93.1 % of the CPU time of the job's tasks seen", and whether much of it was not."""
    if not seen.changes or seen.cpu is None:
        return None
    of = _COUNTS[seen.cpu.counted_by][0]
    return f"{percent(seen.cpu.share, 1)} of the CPU time of {of} seen", seen.cpu.share < _ALMOST_ALL


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def seen_part(seen: Seen, facts: RunFacts) -> Part:
    """For the page; nothing where no process came or went."""
    if not seen.changes:
        return Part()
    words, missed = Lines(sentences(seen)), _missed_table(seen)
    blocks: list[Block] = [*([words] if words.texts else []), _timeline(seen, facts)]
    return Part("What was recorded", [*blocks, *([missed] if missed.rows else [])])


def _missed_table(seen: Seen) -> Table:
    columns = (
        Column("process", number=False),
        Column("started after"),
        Column("lived for"),
        Column("host", number=False),
        Column("why", number=False, longest=100),
        Column("CPU time", minor=True),
    )
    rows = [_missed_row(one) for one in seen.missed]
    return Table("missed", columns, rows, "processes", _SHOWN, left_out=seen.missed_more)


def _missed_row(one: Missed) -> Row:
    lived = None if one.ended is None else one.ended - one.started
    why = _WHY[one.code] + (f": {one.detail}" if one.detail else "")
    return Row(
        (
            printable(one.name),
            cell(_after(one.started), one.started),
            cell("" if lived is None else duration(lived), lived),
            printable(one.host),
            printable(why),
            cell("" if one.cpu is None else duration(one.cpu), one.cpu),
        )
    )


def _after(seconds: float) -> str:
    """When, from the start of the recording."""
    return duration(seconds) if seconds >= 0 else f"-{duration(-seconds)}"


def _timeline(seen: Seen, facts: RunFacts) -> Timeline:
    width = seen.seconds / _BUCKETS or 1.0
    recorded, lived = [0.0] * _BUCKETS, [0.0] * _BUCKETS
    moments = seen.moments
    for one, after in zip(moments, [*moments[1:], None], strict=True):
        until = after.second if after else one.second
        first, last = floor(one.second / width), max(floor(one.second / width) + 1, ceil(until / width))
        for place in range(first, min(last, _BUCKETS)):
            recorded[place] = max(recorded[place], one.recorded)
            lived[place] = max(lived[place], one.recorded + one.missed)
    curves = [("recorded", recorded)] + ([("all that lived", lived)] if lived != recorded else [])
    lanes = [
        SpanLane(name, sorted(spans, key=lambda span: span.since))
        for name, spans in _lanes(seen, facts).items()
    ]
    used = {span.state for lane in lanes for span in lane.spans}
    used |= {"before" for lane in lanes for span in lane.spans if span.mark > span.since}
    label = f"Processes at the same time: at most {int(max(lived, default=0))}"
    legend = [one for one in _LEGEND if one[0] in used]
    return Timeline(label, seen.seconds, width, curves, lanes, legend)


def _lanes(seen: Seen, facts: RunFacts) -> dict[str, list[Span]]:
    """By host, or by the node of a container; in order of names."""
    nodes = {host.name: host.labels.get("node", "containers") for host in facts.record.hosts if host.inside}
    found: dict[str, list[Span]] = {}
    for one in seen.presences:
        begin = max(0.0, one.joined if one.started is None else min(one.started, one.joined))
        span = Span(begin, one.ended, _name(one), "", _STATES[one.ended_by], one.joined, _about(one))
        found.setdefault(nodes.get(one.host, one.host), []).append(span)
    known = {short_host(name): name for name in found}
    for missed in seen.missed:
        begin, end = max(0.0, missed.started), seen.seconds if missed.ended is None else missed.ended
        why = f"{missed.name}, not recorded: {_WHY[missed.code]}"
        span = Span(begin, min(end, seen.seconds), missed.name, "", _MISSED, begin, why)
        lane = known.get(short_host(missed.host), "" if facts.inside else missed.host) or "others"
        found.setdefault(lane, []).append(span)
    return dict(sorted(found.items(), key=lambda one: _DIGITS.sub(lambda digits: digits[0].zfill(9), one[0])))


def _about(one: Presence) -> str:
    """What a reader is told of a process that is pointed at."""
    parts = [_name(one)]
    if one.started is not None:
        parts.append(
            f"started after {duration(one.started)}"
            if one.started >= 0
            else f"started {duration(-one.started)} before the recording"
        )
    until = f"recorded from {duration(one.joined)} to {duration(one.ended)}, until {_ENDED[one.ended_by]}"
    return ", ".join([*parts, until, *_cpu_of(one)])


def _cpu_of(one: Presence) -> Iterator[str]:
    """Its CPU time, and the part that it is of its whole life."""
    if one.cpu:
        yield f"CPU {duration(one.cpu)}" + (f" of {duration(one.cpu_life)}" if one.cpu_life else "")


def seen_record(seen: Seen) -> dict[str, object]:
    """For `--json`. Moments are steps: [second, processes recorded, processes that lived and were not]."""
    cpu = seen.cpu
    return {
        "seconds": seen.seconds,
        "cpu": None
        if cpu is None
        else {
            "counted_by": cpu.counted_by,
            "recorded_seconds": cpu.recorded,
            "all_seconds": cpu.whole,
            "missed_seconds": cpu.missed,
            "share": cpu.share,
        },
        "missed": [
            members(one, "name", "host", "started", "ended", "code", "detail") | {"cpu_seconds": one.cpu}
            for one in seen.missed
        ],
        "missed_more": seen.missed_more,
        "before_or_after": seen.others,
        "problem": seen.problem,
        "moments": [list(one) for one in seen.moments],
    }


def process_records(seen: Seen) -> list[dict[str, object]]:
    """The recorded processes, once each."""
    return [
        {
            "host": one.host,
            **members(one.process, "pid", "label", "labels"),
            **members(one, "started", "joined", "ended", "ended_by"),
            "cpu_seconds": one.cpu,
            "cpu_seconds_before": one.cpu_before,
            "cpu_seconds_counted": one.cpu_counted,
        }
        for one in seen.presences
    ]
