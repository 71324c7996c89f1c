"""`hprofiler spark SOURCE`: what a Spark application did, from its event log or from Spark itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hprofiler.analysis.profiles import Names
from hprofiler.analysis.result import ProfileSink, analyze_event, open_facts
from hprofiler.analysis.spark.findings import judge
from hprofiler.app.spark_source import read_source
from hprofiler.base.errors import RunFolderError, writing
from hprofiler.base.paths import at_home, is_file
from hprofiler.base.text import printable
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import print_problems
from hprofiler.cli.terminal.lines import print_json
from hprofiler.report.spark.account import account_part, what_if_line
from hprofiler.report.spark.job import WALL, Recorded, answer_parts, page_parts, recorded
from hprofiler.report.spark.page import write_page
from hprofiler.report.spark.record import answer_record
from hprofiler.report.spark.stages import stage_part
from hprofiler.report.spark.text import headline, page_headline
from hprofiler.runfolder import RUN_FILE
from hprofiler.spark import export
from hprofiler.spark.application import Application
from hprofiler.spark.figures import Figures, figures
from hprofiler.spark.replay.schedule import Replay


def command(options: argparse.Namespace) -> int:
    page = options.output and output_path(options.output, "docs/spark-log.md")
    application = read_source(options.source, yarn_options.cluster(options))
    found = figures(application)
    _export(options, application, found)
    of_run, whole = _recorded(options.source)
    print_answer(application, found, options.json, page, of_run)
    return exit_of(application) if whole else Exit.PARTIAL


def _recorded(source: str) -> tuple[Recorded | None, bool]:
    """What the recordings of a run folder say, None for other sources; and whether all could be used."""
    path = at_home(source)
    if not is_file(path / RUN_FILE):
        return None, True
    try:
        folder, facts = open_facts(path, trim=False, slices=True)
    except RunFolderError as error:
        print(f"note: without what the run recorded: {printable(error.reason)}", file=sys.stderr)
        return None, False
    wall = [WALL] if WALL in facts.events else []
    read = {one: analyze_event(folder, facts.of(one), Names(), ProfileSink()) for one in wall}
    problems = [problem for one in read.values() for problem in one.problems]
    print_problems("not in the answer", problems)
    return recorded(facts, {event: one.stages for event, one in read.items()}), not problems


def print_answer(
    application: Application,
    found: Figures,
    as_json: bool,
    page: Path | None = None,
    recorded: Recorded | None = None,
) -> None:
    judged = judge(application, Replay(application))
    head = headline(application, found, judged.findings)
    if page:
        parts = page_parts(judged, found, recorded)
        lines, findings = page_headline(application, found, judged.findings)
        with writing(page):
            write_page(application, lines, parts, page, findings)
    if as_json:
        print_json(answer_record(judged, found, recorded))
    else:
        parts = answer_parts(judged, found, recorded)
        first, *others = (part.text for part in parts)
        account = account_part(judged.account, judged.findings, judged.application.properties).text
        stages = stage_part(found, judged.plans.operations).text
        top = ["\n".join(head), account, what_if_line(judged.what_if).text]
        print("\n\n".join(filter(None, [*top, first, stages, *others])))


def _export(options: argparse.Namespace, application: Application, found: Figures) -> None:
    if options.csv or options.parquet:
        if options.csv:
            export.write_csv(application, found, Path(options.csv))
        if options.parquet:
            export.write_parquet(application, found, Path(options.parquet))


def exit_of(application: Application) -> Exit:
    """3 if something of the log was lost; a log without an end may be that of a running application."""
    lost = [note for note in application.notes if note.code not in ("no-end", "cut", "by-rest")]
    return Exit.PARTIAL if lost else Exit.OK
