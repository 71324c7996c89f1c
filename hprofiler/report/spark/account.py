"""Where an application's time went, what to do about it, and how long it would take otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hprofiler.analysis.spark.account import GROUPS, Account, Part, StageTime
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.sweep import Gap
from hprofiler.analysis.spark.what_if import WhatIf
from hprofiler.analysis.spark.words import gap_text, text_alone
from hprofiler.analysis.words import percent, plain
from hprofiler.model.measures import counted, duration
from hprofiler.report import blocks
from hprofiler.report.blocks import Column, Lines, Row, Table
from hprofiler.report.spark.words import PARTS, REMEDIES, WHAT_IF
from hprofiler.spark.windows import stage_name, whole_stage_name

_WORTH = 0.005
_ROUGH = 0.2
_NAMED = 2
_MOSTLY = 0.5


def account_part(made: Account, findings: Sequence[SparkFinding], settings: Mapping[str, str]) -> blocks.Part:
    """The account, from the application's start to its end. `settings` are those of the application."""
    if not made.total:
        return blocks.Part()
    worth = [part for part in made.parts if made.share(part.time) >= _WORTH]
    rows = [_row(made, PARTS[part.code], part.time, _most_of(part), _key(part)) for part in worth]
    rest = made.total - sum(part.time for part in worth)
    if rest:
        rows.append(_row(made, "the rest", rest, "", ""))
    columns = (
        Column("time"),
        Column("share", name="of the whole time"),
        Column("most of it", number=False),
        Column("part", number=False),
    )
    table = Table("account", columns, rows, in_terminal=("time", "share", "part", "most of it"))
    remedies = ((_subject(one), remedy_of(one)) for one in findings)
    todo = [f"{subject}: {remedy}{_set_already(remedy, settings)}" for subject, remedy in remedies if remedy]
    more = [Lines(["what to do:"]), Lines(todo, 4, True)] if todo else []
    about = "Every moment from the application’s start to its end is in one part."
    return blocks.Part(
        f"where its {duration(made.total / 1e3)} went", [table, *more], "Where the time went", about
    )


def what_if_line(found: WhatIf | None) -> blocks.Part:
    """In one sentence."""
    if found is None:
        return blocks.Part()
    if abs(found.error) > _ROUGH:
        return blocks.Part(f"what if: not known, as the replay is {_off(found)} what was measured")
    times = {code: duration(round(time) / 1e3) for code, time in found.times.items()}
    half = f", with half {times['half-slots']}" if "half-slots" in times else ""
    return blocks.Part(
        f"what if: {duration(found.as_it_was / 1e3)} would be {times['twice-slots']} with twice the slots"
        f"{half}; {times['even-tasks']} if no task were slower than its stage’s median; "
        f"ideal {times['ideal']}; critical path {times['critical-path']} "
        f"(by a replay, {_off(found)} what was measured)"
    )


def what_if_part(found: WhatIf | None) -> blocks.Part:
    """A table for pages."""
    if found is None or abs(found.error) > _ROUGH:
        return what_if_line(found)
    rows = []
    for code, time in {"": float(found.as_it_was), **found.times}.items():
        share = time / found.as_it_was
        name = WHAT_IF[code] if code else f"as it was, on {counted(found.slots, 'slots')}"
        rows.append(Row([name, (duration(round(time) / 1e3), time), (plain(percent(share, 1)), share)]))
    columns = (Column("what if", number=False), Column("time"), Column("share", name="of the time it took"))
    about = (
        f"By a replay of its tasks, {_off(found)} what was measured. What the driver did in between stays."
    )
    return blocks.Part("what if", [Table("what-if", columns, rows)], about=about)


def _off(found: WhatIf) -> str:
    return f"{100 * found.error:+.1f}% off"


def what_if_record(found: WhatIf | None) -> dict[str, Any] | None:
    """The section of `--json`; milliseconds."""
    if found is None:
        return None
    times = [{"name": code, "time": time} for code, time in found.times.items()]
    return {"time": found.as_it_was, "slots": found.slots, "replayError": found.error, "times": times}


def _row(made: Account, name: str, time: int, most: str, key: str) -> Row:
    share = (plain(percent(time, made.total)), made.share(time))
    return Row([(duration(time / 1e3), time), share, most, name], key)


def _key(part: Part) -> str:
    """The key of the stage that takes most of it."""
    if part.stages and len(part.stages[0].attempts) == 1:
        return stage_name(part.stages[0].stage, part.stages[0].attempts[0])
    return ""


def _most_of(part: Part) -> str:
    named = [*map(_gap, part.gaps), *map(_stage, part.stages)][:_NAMED]
    if part.count > _NAMED:
        named.append(f"{part.count - _NAMED:,} more")
    if part.in_queries and part.count > 1:
        named.append(f"in all {duration(part.in_queries / 1e3)} while SQL queries ran")
    return ", ".join(named)


def _gap(gap: Gap) -> str:
    return f"{duration(gap.time / 1e3)} {gap_text(gap.before, gap.after, gap.query)}"


def _stage(one: StageTime) -> str:
    return f"{duration(one.time / 1e3)} {whole_stage_name(one.stage, one.attempts)}"


def _set_already(remedy: str, settings: Mapping[str, str]) -> str:
    """Which of the settings that a remedy names the application has; Spark itself knows more."""
    named = dict.fromkeys(re.findall(r"spark(?:\.\w+)+", remedy))
    known = [f"{name}={settings[name]}" for name in named if name in settings]
    return f" (already set: {', '.join(known)})" if known else ""


def _subject(finding: SparkFinding) -> str:
    text = PARTS.get(finding.parameters.get("part", "")) or text_alone(finding)
    return text[:1].upper() + text[1:]


def remedy_of(finding: SparkFinding) -> str:
    """What to do about it, "" where that is not known."""
    known = finding.parameters
    part = known.get("part") or known.get("what") or next(iter(known.get("lost", ())), "")
    if known.get("python"):
        part = "other/python"
    if f"batches/{known.get('kind')}" in REMEDIES and known["kindShare"] >= _MOSTLY:
        return REMEDIES[f"batches/{known['kind']}"]
    if finding.code == "idle-slots" and not finding.seconds:
        return ""  # other findings say why
    if known.get("even"):
        part = "tail/even"
    if known.get("input"):
        part = "input"
    code = "stage-wait" if finding.code == "work" else finding.code
    if code in ("failed-tasks", "executors-lost") and f"lost/{part}" in REMEDIES:
        return REMEDIES[f"lost/{part}"]
    return REMEDIES.get(f"{code}/{part}", REMEDIES.get(code, ""))


def account_record(made: Account) -> dict[str, Any]:
    """The section of `--json`. Times are milliseconds, shares parts of one."""
    return {
        "start": made.start,
        "total": made.total,
        "groups": {name: made.group(name) for name in GROUPS},
        "parts": [
            _part_record(made, group, made.part(code)) for group, codes in GROUPS.items() for code in codes
        ],
        "slotTime": made.slot_time,
        "idleSlotTime": made.idle,
    }


def _part_record(made: Account, group: str, part: Part) -> dict[str, Any]:
    gaps = (
        {"gaps": [_gap_record(one) for one in part.gaps], "inQueries": part.in_queries} if part.gaps else {}
    )
    stages = {"stages": [_stage_record(one) for one in part.stages]} if part.stages else {}
    return {
        "name": part.code,
        "group": group,
        "time": part.time,
        "share": made.share(part.time),
        "count": part.count,
        **gaps,
        **stages,
    }


def _gap_record(gap: Gap) -> dict[str, Any]:
    return {
        "from": gap.start,
        "to": gap.end,
        "afterStage": gap.before,
        "beforeStage": gap.after,
        "sql": gap.query,
    }


def _stage_record(one: StageTime) -> dict[str, Any]:
    return {"stageId": one.stage, "attemptIds": one.attempts, "time": one.time}
