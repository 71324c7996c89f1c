"""`hprofiler spark SOURCE`: what a Spark application did, from its event log or from Spark itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hprofiler.base.errors import writing
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json_members

if TYPE_CHECKING:
    from hprofiler.spark.application import Application
    from hprofiler.spark.figures import Figures
    from hprofiler.spark.findings import Judged


def command(options: argparse.Namespace) -> int:
    from hprofiler.app.spark_source import read_source
    from hprofiler.spark.figures import figures

    page = options.output and output_path(options.output, "docs/spark-log.md")
    application = read_source(options.source, yarn_options.cluster(options))
    found = figures(application)
    _export(options, application, found)
    print_answer(application, found, options.json, page)
    return exit_of(application)


def print_answer(application: Application, found: Figures, as_json: bool, page: Path | None = None) -> None:
    """Print the answer, and write it into a page."""
    from hprofiler.report.spark_job import answer_parts
    from hprofiler.report.spark_page import write_page
    from hprofiler.report.spark_text import headline, stage_lines
    from hprofiler.spark.findings import judge
    from hprofiler.spark.replay import Replay

    judged = judge(application, Replay(application))
    if page or not as_json:
        head = headline(application, found, judged.findings)
        first, *others = answer_parts(judged, found)
    if page:
        with writing(page):
            write_page(application, found, [head, first, *others], page)
    if as_json:
        print_json_members(_members(judged, found))
    else:
        parts = filter(None, [head, first, stage_lines(found), *others])
        print("\n\n".join("\n".join(lines) for lines in parts))


def _members(judged: Judged, found: Figures) -> Iterator[tuple[str, Any]]:
    """Of the JSON object. Lists that may be long are iterators."""
    from hprofiler.spark import figures as of
    from hprofiler.spark.blocked import blocked_record
    from hprofiler.spark.findings import findings_record
    from hprofiler.spark.memory import application_memory, memory_record
    from hprofiler.spark.sql import rest_execution
    from hprofiler.spark.stragglers import stragglers_record
    from hprofiler.spark.timeline import timeline

    application = judged.application
    record = of.application_record(application)
    yield "application", {**record, "figures": found.record(), "properties": application.properties}
    yield "findings", findings_record(judged.findings)
    yield "stages", map(of.stage_record, of.newest_first(found))
    yield "jobs", of.job_records(application, found)
    yield "blocked", blocked_record(judged.blocked)
    yield "stragglers", stragglers_record(judged.stragglers)
    yield "executors", of.executor_records(application)
    yield "memory", memory_record(application_memory(application))
    yield "sql", (rest_execution(one, application.until) for one in application.sql.values())
    yield "timeline", timeline(application).record()
    yield (
        "notes",
        [
            {"code": note.code, "count": note.count, "detail": note.detail, "text": note.text}
            for note in application.notes
        ],
    )


def _export(options: argparse.Namespace, application: Application, found: Figures) -> None:
    if options.csv or options.parquet:
        from hprofiler.spark import export

        if options.csv:
            export.write_csv(application, found, Path(options.csv))
        if options.parquet:
            export.write_parquet(application, found, Path(options.parquet))


def exit_of(application: Application) -> Exit:
    """3 if something of the log was lost; a log without an end may be that of a running application."""
    lost = [note for note in application.notes if note.code not in ("no-end", "cut", "by-rest")]
    return Exit.PARTIAL if lost else Exit.OK
