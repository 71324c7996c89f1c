"""What a recording waited for, as text."""

from __future__ import annotations

from datetime import datetime

from hprofiler.model.measures import duration
from hprofiler.model.trigger import Fired, beside
from hprofiler.runfolder import RunRecord
from hprofiler.spark.windows import stage_name


def fired_text(fired: Fired) -> str:
    """ "gc > 20%: 31 % in executor 4 (pid 4711) on n3"."""
    condition = fired.condition
    if fired.task is not None:
        task, stage = fired.task, stage_name(fired.stage or 0, fired.attempt)
        where = f"executor {task.executor} on {fired.host}"
        return (
            f"{condition}: task {task.id} (index {task.index}) of {stage} had run {duration(task.seconds)} "
            f"in {where}, {beside(fired.value, fired.limit, 1)} times the median of {duration(task.median)}"
        )
    if fired.stage is not None:
        return f"{condition}: {stage_name(fired.stage, fired.attempt)} was active"
    digits, unit = (0, "%") if fired.kind == "gc" else (1, "cores")
    amount = f"{beside(fired.value, fired.limit, digits)} {unit}"
    return f"{condition}: {amount} in {fired.process} (pid {fired.pid}) on {fired.host}"


def triggered_text(record: RunRecord) -> str:
    """Why it was recorded then; "" if that was at once."""
    fired, last_of = record.trigger, record.last_of
    why = fired_text(fired) if fired else ""
    at = f", at {datetime.fromtimestamp(fired.time):%H:%M:%S}" if fired else ""
    if last_of is not None:
        of = f"the last {duration(record.sampling.duration)} of {duration(last_of)}"
        return f"{of}, until {why}{at}" if why else of
    return f"recorded since {why}{at}" if why else ""
