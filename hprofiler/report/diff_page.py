"""The page of a comparison: both runs' processes in one tree, and any two scopes can be compared there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import Changes, MethodChange
from hprofiler.analysis.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.analysis.findings import MOST, about
from hprofiler.analysis.subject import Finding
from hprofiler.analysis.words import percent
from hprofiler.base.text import printable
from hprofiler.model.measures import Column, measure_of
from hprofiler.report import page as pages
from hprofiler.report.description import Covered, PageData, PageEvent, PageProcess, event_of_page
from hprofiler.report.diff_text import AS_LONG, HEADS, amount_of, change_of, kinds_of, noise_of, points_of
from hprofiler.report.headline import findings_header, top
from hprofiler.report.html import method, table, text
from hprofiler.runfolder import replacing

_LISTED = 12
_FILE = "profile"
# Amounts are told with three digits.
_ROUNDING = 1e-3


class TwoRuns:
    """Takes each side's profiles as they are read; `names` are what the sides are called in the page."""

    def __init__(self, title: str, names: tuple[str, str]) -> None:
        before, after = names
        self._names = names if before != after else ("before", "after")
        self._data = PageData(title or " → ".join(self._names), self._names)
        self._event = 0

    def begin(self, event: str, column: Column, facts: Sequence[RunFacts]) -> None:
        """What is compared; `facts` are those of the sides that are runs."""
        measure = measure_of(event)
        told = PageEvent(event, measure.title, *column, measure.wider)
        if len(facts) == len(self._names):
            of_runs = [event_of_page(one) for one in facts]
            told = of_runs[0]
            lengths = [one.seconds for one in of_runs]
            if not math.isclose(*lengths, rel_tol=AS_LONG):  # there is no one length to tell cores by
                told = replace(told, seconds=0.0)
            told = replace(told, second=_common_second(of_runs))
        self._event = self._data.event(told)

    def take(
        self,
        run: int,
        profile: Profile,
        host: HostFacts | None = None,
        recording: RecordingFacts | None = None,
    ) -> None:
        """A process's profile, threads as outermost frames where they are known; or a file's."""
        if not profile.total():
            return
        if host is None or recording is None:
            number = self._data.host(_FILE, self._names[run], run)
            self._data.add_value(self._event, PageProcess(number, 0), profile, 0)
            return
        number = self._data.host(host.key, host.name, run)
        labels = tuple(recording.labels.items())
        process = PageProcess(number, recording.pid, recording.label, labels)
        self._data.add(self._event, process, profile)

    def write(self, changes: Changes, out: Path) -> None:
        """Write the page. Raises OSError."""
        found = _findings(changes)
        self._data.tell(self._event, (), found)
        runs = [" · ".join(side.covered) for side in (changes.before, changes.after)]
        self._data.cover(self._event, Covered(runs))
        sides = [changes.before.in_words(), changes.after.in_words()]
        both = (changes.before, changes.after)
        partial = [f"{one.name} is of {one.partial}" for one in both if one.partial]
        title = self._data.title
        section = pages.event_section(
            self._event,
            findings_header(changes.event, found, [f"<b>{text(side)}</b>" for side in (*sides, *partial)]),
            _tables(changes),
            pages.still_picture(changes.diff.profile, title, in_picture(changes)),
        )
        parts = {"top": top(title), "events": section}
        pages.write(pages.Page(f"{title} · hprofiler", parts, self._data), out)


def two_runs(before: Path, after: Path, title: str = "") -> TwoRuns:
    """A page for `compare_paths` to fill."""
    return TwoRuns(title, (printable(before.name or str(before)), printable(after.name or str(after))))


def write_picture(changes: Changes, path: Path, title: str = "") -> None:
    """Write the differential flame graph. Raises OSError."""
    title = title or f"{changes.before.name} → {changes.after.name}"
    with replacing(path) as file:
        file.write(changes.diff.to_svg(title=title, subtitle=in_picture(changes)))


def _findings(changes: Changes) -> list[Finding]:
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


def in_picture(changes: Changes) -> str:
    """The line below the title of a picture: both sides, and how much of what there was they are of."""
    return f"{changes.before.in_picture()} → {changes.after.in_picture()}"


def _common_second(events: Sequence[PageEvent]) -> tuple[str, str, float] | None:
    """What a sample stands for, where it stands for the same in both runs: not at 99 Hz and at 300 Hz."""
    known = [one.second for one in events if one.second is not None]
    if not known or not math.isclose(known[0][2], known[-1][2], rel_tol=_ROUNDING):
        return None
    return known[0]


def _tables(changes: Changes) -> str:
    """What changed beyond noise, for readers without JavaScript."""
    parts = [
        f"<h2>{text(head[:1].upper() + head[1:])}</h2>{_table(changes, kind, rows[:_LISTED])}"
        for head, kind, rows in kinds_of(changes)
        if rows
    ]
    return f'<section class="hottest">{"".join(parts)}</section>' if parts else ""


def _table(changes: Changes, kind: str, rows: Sequence[MethodChange]) -> str:
    return table(
        [*(f">{head.capitalize()}" for head in HEADS), "Method"], [_row(changes, one, kind) for one in rows]
    )


def _row(changes: Changes, one: MethodChange, kind: str) -> str:
    moved = one.of(kind)
    cells: list[str] = [
        amount_of(changes, moved.before),
        amount_of(changes, moved.after),
        change_of(changes, moved.change),
        noise_of(changes, moved.noise),
    ]
    numbers = "".join(f'<td class="number">{text(cell)}</td>' for cell in cells)
    mark = f' <span class="soft">{moved.which}</span>' if moved.which else ""
    return f'{numbers}<td class="name">{method(one.name)}{mark}</td>'
