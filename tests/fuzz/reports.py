"""Fuzzes the display of a run: on the terminal, and in the report from run.json."""

from __future__ import annotations

import contextlib
import io
import json
import re
from functools import partial
from pathlib import Path

from hprofiler.agent.messages import BadEvent, ProcessOutcome, decode
from hprofiler.analysis.coverage import coverage
from hprofiler.analysis.diff_sides import LeftOut, RunSource
from hprofiler.analysis.facts import read_facts
from hprofiler.app.run import failures
from hprofiler.cli.terminal.ledger import print_degraded, print_failures, print_reasons
from hprofiler.collect.ledger import Ledger, first_failure, with_causes
from hprofiler.model import HostRecord, Outcome, Process, Status
from hprofiler.report import make_report
from hprofiler.report.sections import ledger_record
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.schema import RunRecord
from tests.fuzz.invariants import LONGEST, check_text, of_file, ours
from tests.viewer.made_profile import made_profile

_PROCESSES = [Process("h", pid, 1, 0, "u", f"executor {pid}") for pid in range(1, 7)]
_CAUSES = [
    Outcome("h", Status.FAILED, "record", "executor 3: its container was killed", label="executor 3"),
    Outcome("h", Status.FAILED, "record", "the node is lost"),
]
_MOST_WORDS = 4 * LONGEST
"""The longest line of the ledger, which joins texts from several hosts."""
_MOST_PROFILES = 3
_STACKS = "main;a.B.c_[j];read_[k] 3\nmain;a.B.c_[0] 4\n"


def outcomes(data: bytes) -> None:
    """Fuzzes an agent's outcomes on their way to the terminal and the page."""
    ledger = Ledger("h", ("cpu",))
    ledger.found(_PROCESSES)
    known = {None, *(process.pid for process in _PROCESSES)}
    of_host: list[Outcome] = []
    for line in data.splitlines():
        with contextlib.suppress(BadEvent):
            outcome = decode(line)
            known_one = isinstance(outcome, ProcessOutcome) and outcome.pid in known
            told = ledger.outcome(outcome) if known_one else None
            of_host += [told] if told else []
    lines = (*of_host, *ledger.lines(first_failure(of_host)))
    for causes in ([], _CAUSES[:1], _CAUSES):
        _check_told(HostRecord(name="h", outcomes=with_causes(lines, causes)))


def _check_told(result: HostRecord) -> None:
    terminal = io.StringIO()
    with contextlib.redirect_stderr(terminal):
        print_failures(failures([result]), "report.html")
        print_degraded(result.outcomes)
        print_reasons([result])
    for line in terminal.getvalue().split("\n"):
        check_text(line, _MOST_WORDS)
    facts = read_facts(RunRecord(hosts=(result,)))
    json.dumps(ledger_record(facts, ()))
    check_text(coverage(facts).text)


def run_file(data: bytes) -> None:
    """Fuzzes a run.json, the profiles that it lists, and the report of both."""
    of_file(data, lambda path: _check_run(path.parent), "run.json")


def _check_run(folder: Path) -> None:
    run = RunFolder.open(folder)
    facts = read_facts(run.record)
    for host in facts.hosts:
        assert folder in run.host_dir(host.name).resolve().parents
    recordings = [(host.name, one) for host in facts.hosts for one in host.recordings]
    for key, one in recordings[:_MOST_PROFILES]:
        stored = run.profile_path(key, one.pid, one.event)
        stored.parent.mkdir(parents=True, exist_ok=True)
        made_profile(one.event, _STACKS).write(stored, "pprof", thread_label=True)
    source = RunSource(folder)
    for event, column in list(source.events.items())[:_MOST_PROFILES]:
        ours(partial(source.read, event, column, lambda *_: None, None, LeftOut()))
    if len(facts.events) <= _MOST_PROFILES:
        _check_report(folder)


def _check_report(folder: Path) -> None:
    """Texts from hosts are text in the page's description, never markup."""
    report = make_report(folder)
    check_text(report.coverage, 1 << 20)
    found = re.search(r'id="hprofiler-page">(.*?)</script>', report.page.read_text())
    assert found and "<" not in found[1]
    assert json.loads(found[1])["run"]
