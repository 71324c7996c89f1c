"""Two runs, or two profiles, compared: what costs more, what less, and what of it is chance; docs/diff.md."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable
from hprofiler.model.event_names import known_as
from hprofiler.model.measures import Column
from hprofiler.report.diff.changes import Changes, MethodChange, compare
from hprofiler.report.diff.page import TwoRuns, in_picture
from hprofiler.report.diff.several import WHY, fewest, hidden, told_apart
from hprofiler.report.diff.sides import Listener, RunSource, Source, open_side
from hprofiler.report.diff.texts import lines, record
from hprofiler.runfolder import replacing

__all__ = [
    "WHY",
    "Changes",
    "Listener",
    "MethodChange",
    "TwoRuns",
    "compare_paths",
    "fewest",
    "hidden",
    "lines",
    "record",
    "told_apart",
    "two_runs",
    "write_picture",
]


def compare_paths(
    before: Path,
    after: Path,
    event: str | None,
    absolute: bool,
    listener: Listener,
    page: TwoRuns | None = None,
) -> Changes:
    """Compare two run folders or files in one event; None is the first that both have.

    A `page` gets all profiles as they are read. Raises UsageError for what is not a profile, or where nothing
    can be compared; ProfileError where there are no samples.
    """
    sources = (open_side(before), open_side(after))
    chosen = _event(sources, event)
    if page is not None:
        facts = [one.facts.of(chosen) for one in sources if isinstance(one, RunSource)]
        page.begin(chosen, sources[0].events[chosen], facts)
    takers = [None if page is None else partial(page.take, run) for run in (0, 1)]
    column = _value(sources, chosen, absolute)
    first, second = (
        one.read(chosen, column, listener, taker) for one, taker in zip(sources, takers, strict=False)
    )
    return compare(chosen, first, second, absolute)


def two_runs(before: Path, after: Path, title: str = "") -> TwoRuns:
    """A page for `compare_paths` to fill."""
    return TwoRuns(title, (printable(before.name or str(before)), printable(after.name or str(after))))


def _event(sources: tuple[Source, Source], wanted: str | None) -> str:
    before, after = sources
    both = [event for event, column in before.events.items() if after.events.get(event) == column]
    for name in filter(None, (wanted, known_as(wanted or ""))):  # a file may call a value of its own so
        if name in both:
            return name
    if wanted is None and both:
        return next((event for event in both if before.has(event) and after.has(event)), both[0])
    what = "they have no event in common" if wanted is None else f"not both have the event {wanted!r}"
    has = "; ".join(f"{one.name} has {', '.join(one.events) or 'none'}" for one in sources)
    raise UsageError(f"{before.name} and {after.name} cannot be compared: {what}", has)


def _value(sources: tuple[Source, Source], event: str, absolute: bool) -> Column:
    """Amounts of time are times where both sides know them: a sample stands for more at 99 Hz than at 300."""
    before, after = (one.column(event, absolute) for one in sources)
    return before if before is not None and after is not None else sources[0].events[event]


def write_picture(changes: Changes, path: Path, title: str = "") -> None:
    """Write the differential flame graph. Raises OSError."""
    title = title or f"{changes.before.name} → {changes.after.name}"
    with replacing(path) as file:
        file.write(changes.diff.to_svg(title=title, subtitle=in_picture(changes)))
