"""A page of one profile, no run around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Attribution, attribute_file, ends_of_file
from hprofiler.analysis.findings import findings_of_file
from hprofiler.report.page import PageData, PageEvent, PageProcess
from hprofiler.report.sections import file_summary, with_left_out

_BEFORE_AND_AFTER = ("before", "after")


def write_page(profile: Profile, out: Path, title: str) -> None:
    """Write the page of a profile with samples. Raises OSError when it cannot write.

    Each value that has any is an event; the values `before` and `after` are two runs of one.
    """
    values = [number for number, (name, _) in enumerate(profile.values) if profile.total(number)]
    if tuple(name for name, _ in profile.values) == _BEFORE_AND_AFTER:
        data = PageData(title, _BEFORE_AND_AFTER)
        event = data.event(PageEvent("samples", title, "samples", profile.values[0][1], "samples"))
        for run, name in enumerate(_BEFORE_AND_AFTER):
            data.add_value(event, PageProcess(data.host(name, run), 0), profile, run)
        data.summaries[event] = _summary(attribute_file(profile.select(values[-1])))
    else:
        data = PageData(title, (title,))
        everything = PageProcess(data.host(title), 0)
        start = profile.times.start if profile.times else None
        for value in values:
            name, unit = profile.values[value]
            shown = PageEvent(name, name, name, unit, name, 0.0, None, *ends_of_file(name))
            attribution = attribute_file(profile.select(value))
            event = data.event(with_left_out(shown, attribution))
            data.add_value(event, everything, profile, value, start)
            data.summaries[event] = _summary(attribution)
    data.write(out, title)


def _summary(attribution: Attribution) -> Mapping[str, object]:
    return file_summary(attribution, findings_of_file(attribution))
