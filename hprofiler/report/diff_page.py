"""The page of a comparison: both runs' processes in one tree, and any two scopes can be compared there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import Changes
from hprofiler.analysis.subject import Finding
from hprofiler.base.text import printable
from hprofiler.model import HostRecord, Recording
from hprofiler.model.measures import Column, measure_of
from hprofiler.report.diff_text import AS_LONG
from hprofiler.report.page import PageCallers, PageData, PageEvent, PageProcess
from hprofiler.report.sections import chip, event_of_page, finding_record, summary
from hprofiler.runfolder import replacing

# Amounts are shown with three digits.
_ROUNDING = 1e-3
_EVENT = 0


class TwoRuns:
    """Takes each side's profiles as they are read; `names` are what the sides are called in the page."""

    def __init__(self, title: str, names: tuple[str, str]) -> None:
        before, after = names
        self._names = names if before != after else ("before", "after")
        self._data = PageData(title or " → ".join(self._names), self._names)
        self._column: Column = ("", "")

    def take(
        self,
        run: int,
        start: int | None,
        profile: Profile,
        host: HostRecord | None = None,
        recording: Recording | None = None,
    ) -> None:
        """A process's profile, threads as outermost frames where they are known; or a file's.

        `start` is when second 0 is, in microseconds since 1970, None if it is not known.
        """
        if not profile.total():
            return
        self._column = profile.values[0]
        if host is None or recording is None:
            process = PageProcess(self._data.host(self._names[run], run), 0)
            self._data.add_value(_EVENT, process, profile, 0, start)
        else:
            self._data.add(_EVENT, self._data.process(host, recording, run), profile, start)

    def write(self, changes: Changes, findings: Sequence[Finding], out: Path) -> None:
        """Write the page. Raises OSError."""
        self._data.event(self._shown(changes))
        unknown = [one.name for one in changes.methods if one.most]
        if callers := changes.callers:
            self._data.callers[_EVENT] = PageCallers(sorted(callers.code), unknown, moved=True)
        elif unknown:
            self._data.callers[_EVENT] = PageCallers((), unknown)
        runs = [" · ".join(side.coverage) for side in (changes.before, changes.after)]
        self._data.coverage[_EVENT] = {"runs": runs, "hosts": {}, "short": {}}
        both = (changes.before, changes.after)
        sides = [side.in_words() for side in both]
        partial = [f"{one.name} is of {one.partial}" for one in both if one.partial]
        chips = [chip(text) for text in (*sides, *partial)]
        self._data.summaries[_EVENT] = summary([finding_record(one) for one in findings], chips)
        self._data.write(out)

    def _shown(self, changes: Changes) -> PageEvent:
        measure = measure_of(changes.event)
        facts = [side.facts for side in (changes.before, changes.after) if side.facts]
        if len(facts) < len(self._names):
            return PageEvent(changes.event, measure.title, *self._column, measure.wider)
        events = [event_of_page(one) for one in facts]
        # Cores need one length.
        seconds = (
            events[0].seconds if math.isclose(*(one.seconds for one in events), rel_tol=AS_LONG) else 0.0
        )
        # What a sample stands for, where it is the same in both runs: not at 99 Hz and at 300 Hz.
        known = [one.second for one in events if one.second is not None]
        same = known and math.isclose(known[0][2], known[-1][2], rel_tol=_ROUNDING)
        second = known[0] if same else None
        return replace(events[0], seconds=seconds, second=second)


def two_runs(before: Path, after: Path, title: str = "") -> TwoRuns:
    """A page for `compare_paths` to fill."""
    return TwoRuns(title, (printable(before.name or str(before)), printable(after.name or str(after))))


def write_picture(changes: Changes, path: Path, title: str = "") -> None:
    """Write the differential flame graph. Raises OSError."""
    title = title or f"{changes.before.name} → {changes.after.name}"
    with replacing(path) as file:
        file.write(changes.diff.to_svg(title=title, subtitle=in_picture(changes)))


def in_picture(changes: Changes) -> str:
    """The line below the title of a picture: both sides, and how much of what there was they are of."""
    return f"{changes.before.in_picture()} → {changes.after.in_picture()}"
