"""Reports: every picture and the page, made from a run folder alone, so that they can be made again later."""

from __future__ import annotations

import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, List, Optional, Tuple

from hprofiler._flamegraph import Profile
from hprofiler.errors import RunFolderError
from hprofiler.model import Outcome
from hprofiler.report import page as pages
from hprofiler.report.facts import RunFacts, read_facts
from hprofiler.report.gather import Gathered, gather, picture_title
from hprofiler.report.headline import empty_headline, headline, plain_headline
from hprofiler.report.hottest import hottest, hottest_section
from hprofiler.report.page import Page, Scope
from hprofiler.report.tables import facts_section, hosts_section, ledger_section
from hprofiler.report.words import coverage
from hprofiler.store import RunFolder

__all__ = ["Report", "hottest", "make_report", "write_page"]


@dataclass(frozen=True)
class Report:
    """What was made. `cluster` is None when there was not one sample; the page then says why.

    `coverage` is a phrase such as "37 of 40 processes on 9 of 10 hosts"; `problems` are the stored
    profiles that could not be used.
    """

    page: Path
    cluster: Optional[Profile]
    coverage: str
    problems: Tuple[Outcome, ...]


def make_report(folder: Path, raw_names: bool = False) -> Report:
    """Make all pictures of a run folder, and its page; `raw_names` is that of `gather`.

    Raises RunFolderError when it is no run folder, or cannot be written.
    """
    run_folder = RunFolder.open(folder)
    facts = read_facts(run_folder.run)
    out = folder / "report.html"
    try:
        with tempfile.TemporaryFile(dir=folder) as spool:
            gathered = gather(run_folder, facts, spool, raw_names)
            pages.write(_run_page(facts, gathered, spool), out)
    except OSError as error:
        reason = f"cannot write the report in {folder}: {error.strerror or error}"
        raise RunFolderError(reason, "free some space there, or copy the run folder elsewhere") from error
    covered, _ = coverage(facts, len(gathered.problems))
    return Report(out, gathered.cluster, covered, tuple(gathered.problems))


def write_page(profile: Profile, out: Path, title: str) -> None:
    """A page with one profile, no run around it; it has samples. Raises OSError when it cannot write."""
    scope = Scope("all", title, "", "data-all")
    sections = {
        "headline": plain_headline(profile, title),
        "explorer": pages.explorer(profile, title, ""),
        "hottest": hottest_section(profile, []),
    }
    pages.write(Page(title, sections, [scope], lambda file: _write_profile(file, scope, profile)), out)


def _run_page(facts: RunFacts, gathered: Gathered, spool: BinaryIO) -> Page:
    sections = {
        "hosts": hosts_section(facts, gathered.hosts),
        "ledger": ledger_section(facts, gathered.problems),
        "facts": facts_section(facts),
    }
    title = picture_title(facts, "hprofiler")
    cluster, mean = gathered.cluster, gathered.mean
    if cluster is None or mean is None:
        sections["headline"] = empty_headline(facts, gathered.problems)
        return Page(title, sections, [], lambda file: None)
    covered, _ = coverage(facts, len(gathered.problems))
    sections["headline"] = headline(facts, cluster, gathered.hosts, len(gathered.problems))
    sections["hottest"] = hottest_section(cluster, gathered.hosts)
    sections["explorer"] = pages.explorer(cluster, picture_title(facts, "cluster"), covered)
    clusters, hosts = _scopes(gathered, covered)

    def write_data(file: BinaryIO) -> None:
        for scope, profile in zip(clusters, (cluster, mean)):
            _write_profile(file, scope, profile)
        pages.copy_blocks(spool, file, hosts)

    return Page(title, sections, [*clusters, *hosts], write_data)


def _scopes(gathered: Gathered, covered: str) -> Tuple[List[Scope], List[Scope]]:
    """The cluster's scopes and the hosts'; a single host is all there is to choose."""
    if len(gathered.hosts) == 1:
        return [Scope("cluster", gathered.hosts[0].name, "", "data-cluster", covered)], []
    total = sum(host.total for host in gathered.hosts)
    clusters = [
        Scope("cluster", "Cluster, sum", "Cluster", "data-cluster", f"{covered}. Every sample counts once."),
        Scope("mean", "Cluster, average", "Cluster", "data-mean", f"{covered}. Every host weighs the same."),
    ]
    hosts = [
        Scope(f"host{n}", host.name, "Hosts", f"data-host{n}", f"{host.total:,} of {total:,} samples.")
        for n, host in enumerate(gathered.hosts)
    ]
    return clusters, hosts


def _write_profile(file: BinaryIO, scope: Scope, profile: Profile) -> None:
    pages.write_block(file, scope, base64.b64encode(profile.to_viewer()))
