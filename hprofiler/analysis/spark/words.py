"""Sentences on what stands out in a Spark application, by the codes of its findings."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.model.measures import counted, duration
from hprofiler.spark.windows import whole_stage_name

_WAITS = {
    "fetch": "shuffle fetch",
    "shuffle-write": "shuffle write",
    "gc": "garbage collection",
    "scheduler": "scheduler delay",
    "python": "Python workers",
}
TEXTS = {
    "job-failed": "{failed} of {jobs} failed{where}",
    "stage-share": "{stage} takes {share:.0%} of the elapsed time",
    "stage-wait": "{share:.0%} of its task time is {what}",
    "data-skew": "its task {task} reads {times:.0f} x the median",
    "straggler": "the straggler on {host} costs {cost}",
    "other-straggler": "a straggler of {stage} on {host} costs {cost}",
    "replay-error": "the replay is {share:.0%} off what was measured: bounds are rough",
}
"""The text of each code."""


def finding_text(finding: SparkFinding) -> str:
    shown = dict(finding.parameters)
    if "failed" in shown:
        shown["jobs"] = counted(shown["jobs"], "jobs")
        shown["where"] = ""
    if "stage" in shown:
        shown["stage"] = whole_stage_name(shown["stage"], shown["attempts"])
    if "reason" in shown:
        shown["where"] = f" in {shown['stage']}: {shown['reason']}"
    if "what" in shown:
        shown["what"] = _WAITS[shown["what"]]
    if "executor" in shown:
        shown["host"] = shown["host"] or f"executor {shown['executor']}"
        shown["host"] += ", still running," if shown["running"] else ""
    return TEXTS[finding.code].format(**shown, cost=duration(finding.seconds))


def sentence(found: Sequence[SparkFinding]) -> str:
    """All findings as one sentence, "" for none."""
    text = "; ".join(map(finding_text, found))
    return f"{text[:1].upper()}{text[1:]}." if text else ""
