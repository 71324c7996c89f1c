"""A Spark application over time: its tasks, with lanes of the driver, executors, queries and stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest

from hprofiler.model.measures import counted, duration
from hprofiler.report.blocks import Part, Span, SpanLane, Timeline
from hprofiler.report.spark.cells import executor_key, query_key
from hprofiler.spark.application import Application, Executor, Stage
from hprofiler.spark.log.sql import SqlExecution
from hprofiler.spark.timeline import SPREAD, timeline
from hprofiler.spark.windows import stage_name

_BUCKETS = 300
_MOST_SPANS = 600
_LONGEST_LABEL = 300
_CURVES = ("cpu", "gc", "shuffle read", "shuffle write", "deserialize")


def timeline_part(application: Application, operations: Mapping[int, str]) -> Part:
    """From the application's start to its end, as far as these are known. `operations` are what stages do."""
    since, until = application.start or None, application.until or None
    line = timeline(application, _BUCKETS, since, until)
    if not line.active:
        return Part()
    whole = line.width * len(line.active)
    times = _Times(line.start, line.start + whole, application.until)
    curves = [("active tasks", line.active)]
    if application.most_cores:
        curves.append(("cores of executors", _cores(application, times, line.width, len(line.active))))
    curves += [(name, line.parts[name]) for name in _CURVES if any(line.parts[name])]
    spans = {
        "driver alone": list(_alone(application, times)),
        "executors": [_executor(one, times) for one in application.workers],
        "queries": [_query(one, times) for one in application.sql.values() if one.start],
        "stages": list(_stages(application, times, operations)),
    }
    lanes = [_lane(name, of_lane, whole / 1e3) for name, of_lane in spans.items() if of_lane]
    label = f"Tasks at the same time: at most {max(line.most):,}"
    if application.most_cores:
        label += f", of {counted(application.most_cores, 'cores')}"
    drawn = Timeline(label, whole / 1e3, line.width / 1e3, curves, lanes)
    about = f"Active tasks are exact. The lines are cores of what tasks did, {SPREAD}; they overlap."
    return Part("timeline", [drawn], about=about)


class _Times:
    """Moments in milliseconds since 1970 as seconds since the start, inside of the picture."""

    def __init__(self, start: int, end: int, until: int) -> None:
        self.start, self.end = start, end
        self._until = until

    def span(self, since: int, until: int, label: str, key: str = "", state: str = "") -> Span:
        """`until` 0 is not yet, or not known."""
        begin, end = (min(max(one, self.start), self.end) for one in (since, until or self._until))
        lasted = duration(max(0, (until or self._until) - since) / 1e3)
        text = f"{label[:_LONGEST_LABEL]}, {lasted}"
        return Span((begin - self.start) / 1e3, max(begin, end) / 1e3 - self.start / 1e3, text, key, state)


def _lane(name: str, spans: list[Span], seconds: float) -> SpanLane:
    """Of too many the short ones that begin beside each other are one."""
    if len(spans) > _MOST_SPANS:
        width = seconds / _MOST_SPANS
        long = nlargest(_MOST_SPANS, spans, key=lambda one: one.until - one.since)
        long = [one for one in long if one.until - one.since >= width]
        kept = set(map(id, long))
        beside: dict[int, list[Span]] = {}
        for one in spans:
            if id(one) not in kept:
                beside.setdefault(int(one.since / width), []).append(one)
        spans = [*long, *(_joined(name, group) for group in beside.values())]
    return SpanLane(name, sorted(spans, key=lambda one: one.since))


def _joined(name: str, group: list[Span]) -> Span:
    if len(group) == 1:
        return group[0]
    states = {one.state for one in group}
    state = "failed" if "failed" in states else group[0].state
    label = f"{len(group):,} {name}"
    return Span(min(one.since for one in group), max(one.until for one in group), label, "", state)


def _cores(application: Application, times: _Times, width: int, count: int) -> list[float]:
    """The most cores of executors at the same time, by bucket."""
    changes = [0] * (count + 1)
    for one in application.workers:
        first = (min(max(one.added, times.start), times.end) - times.start) // width
        last = (min(max(one.removed or times.end, times.start), times.end) - times.start) // width
        changes[min(first, count)] += max(0, one.cores)
        changes[min(last + 1, count)] -= max(0, one.cores)
    found, cores = [], 0
    for change in changes[:count]:
        cores += change
        found.append(float(cores))
    return found


def _alone(application: Application, times: _Times) -> Iterator[Span]:
    """Times without any stage."""
    ran = sorted(
        (stage.start, stage.end or application.until, stage_name(*stage.key)) for stage in _ran(application)
    )
    until, before = times.start, ""
    last = min(times.end, application.until or times.end)
    for start, end, name in [*ran, (last, last, "")]:
        if start > until:
            around = " and ".join(filter(None, [before, name]))
            where = (
                f"between {around}" if before and name else f"after {before}" if before else f"before {name}"
            )
            yield times.span(until, start, f"no stage {where}", state="idle")
        if end >= until:
            until, before = end, name


def _ran(application: Application) -> Iterable[Stage]:
    return (one for one in application.stages.values() if one.start and one.status != "SKIPPED")


def _executor(one: Executor, times: _Times) -> Span:
    gone = f", removed: {one.reason}" if one.reason else ""
    label = f"executor {one.id} on {one.host}, {counted(one.cores, 'cores')}{gone}"
    return times.span(one.added, one.removed, label, executor_key(one.id), "removed" if one.reason else "")


def _query(one: SqlExecution, times: _Times) -> Span:
    state = "failed" if one.status == "FAILED" else ""
    return times.span(one.start, one.end or 0, f"query {one.id}: {one.description}", query_key(one.id), state)


def _stages(application: Application, times: _Times, operations: Mapping[int, str]) -> Iterator[Span]:
    for one in _ran(application):
        key = stage_name(*one.key)
        state = "failed" if one.status == "FAILED" else ""
        does = operations.get(one.id) or one.name
        yield times.span(one.start, one.end, f"{key}: {does}", key, state)
