"""A comparison as lines for a terminal, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hprofiler._flamegraph import Change, category_label
from hprofiler.analysis.diff import Changes, MethodChange, Moved, Paths
from hprofiler.analysis.diff_findings import SELF_ONLY, amount_of, points_of
from hprofiler.analysis.diff_sides import Side
from hprofiler.analysis.subject import Finding
from hprofiler.analysis.waits import shown_row
from hprofiler.analysis.words import and_more, plain, short_name
from hprofiler.analysis.work import is_work
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, duration, measure_of, named_by

_WITHIN_SHOWN = 3
HEADS = ("before", "after", "change", "noise")
_KINDS = {"own": "self cost", "total": "total cost"}
_LONGEST_NAME = 160
_OF_CHANGE = ("before", "after", "change", "noise", "beyond")
# Recordings whose lengths differ by no more than this count as equally long.
AS_LONG = 0.02


def lines(compared: Changes, findings: Sequence[Finding], top: int) -> list[str]:
    """What stands out, and the methods that changed beyond noise, at most `top` of each kind."""
    first = [one for one in findings if one.code == SELF_ONLY]
    text = [printable(plain(one.text)) for one in first] + _head(compared)
    text += [
        "",
        *(printable(plain(one.text)) for one in findings if one not in first),
        *_categories(compared),
    ]
    kinds = kinds_of(compared)
    for head, kind, rows in kinds:
        text += _table(compared, head, kind, rows, top)
    if not any(rows for _, _, rows in kinds):
        text += _nothing(compared, top)
    text += _paths(compared, "appeared", compared.appeared, top)
    text += _paths(compared, "vanished", compared.vanished, top)
    return text


def kinds_of(compared: Changes) -> list[tuple[str, str, list[MethodChange]]]:
    """What stands above each table, which cost it is of, and its rows: "more self cost", "own", ..."""
    found = []
    for kind, words in _KINDS.items():
        found.append((f"more {words}", kind, compared.grew(kind)))
        found.append((f"less {words}", kind, compared.shrank(kind)))
    return found


def _head(compared: Changes) -> list[str]:
    sides = f"{compared.before.in_words()} → {compared.after.in_words()}"
    measure = measure_of(compared.event)
    what = measure.title if compared.absolute else f"shares of {compared.share_of}"
    text = [
        f"{printable(compared.event)}: {printable(sides)}",
        f"{printable(what)}; {about_noise(compared)}",
    ]
    sides_of = (compared.before, compared.after)
    text += [f"{printable(side.name)} covers {printable(side.partial)}" for side in sides_of if side.partial]
    before, after = (side.seconds for side in sides_of)
    if compared.absolute and before and after and not math.isclose(before, after, rel_tol=AS_LONG):
        times = f"{duration(before)} and {duration(after)}"
        text.append(f"recorded for {times}: amounts differ for that reason alone")
    return text


def about_noise(compared: Changes) -> str:
    """What noise is, and where it is known from."""
    if not compared.noise.known:
        return "noise is not known: the profiles do not say how many samples they have"
    if compared.noise.counted_alone:
        known = "the number of samples alone; processes of one kind may differ more"
    else:
        known = "the number of samples and the spread over processes"
    return f"noise is the most that chance explains, from {known}"


def _categories(compared: Changes) -> list[str]:
    """The categories of work that changed beyond noise."""
    if len(compared.rules) > 1 and is_work(compared.event):
        versions = " and ".join(compared.rules)
        return ["", f"categories of work are not compared: different rules made them ({versions})"]
    beyond = [(category_label(code), moved) for code, moved in compared.categories if moved.beyond]
    if not beyond:
        return []
    return ["", "categories of work:", *_methods(compared, beyond, "category")]


def _table(compared: Changes, head: str, kind: str, rows: Sequence[MethodChange], top: int) -> list[str]:
    if not rows:
        return []
    methods = _methods(compared, [(one.name, one.of(kind)) for one in rows[:top]])
    return ["", f"{head}:", *methods, *and_more(len(rows) - top)]


def _methods(compared: Changes, methods: Sequence[tuple[str, Moved]], what: str = "") -> list[str]:
    rows = [(*HEADS, what or named_by(compared.event))]
    rows += [(*cells_of(compared, moved), name_of(name, moved)) for name, moved in methods]
    return table_lines(rows, right=range(4), indent=2)


def cells_of(compared: Changes, moved: Moved) -> tuple[str, str, str, str]:
    """What is below `HEADS`."""
    return (
        amount_of(compared, moved.before),
        amount_of(compared, moved.after),
        f"{'+' if moved.change > 0 else '-'}{points_of(compared, abs(moved.change))}",
        "?" if moved.noise is None else f"±{points_of(compared, moved.noise)}",
    )


def name_of(name: str, moved: Moved) -> str:
    """ "com.acme.Job.run (new)"."""
    return f"{_name(name)}{f' ({moved.which})' if moved.which else ''}"


def _nothing(compared: Changes, top: int) -> list[str]:
    largest = compared.largest("own")[: _WITHIN_SHOWN if compared.noise.known else top]
    if not largest:
        return ["", "nothing changed"]
    known = "nothing changed beyond noise; the largest " if compared.noise.known else ""
    return [
        "",
        f"{known}changes of self cost:",
        *_methods(compared, [(one.name, one.own) for one in largest]),
    ]


def _paths(compared: Changes, head: str, paths: Paths, top: int) -> list[str]:
    if not paths.sure and not paths.unsure:
        return []
    text = ["", f"{head}, total cost:"]
    for one in paths.sure[:top]:
        cost = one.total_after or one.total_before
        shown = amount_of(compared, cost if compared.absolute else cost / compared.diff.after_total)
        caller = f" ← {_name(short_name(one.path[-2]))}" if len(one.path) > 1 else ""
        text.append(f"{shown:>10}  {_name(one.name)}{caller}")
    text += and_more(len(paths.sure) - top)
    if paths.unsure:
        text.append(f"  left out: {counted(paths.unsure, 'paths')} whose callers may be wrong")
    return text


def _name(name: str) -> str:
    shown = shown_row(name)
    return printable(shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…")


def record(
    compared: Changes,
    findings: Sequence[Finding],
    top: int,
    failed: Sequence[MethodChange],
    unsure: Sequence[tuple[MethodChange, str]] = (),
) -> dict[str, object]:
    """The same for JSON: every method that changed beyond noise, or the `top` where none did."""
    name, unit = compared.after.column
    beyond = [one for one in compared.methods if one.own.beyond or one.total.beyond]
    methods = beyond or compared.largest("own")[:top]
    return {
        "event": compared.event,
        "value": name,
        "unit": unit if compared.absolute else "share",
        "before": _side(compared.before),
        "after": _side(compared.after),
        "noise": noise_source(compared),
        "findings": [{"code": one.code, "text": plain(one.text), "method": one.method} for one in findings],
        "self_only": compared.self_only,
        "totals_unknown": compared.unknown,
        "rules": compared.rules,
        "categories": {code: members(moved, *_OF_CHANGE) for code, moved in compared.categories},
        "methods": [_method(one, compared.self_only) for one in methods],
        "appeared": [_path(compared, one) for one in compared.appeared.sure[:top]],
        "vanished": [_path(compared, one) for one in compared.vanished.sure[:top]],
        "paths_left_out": compared.appeared.unsure + compared.vanished.unsure,
        "failed": [one.name for one in failed],
        "unsure": [{"method": one.name, "reason": why} for one, why in unsure],
    }


def noise_source(compared: Changes) -> str:
    """Where it is known from what chance may cause: "processes", "counting" or "unknown"."""
    if not compared.noise.known:
        return "unknown"
    return "counting" if compared.noise.counted_alone else "processes"


def _side(side: Side) -> dict[str, object]:
    return {
        "name": side.name,
        "total": side.spread.total,
        "samples": side.spread.samples if side.spread.known else None,
        "processes": None if side.of_file else side.spread.parts,
        "unusable": len(side.problems),
        "malformed_lines": side.malformed_lines,
        "incomplete": side.incomplete,
        "skips_stubs": side.skips_stubs,
        "partial": side.partial or None,
        "broken": side.broken,
        "idle": side.idle,
        "untrusted": [members(one, "host", "pid", "label", "code", "share") for one in side.untrusted],
        "callers_unsure": side.unsure,
    }


def _method(one: MethodChange, self_only: bool) -> dict[str, object]:
    own, total = (members(moved, *_OF_CHANGE) for moved in (one.own, one.total))
    why = "broken-stacks" if self_only else "callers-unsure" if one.most else None
    return {"method": one.name, "self": own, "total": None if why else total, "total_unknown": why}


def _path(compared: Changes, one: Change) -> dict[str, object]:
    cost = one.total_after or one.total_before
    return {"path": list(one.path), "total": cost if compared.absolute else cost / compared.diff.after_total}
