"""Reports: every picture and the page, made from a run folder alone, so that they can be made again later."""

from __future__ import annotations

import base64
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, List, Mapping, Sequence, Tuple

from hprofiler._flamegraph import Method, Profile
from hprofiler.errors import RunFolderError
from hprofiler.measures import amount, measure_of
from hprofiler.model import Outcome
from hprofiler.report import page as pages
from hprofiler.report.comparison import Compared
from hprofiler.report.facts import RunFacts, read_facts
from hprofiler.report.gather import Gathered, gather, left_out, picture_title, totals_of
from hprofiler.report.headline import empty_headline, headline, plain_headline
from hprofiler.report.hottest import hottest, hottest_section
from hprofiler.report.outliers import find_outliers, outliers_record, outliers_table
from hprofiler.report.page import Page, Scope
from hprofiler.report.reading import Names
from hprofiler.report.tables import facts_section, hosts_section, ledger_section
from hprofiler.report.telling import telling
from hprofiler.report.words import coverage
from hprofiler.store import RunFolder

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

    `totals` are the cluster's sums by value name, empty without one sample. `total` is the sum of the value
    that is shown (`measures.Measure`), `whole` what it was before trimming. `hottest` are the methods with
    the most of `telling`, a part of `total` (`report.telling`). `compared` tells which hosts and processes
    are unlike the others.
    """

    event: str
    page: Path
    recorded: int
    total: int
    whole: int
    totals: Mapping[str, int]
    hottest: Tuple[Method, ...]
    telling: int
    compared: Compared

    @property
    def left_out(self) -> float:
        """The part of the whole that trimming left out."""
        return (self.whole - self.total) / self.whole if self.whole else 0.0


@dataclass(frozen=True)
class Report:
    """What was made: `page` is the one to open, `events` are in the order in which they were asked for.

    `coverage` is a phrase such as "37 of 40 processes on 9 of 10 hosts"; `problems` are the stored
    profiles that could not be used.
    """

    page: Path
    events: Tuple[EventReport, ...]
    coverage: str
    problems: Tuple[Outcome, ...]

    @property
    def empty(self) -> bool:
        """There was not one sample of any event; the pages say why."""
        return not any(event.total for event in self.events)


def make_report(folder: Path, raw_names: bool = False, threads: bool = False, trim: bool = False) -> Report:
    """Make all pictures of a run folder, and its pages; for `raw_names` and `threads` see `reading.Names`.

    With `trim` they hold only what is below the roots that the run's selector names.
    Raises RunFolderError when it is no run folder, or cannot be written.
    """
    run_folder = RunFolder.open(folder)
    facts = replace(read_facts(run_folder.run), trimmed=trim)
    names = Names(raw_names, threads)
    events: List[EventReport] = []
    problems: List[Outcome] = []
    try:
        for event in facts.events:
            events.append(_event_report(run_folder, facts.of(event), names, problems))
    except OSError as error:
        reason = f"cannot write the report in {folder}: {error.strerror or error}"
        raise RunFolderError(reason, "free some space there, or copy the run folder elsewhere") from error
    covered, _ = coverage(facts, _lost(facts, problems))
    return Report(events[0].page, tuple(events), covered, tuple(problems))


def _lost(facts: RunFacts, problems: Sequence[Outcome]) -> int:
    """How many processes have not one profile that could be used."""
    broken = Counter((problem.host, problem.pid) for problem in problems)
    made = Counter((host.name, one.pid) for host in facts.hosts for one in host.recordings)
    return sum(1 for process, number in made.items() if broken[process] >= number)


def _event_report(folder: RunFolder, facts: RunFacts, names: Names, problems: List[Outcome]) -> EventReport:
    """Make the pictures and the page of one event; adds what could not be used to `problems`."""
    out = folder.page_path(facts.event, facts.event == facts.events[0])
    with tempfile.TemporaryFile(dir=folder.path) as spool:
        gathered = gather(folder, facts, spool, names)
        pages.write(_run_page(facts, gathered, spool), out)
    problems += gathered.problems
    recorded = sum(host.recorded for host in facts.hosts) - len(gathered.problems)
    cluster = gathered.cluster
    if cluster is None:
        return EventReport(facts.event, out, recorded, 0, gathered.whole, {}, (), 0, gathered.compared)
    told = telling(facts.event, cluster).profile
    return EventReport(
        event=facts.event,
        page=out,
        recorded=recorded,
        total=cluster.total(),
        whole=gathered.whole,
        totals=totals_of(cluster),
        hottest=tuple(method for method in told.top(_TOLD) if method.self_value),
        telling=told.total(),
        compared=gathered.compared,
    )


def write_page(profile: Profile, out: Path, title: str) -> None:
    """A page with one profile, no run around it; it has samples. Raises OSError when it cannot write."""
    scope = Scope("all", title, "", "data-all")
    sections = {
        "headline": plain_headline(profile, title),
        "explorer": pages.explorer(profile, title, "", profile.values[0][0]),
        "hottest": hottest_section(profile, []),
    }
    pages.write(Page(title, sections, [scope], lambda file: _write_profile(file, scope, profile)), out)


def _run_page(facts: RunFacts, gathered: Gathered, spool: BinaryIO) -> Page:
    sections = {
        "hosts": hosts_section(facts, gathered.hosts, gathered.compared),
        "ledger": ledger_section(facts, gathered.problems),
        "facts": facts_section(facts),
    }
    title = picture_title(facts, "hprofiler")
    cluster, mean = gathered.cluster, gathered.mean
    if cluster is None or mean is None:
        sections["headline"] = empty_headline(facts, gathered.problems)
        return Page(title, sections, [], lambda file: None)
    covered, _ = coverage(facts, len(gathered.problems))
    sections["headline"] = headline(facts, cluster, gathered)
    sections["hottest"] = hottest_section(telling(facts.event, cluster).profile, gathered.hosts)
    trimmed = left_out(facts, cluster.total(), gathered.whole)
    trimmed = trimmed[:1].upper() + trimmed[1:]
    wider = measure_of(facts.event).share_of
    sections["explorer"] = pages.explorer(cluster, picture_title(facts, "cluster"), covered, wider)
    clusters, hosts = _scopes(facts, gathered, ". ".join(filter(None, [covered, trimmed])))

    def write_data(file: BinaryIO) -> None:
        for scope, profile in zip(clusters, (cluster, mean)):
            _write_profile(file, scope, profile)
        pages.copy_blocks(spool, file, hosts)

    return Page(title, sections, [*clusters, *hosts], write_data)


def _scopes(facts: RunFacts, gathered: Gathered, covered: str) -> Tuple[List[Scope], List[Scope]]:
    """The cluster's scopes and the hosts'; a single host is all there is to choose."""
    if len(gathered.hosts) == 1:
        return [Scope("cluster", gathered.hosts[0].name, "", "data-cluster", covered)], []
    column = measure_of(facts.event).column
    total = amount(sum(host.total for host in gathered.hosts), column)
    clusters = [
        Scope("cluster", "Cluster, sum", "Cluster", "data-cluster", f"{covered}. Every sample counts once."),
        Scope("mean", "Cluster, average", "Cluster", "data-mean", f"{covered}. Every host weighs the same."),
    ]
    hosts = [
        Scope(f"host{n}", host.name, "Hosts", f"data-host{n}", f"{_of(host.total, column)} of {total}.")
        for n, host in enumerate(gathered.hosts)
    ]
    return clusters, hosts


def _of(part: int, column: Tuple[str, str]) -> str:
    """A part as it stands before its whole: "100" of 400 samples, "20 ms" of 3 s."""
    return f"{part:,}" if column[1] == "count" else amount(part, column)


def _write_profile(file: BinaryIO, scope: Scope, profile: Profile) -> None:
    pages.write_block(file, scope, base64.b64encode(profile.to_viewer()))
