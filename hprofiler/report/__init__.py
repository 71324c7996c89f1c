"""Reports: every picture and the page, made from a run folder alone, so that they can be made again later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hprofiler._flamegraph import Method
from hprofiler.base.errors import PicturesError, RunFolderError
from hprofiler.model import Outcome
from hprofiler.report import page as pages
from hprofiler.report.comparison import Compared
from hprofiler.report.covered import run_covered, sampled
from hprofiler.report.description import PageData
from hprofiler.report.facts import RunFacts, read_facts
from hprofiler.report.findings import Finding
from hprofiler.report.gather import (
    Gathered,
    gather,
    left_out,
    page_event,
    picture_title,
    run_title,
    totals_of,
)
from hprofiler.report.headline import empty_headline, headline, top
from hprofiler.report.hottest import hottest, hottest_section
from hprofiler.report.outliers import find_outliers, outliers_record, outliers_table
from hprofiler.report.page import Page
from hprofiler.report.reading import Names
from hprofiler.report.single import write_page
from hprofiler.report.tables import hosts_section, run_section
from hprofiler.report.words import coverage
from hprofiler.runfolder import RunFolder

__all__ = [
    "EventReport",
    "Report",
    "find_outliers",
    "hottest",
    "make_report",
    "outliers_record",
    "outliers_table",
    "write_page",
]

# How many of the hottest methods a report tells for the terminal and for scripts.
_TOLD = 5


@dataclass(frozen=True)
class EventReport:
    """What became of one event, which `recorded` processes yielded.

    `expected` is how many samples their CPU time stands for, 0 where the event is not taken by it.
    `totals` are the cluster's sums by value name, empty without one sample. `total` is the sum of the value
    that is shown (`measures.Measure`), `whole` what it was before trimming. `hottest` are the methods with
    the most of `telling`, a part of `total` (`report.telling`) that `telling_of` names. `findings` say what
    stands out, the answer first; `compared` tells which hosts and processes are unlike the others.
    """

    event: str
    recorded: int
    expected: int
    total: int
    whole: int
    totals: Mapping[str, int]
    hottest: tuple[Method, ...]
    telling: int
    telling_of: str
    findings: tuple[Finding, ...]
    compared: Compared

    @property
    def left_out(self) -> float:
        """The part of the whole that trimming left out."""
        return (self.whole - self.total) / self.whole if self.whole else 0.0


@dataclass(frozen=True)
class Report:
    """What was made: `page` shows all `events`, which are in the order in which they were asked for.

    `coverage` is a phrase such as "37 of 40 processes on 9 of 10 hosts"; `problems` are the stored
    profiles that could not be used. `cut_off` is a run that ended before anything of it was told.
    """

    page: Path
    events: tuple[EventReport, ...]
    coverage: str
    problems: tuple[Outcome, ...]
    cut_off: bool

    @property
    def empty(self) -> bool:
        """There was not one sample of any event; the page says why."""
        return not any(event.total for event in self.events)


def make_report(folder: Path, raw_names: bool = False, threads: bool = False, trim: bool = False) -> Report:
    """Make all pictures of a run folder, and its page; for `raw_names` and `threads` see `reading.Names`.

    With `trim`, stacks start at the roots that the run's selector names.
    Raises RunFolderError if it is not a run folder or cannot be written, PicturesError if profiles are too
    large for pictures.
    """
    run_folder = RunFolder.open(folder)
    facts = replace(read_facts(run_folder.record), trimmed=trim)
    try:
        gathered, problems = _make(run_folder, facts, Names(raw_names, threads))
    except OSError as error:
        reason = f"cannot write the report in {folder}: {error.strerror or error}"
        raise RunFolderError(reason, "free some space there, or copy the run folder elsewhere") from error
    except RuntimeError as error:
        raise PicturesError(
            f"cannot make the report of {folder}: {error}",
            f"the profiles of processes are in {folder / 'hosts'}: `hprofiler convert` reads them",
        ) from error
    told, _ = coverage(facts, _lost(facts, problems))
    return Report(run_folder.page_path, tuple(gathered), told, tuple(problems), not facts.hosts)


def _make(folder: RunFolder, facts: RunFacts, names: Names) -> tuple[list[EventReport], list[Outcome]]:
    """Write everything; the page begins with an event that has samples. Pages of old versions are removed."""
    data = _page_data(facts, names)
    reports: dict[str, EventReport] = {}
    sections: list[str] = []
    problems: list[Outcome] = []
    for event in sorted(facts.events, key=lambda event: not _has_samples(facts.of(event))):
        of_event = facts.of(event)
        number = data.event(page_event(of_event))
        gathered = gather(folder, of_event, data, number, names)
        sections.append(_event_section(number, of_event, gathered))
        reports[event] = _event_report(of_event, gathered)
        problems += gathered.problems
    parts = {
        "top": top(run_title(facts)),
        "events": "\n".join(sections),
        "run": run_section(facts, problems, coverage(facts, _lost(facts, problems))[0], _drawn(reports)),
    }
    pages.write(Page(f"{run_title(facts)} · hprofiler", parts, data), folder.page_path)
    for old in folder.old_pages(facts.events):
        old.unlink(missing_ok=True)
    return [reports[event] for event in facts.events], problems


def _drawn(reports: Mapping[str, EventReport]) -> list[str]:
    """The events that have pictures."""
    return [event for event, made in reports.items() if made.totals]


def _has_samples(facts: RunFacts) -> bool:
    return any(any(one.totals.values()) for host in facts.hosts for one in host.recordings)


def _page_data(facts: RunFacts, names: Names) -> PageData:
    """A page's data that knows the hosts with samples, in the order of the run."""
    data = PageData(run_title(facts), thread_frames=names.threads, trimmed=facts.trimmed)
    for host in facts.hosts:
        if any(any(one.totals.values()) for one in host.recordings):
            data.host(host.key, host.name)
    return data


def _lost(facts: RunFacts, problems: Sequence[Outcome]) -> int:
    """How many processes have not one profile that could be used."""
    broken = Counter((problem.host, problem.pid) for problem in problems)
    made = Counter((host.name, one.pid) for host in facts.hosts for one in host.recordings)
    return sum(1 for process, number in made.items() if broken[process] >= number)


def _event_report(facts: RunFacts, gathered: Gathered) -> EventReport:
    recorded = sum(host.recorded for host in facts.hosts) - len(gathered.problems)
    expected = facts.expected
    cluster, told, event = gathered.cluster, gathered.told, facts.event
    if cluster is None or told is None:
        return EventReport(event, recorded, expected, 0, gathered.whole, {}, (), 0, "", (), gathered.compared)
    return EventReport(
        event=event,
        recorded=recorded,
        expected=expected,
        total=cluster.total(),
        whole=gathered.whole,
        totals=totals_of(cluster),
        hottest=tuple(method for method in told.profile.top(_TOLD) if method.self_value),
        telling=told.profile.total(),
        telling_of=told.share_of,
        findings=tuple(gathered.findings),
        compared=gathered.compared,
    )


def _event_section(number: int, facts: RunFacts, gathered: Gathered) -> str:
    hosts = hosts_section(facts, gathered.hosts, gathered.compared)
    cluster, told = gathered.cluster, gathered.told
    if cluster is None or told is None:
        return pages.event_section(number, empty_headline(facts, gathered.problems), hosts)
    covered = [run_covered(facts, len(gathered.problems)), sampled(facts)]
    subtitle = " · ".join(filter(None, [*covered, left_out(facts, cluster.total(), gathered.whole)]))
    return pages.event_section(
        number,
        headline(facts, cluster, told, gathered),
        hottest_section(told, gathered.hosts),
        pages.still_picture(cluster, picture_title(facts, "cluster"), subtitle, len(facts.events)),
        hosts,
    )
