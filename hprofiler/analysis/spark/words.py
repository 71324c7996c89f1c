"""Sentences on what stands out in a Spark application, by the codes of its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hprofiler.analysis.spark import query_words
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.words import and_list
from hprofiler.base.text import printable
from hprofiler.model.measures import counted, duration, size
from hprofiler.spark.windows import stage_name, whole_stage_name

_WAITS = {
    "fetch": "shuffle fetch",
    "shuffle-write": "shuffle write",
    "gc": "garbage collection",
    "scheduler": "scheduler delay",
    "python": "Python workers",
    "deserialize": "deserialization",
    "results": "making and fetching results",
    "other": "what Spark does not time (input, output, spills, locks, Python before Spark 4)",
    "other/python": "what Spark does not time: likely Python (timed in SQL only, since Spark 4), else input, "
    "output, spills, locks",
}
_LONGEST_REASON = 500
_LONGEST_NAME = 80
TEXTS = {
    "job-failed": "{jobs} failed{where}{because}{more}",
    "query-failed": "{queries} failed in the driver{because}{more}",
    "stream-failed": "{streams} failed{because}{more}",
    "jobs-cut-off": "{jobs} ended only because SparkContext was shut down{after}",
    "compacted": "Spark compacted the log and removed {removed:,} of {whole:,} jobs: this is of the others",
    "jobs-cancelled": "{cancelled:,} of {counted_jobs} cancelled",
    "exit-code": "the application ended with exit code {exit_code}, and its log does not say why",
    "no-stage": "no stage ran for {cost} of {total} ({share:.0%}){parts}{longest}",
    "no-executor": "no executor was there for {cost} of {total} ({share:.0%}){longest}",
    "narrow": "fewer than a quarter of the slots had a task for {cost} of {total} ({share:.0%}){longest}",
    "work": "a quarter of the slots or more had tasks for {share:.0%} of the time{most}",
    "stage-share": "{stage} takes {share:.0%} of the time{on_cpu}",
    "stage-wait": "{share:.0%} of its task time is {what}",
    "data-skew": "its task {task} reads {times:.0f} x the {what}",
    "one-partition": "1 of its {tasks:,} tasks reads {part} of its data",
    "straggler": "the straggler on {host} costs {cost}",
    "other-straggler": "a straggler of {stage} on {host} costs {cost}",
    "failed-tasks": "{tasks} failed{lost_tasks}",
    "killed-tasks": "{tasks} killed{lost_tasks}",
    "speculative-tasks": "{tasks} copied from slow ones brought nothing{lost_tasks}",
    "repeated-tasks": "{tasks} ran again{lost_tasks}",
    "executors-lost": "{lost}",
    "executors-late": "executors came late: for {time} tasks waited with {slots:,.0f} of {most:,} slots on "
    "average; all from the start would save {cost} at most",
    "spill": "{stage} spilled {bytes} to disk in {tasks}, {each} each",
    "slow-host": "tasks on {host} are slow",
    "idle-slots": "slots had no task for {share:.0%} of {hours:,.1f} slot hours{parts}",
    "replay-error": "the replay is {share:.0%} off what was measured: bounds are rough",
}
"""The text of each code."""
_GAPS = {
    "before-first-executor": "before the first executor came",
    "before-first-stage": "before the first stage",
    "between-stages": "between stages",
    "after-last-stage": "after the last",
}
_NARROW = {
    "no-task": "while {stage} was open and none of its tasks ran",
    "one-task": "in {stage}, which has 1 task for {slots}",
    "few-tasks": "in {stage}, which has {tasks} for {slots}",
    "tail": "while the last of the {tasks} of {stage} ran",
    "retries": "while tasks of {stage} failed or were tried again",
    "slow-launch": "in {stage}, while more of its {tasks} waited",
}
_MANY_NARROW = {
    "no-task": "in {count}, while none of their tasks ran",
    "one-task": "in {count} of 1 task",
    "few-tasks": "in {count} of few tasks",
    "tail": "in {count}, while their last tasks ran",
    "retries": "in {count}, while tasks failed or were tried again",
    "slow-launch": "in {count}, while more of their tasks waited",
}
_WASTE = (
    "failed-tasks",
    "killed-tasks",
    "speculative-tasks",
    "repeated-tasks",
    "executors-lost",
    "spill",
    "idle-slots",
)
LOSSES = {
    "jvm": "for a limit of the JVM other than its heap",
    "heap": "for a full heap",
    "memory": "for memory outside of the heap",
    "preemption": "by preemption",
    "decommission": "by decommission",
    "sigkill": "by SIGKILL",
    "sigterm": "by SIGTERM",
    "idle": "as they were idle",
    "heartbeat": "without a heartbeat",
    "driver-end": "with the driver",
    "host-lost": "with their host",
    "evicted": "by eviction from their node",
    "crash": "as their JVM crashed",
    "exit": "by an exit code of their own",
    "disconnected": "without a connection",
    "unknown": "for no known reason",
}
"""Why executors were lost, by the code of `hprofiler.spark.losses`."""
_IDLE = {
    "no-stage": "no stage ran",
    "no-executor": "nothing could run",
    "narrow": "stages had few tasks",
    "work": "tasks ran on others",
}
_WORTH = 0.05
_ON_TOP = 3
_IN_PAGE = 6
_OF_STAGE = ("stage-wait", "data-skew", "one-partition", "straggler")
"""Texts that need the name of the stage before them."""
_MOST = 0.995
_MOSTLY = 0.5


def finding_text(finding: SparkFinding) -> str:
    if finding.code in query_words.TEXTS:
        return query_words.query_text(finding.code, finding.parameters, finding.seconds)
    shown = dict(finding.parameters)
    if finding.code in ("no-stage", "no-executor", "narrow"):
        shown["longest"] = _longest(finding)
        shown["parts"] = _parts(finding) if finding.code == "no-stage" else ""
        shown["total"] = duration(shown["total"])
    if "stage" in shown:
        shown["stage"] = whole_stage_name(shown["stage"], shown["attempts"])
    if finding.code == "stage-share":
        shown["stage"] = _named(shown["stage"], shown["does"])
        most = f", {shown['few']:.0%} of that with few tasks" if shown["few"] >= _MOSTLY else ""
        shown["on_cpu"] = most or (
            f", {shown['cpu']:.0%} of that on a CPU" if shown["cpu"] >= _MOSTLY else ""
        )
    if finding.code == "data-skew":
        shown["what"] = "records of the median" if shown["records"] else "median"
    elif "what" in shown:
        shown["what"] = _WAITS["other/python" if shown.get("python") else shown["what"]]
    if finding.code == "executors-late":
        shown["time"] = duration(shown["time"])
    if finding.code == "compacted":
        shown["whole"] = shown["removed"] + shown["kept"]
    if finding.code == "jobs-cancelled":
        shown["counted_jobs"] = counted(shown["jobs"], "jobs")
    if "failed" in shown:
        shown |= _of_failure(shown)
    if finding.code in _WASTE:
        shown |= _of_waste(finding)
    if finding.code == "work":
        parts = [f"{shown['cpu']:.0%} on a CPU"] if shown["cpu"] else []
        parts += [f"{shown['whatShare']:.0%} in {shown['what']}"] if "what" in shown else []
        shown["most"] = f", of that {and_list(parts)}" if parts else ""
    if "executor" in shown:
        shown["host"] = shown["host"] or f"executor {shown['executor']}"
        shown["host"] += ", still running," if shown["running"] else ""
    if finding.code == "one-partition":
        shown["part"] = "all" if shown["share"] >= _MOST else f"{shown['share']:.0%}"
    return TEXTS[finding.code].format(**shown, cost=duration(finding.seconds))


def _named(stage: str, does: str) -> str:
    """A stage's name, and what it does."""
    if not does:
        return stage
    cut = printable(does if len(does) <= _LONGEST_NAME else f"{does[: _LONGEST_NAME - 1]}…")
    return f"{stage[:-1]}; {cut})" if stage.endswith(")") else f"{stage} ({cut})"


def _parts(finding: SparkFinding) -> str:
    """How the time without a stage is divided."""
    parts: Mapping[str, float] = finding.parameters["parts"]
    worth = {code: time for code, time in parts.items() if time >= _WORTH * finding.seconds}
    if len(worth) == 1:
        any_stage = finding.parameters["after"] or finding.parameters["before"]
        return "" if not any_stage and "before-first-stage" in worth else f", {_GAPS[next(iter(worth))]}"
    return f", {and_list([f'{duration(time)} {_GAPS[code]}' for code, time in worth.items()])}"


def _of_waste(finding: SparkFinding) -> dict[str, str]:
    known = finding.parameters
    words: dict[str, str] = {}
    if "lost" in known:
        lost: Mapping[str, int] = known["lost"]
        reasons = [
            f"{count} {LOSSES[code]}" if len(lost) > 1 else LOSSES[code] for code, count in lost.items()
        ]
        colon = ":" if len(lost) > 1 else ""
        words["lost"] = f"{counted(sum(lost.values()), 'executors')} lost{colon} {and_list(reasons)}"
    if "tasks" in known:
        words["tasks"] = counted(known["tasks"], "tasks")
    if "time" in known:
        stage = whole_stage_name(known["stage"], known["attempts"])
        what = f", which took {known['share']:.0%} of the task time, most of it in {stage}"
        words["lost_tasks"] = f"{what}; {words['lost']}" if "lost" in known else what
    if known.get("after"):
        stages = [f"stage {id_} failed {counted(times, 'times')}" for id_, times in known["after"].items()]
        words["lost_tasks"] += f", after {and_list(stages)}"
    if finding.code == "spill":
        words["bytes"], words["each"] = size(known["bytes"]), size(known["bytes"] / max(1, known["tasks"]))
    if finding.code == "idle-slots":
        most = max(known["parts"], key=known["parts"].__getitem__)
        words["parts"] = f", most of it while {_IDLE[most]}"
    return words


def _longest(finding: SparkFinding) -> str:
    """What a part of the account mostly consists of."""
    known = finding.parameters
    part, time = known["part"], known.get("longest", 0.0)
    if part in _GAPS:
        if part.startswith("before") or (part == "after-last-stage" and known["query"] is None):
            return ""
        longest = "" if time >= (1 - _WORTH) * finding.seconds else f"longest {duration(time)} "
        longest = f"{known['count']:,} times, {longest}" if known["count"] > 1 else longest
        return f", {longest}{gap_text(known['after'], known['before'], known['query'])}"
    stage = whole_stage_name(known["stage"], known["attempts"])
    if part == "no-executor":
        return f", while {stage} waited"
    whole = known["parts"][part]
    stage = _named(stage, known.get("does", ""))
    words: dict[str, Any] = {"stage": stage, "slots": counted(known["slots"], "slots")}
    words.update(tasks=counted(known["tasks"], "tasks"), count=counted(known["count"], "stages"))
    text = (_MANY_NARROW if known["named"] is None else _NARROW)[part].format(**words)
    if whole >= (1 - _WORTH) * finding.seconds:
        return f", {text}"
    return f", {duration(whole)} of it {text}"


def gap_text(after: tuple[int, int] | None, before: tuple[int, int] | None, query: int | None) -> str:
    """Where a time without any stage is."""
    within = "" if query is None else f"in query {query} "
    if after and before:
        return f"{within}between {stage_name(*after)} and {stage_name(*before)}"
    if after:
        return f"{within}after {stage_name(*after)}"
    return f"{within}before {stage_name(*before)}" if before else within.strip()


def _of_failure(shown: Mapping[str, Any]) -> dict[str, str]:
    query, consequences, others = (shown.get(name) for name in ("query", "consequences", "others"))
    failed, jobs = shown["failed"], shown.get("jobs", 0)
    places = [shown["stage"]] if "stage" in shown else []
    places += [f"query {query}"] if query is not None else []
    first = ", in the end" if shown.get("survived") else ", first" if failed > 1 else ""
    more = []
    if consequences:
        more.append(f"{counted(consequences, 'more jobs')} ended only because the application did")
    if others:
        more.append(f"{counted(others, 'other causes')}")
    reason = reason_text(shown["reason"])
    on = "; the application went on" if shown.get("went_on") else ""
    return {
        "jobs": "the job" if jobs == 1 else f"{failed:,} of {counted(jobs, 'jobs')}",
        "queries": f"query {query}" if failed == 1 else counted(failed, "queries"),
        "streams": "a streaming query" if failed == 1 else counted(failed, "streaming queries"),
        "where": f"{first} in {' of '.join(places)}" if places else "",
        "because": f": {reason}" if reason else "",
        "after": f", after {reason}" if reason else "",
        "more": (f" ({', '.join(more)})" if more else "") + on,
    }


def reason_text(reason: str) -> str:
    """A cause for a sentence: cut only where it is very long."""
    if len(reason) > _LONGEST_REASON:
        reason = reason[:_LONGEST_REASON].rstrip() + "…"
    return printable(reason).rstrip(".")


def sentence(found: Sequence[SparkFinding]) -> str:
    """The first findings as one sentence, "" for none."""
    on_top = _on_top(found)[:_ON_TOP]
    named = [None, *(one.parameters.get("named", one.parameters.get("stage")) for one in on_top)]
    texts = [
        finding_text(one) if before is not None and before == one.parameters.get("stage") else text_alone(one)
        for before, one in zip(named, on_top, strict=False)
    ]
    return _as_sentence("; ".join(texts))


def text_alone(finding: SparkFinding) -> str:
    """The text where no other stands before it."""
    text, known = finding_text(finding), finding.parameters
    if finding.code not in _OF_STAGE:
        return text
    return f"{whole_stage_name(known['stage'], known['attempts'])}: {text}"


def _on_top(found: Sequence[SparkFinding]) -> list[SparkFinding]:
    """Those that may be on top: how rough the replay is says nothing of the application, and why most slots
    were idle is said by others, unless it has a cost of its own."""
    never = ("replay-error",)
    return [one for one in found if one.code not in never and (one.code != "idle-slots" or one.seconds)]


def sentences(found: Sequence[SparkFinding]) -> list[str]:
    """The first findings, a sentence each: for a page, which has room for more of them."""
    return [_as_sentence(text_alone(one)) for one in _on_top(found)[:_IN_PAGE]]


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
