"""What changed, in sentences."""

from __future__ import annotations

from hprofiler.model.measures import measure_of
from hprofiler.report.diff.changes import Changes, MethodChange
from hprofiler.report.diff.texts import amount_of, points_of
from hprofiler.report.findings import MOST, Finding
from hprofiler.report.findings.answers import about
from hprofiler.report.words import percent


def findings(changes: Changes) -> list[Finding]:
    """The largest change first; growth before gains, own costs before totals; at most `MOST`."""
    grew, shrank = changes.grew("own"), changes.shrank("own")
    found = [_finding(changes, one, "own") for one in (*grew[:2], *shrank[:2])]
    told = {one.method for one in found}
    totals = [
        one for one in (*changes.grew("total")[:1], *changes.shrank("total")[:1]) if one.name not in told
    ]
    found += [_finding(changes, one, "total") for one in totals]
    return found[:MOST] or [_nothing(changes)]


def _nothing(changes: Changes) -> Finding:
    if changes.noise.known:
        return Finding("No method changed beyond noise.")
    return Finding("What is noise is not known: the profiles do not tell how many samples they are of.")


def _amount(changes: Changes, value: float) -> str:
    return amount_of(changes, value) if changes.absolute else percent(value, 1)


def _finding(changes: Changes, one: MethodChange, kind: str) -> Finding:
    """ "Pattern.sequence takes 14.5 points more of CPU time: 30.0 % after 15.5 %"."""
    moved = one.of(kind)
    more = "more" if moved.change > 0 else "less"
    size = points_of(changes, abs(moved.change)) + ("" if changes.absolute else " points")
    calls = " with all it calls" if kind == "total" else ""
    before, after = _amount(changes, moved.before), _amount(changes, moved.after)
    of = "" if changes.absolute else f" of {measure_of(changes.event).share_of}"
    return about("", one.name, f" takes {size} {more}{of}{calls}: {after} after {before}.")
