"""A page of one profile, no run around it."""

from __future__ import annotations

from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import attribute_file
from hprofiler.analysis.findings import findings_of_file
from hprofiler.model.measures import amount
from hprofiler.report import page as pages
from hprofiler.report.description import PageData, PageEvent, PageProcess
from hprofiler.report.headline import file_headline, top
from hprofiler.report.hottest import hottest_section

_BEFORE_AND_AFTER = ("before", "after")


def write_page(profile: Profile, out: Path, title: str) -> None:
    """Write the page of a profile with samples. Raises OSError when it cannot write.

    Each value that has any is an event; the values `before` and `after` are two runs of one.
    """
    values = [number for number, (name, _) in enumerate(profile.values) if profile.total(number)]
    if tuple(name for name, _ in profile.values) == _BEFORE_AND_AFTER:
        data, sections = _two_runs(profile, title, values[-1])
    else:
        data, sections = _events(profile, title, values)
    parts = {"top": top(title), "events": "\n".join(sections)}
    pages.write(pages.Page(title, parts, data), out)


def _events(profile: Profile, title: str, values: list[int]) -> tuple[PageData, list[str]]:
    data = PageData(title, (title,))
    everything = PageProcess(data.host("", title), 0)
    sections = []
    for value in values:
        name, unit = profile.values[value]
        event = data.event(PageEvent(name, name, name, unit, name))
        data.add_value(event, everything, profile, value)
        sections.append(_section(event, profile.select(value), data, len(values)))
    return data, sections


def _two_runs(profile: Profile, title: str, told: int) -> tuple[PageData, list[str]]:
    """Both values in one event; words are of the one that is told."""
    data = PageData(title, _BEFORE_AND_AFTER)
    unit = profile.values[0][1]
    event = data.event(PageEvent("samples", title, "samples", unit, "samples"))
    for run, name in enumerate(_BEFORE_AND_AFTER):
        data.add_value(event, PageProcess(data.host("", name, run), 0), profile, run)
    return data, [_section(event, profile.select(told), data, 1)]


def _section(event: int, profile: Profile, data: PageData, events: int) -> str:
    attribution = attribute_file(profile)
    found = findings_of_file(attribution)
    data.tell(event, (), found)
    name, column = data.title, profile.values[0]
    return pages.event_section(
        event,
        file_headline(attribution, found),
        hottest_section(attribution, []),
        pages.still_picture(profile, name, amount(profile.total(), column), events),
    )
