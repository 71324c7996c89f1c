"""`hprofiler spark SOURCE`: what a Spark application did, from its event log or from Spark itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_folder
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json_members

if TYPE_CHECKING:
    from hprofiler.spark.application import Application
    from hprofiler.spark.figures import Figures


@dataclass(frozen=True)
class Section:
    """A part of the answer: a member of the JSON object ("" if it has none), and lines of the text.

    A record that may be long is an iterator.
    """

    key: str
    record: Callable[[Application, Figures], Any]
    lines: Callable[[Application, Figures], list[str]]


def command(options: argparse.Namespace) -> int:
    from hprofiler.app.spark_source import read_source
    from hprofiler.spark.figures import figures

    page = page_path(options.output)
    application = read_source(options.source, yarn_options.cluster(options))
    found = figures(application)
    _export(options, application, found)
    print_answer(application, found, options.json, page)
    return exit_of(application)


def page_path(name: str | None, docs: str = "docs/spark-log.md") -> Path | None:
    """Refuses a bad output before anything is read."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix != ".html":
        raise UsageError(f"cannot write {path}: the name must end with .html", f"see {docs}")
    if is_folder(path) or not is_folder(path.parent):
        raise UsageError(f"cannot write {path}: no such folder", "create it, or choose another file with -o")
    return path


def print_answer(application: Application, found: Figures, as_json: bool, page: Path | None = None) -> None:
    """Print the answer, and write it into a page."""
    sections = _sections()
    parts = []
    if page or not as_json:
        parts = [lines for one in sections if (lines := one.lines(application, found))]
    if page:
        _write_page(application, found, parts, page)
    if as_json:
        print_json_members((one.key, one.record(application, found)) for one in sections if one.key)
    else:
        print("\n\n".join("\n".join(lines) for lines in parts))


def _write_page(application: Application, found: Figures, parts: Sequence[list[str]], out: Path) -> None:
    from hprofiler.report.spark_page import write_page

    try:
        write_page(application, found, parts, out)
    except OSError as error:
        reason = f"cannot write {out}: {error.strerror or error}"
        raise UsageError(reason, "choose another file with -o") from error


def _sections() -> list[Section]:
    """The parts of the answer, in the order of the text."""
    from hprofiler.report import spark_text as text
    from hprofiler.report.spark_blocked import blocked_lines, straggler_lines
    from hprofiler.spark import figures as of
    from hprofiler.spark.blocked import blocked_record
    from hprofiler.spark.findings import Judged, findings_record, judge
    from hprofiler.spark.memory import application_memory, memory_record
    from hprofiler.spark.sql import rest_execution
    from hprofiler.spark.stragglers import stragglers_record

    made: list[Judged] = []

    def judged(application: Application) -> Judged:
        """Made once, for all sections."""
        if not made:
            made.append(judge(application))
        return made[0]

    from hprofiler.spark.timeline import timeline

    def nothing(application: Application, found: Figures) -> list[str]:
        return []

    return [
        Section(
            "application",
            lambda application, found: {
                **of.application_record(application),
                "figures": found.record(),
                "properties": application.properties,
            },
            lambda application, found: text.headline(application, found, judged(application).findings),
        ),
        Section(
            "findings",
            lambda application, _: findings_record(judged(application).findings),
            nothing,
        ),
        Section("", nothing, text.application_lines),
        Section(
            "stages",
            lambda _, found: map(of.stage_record, of.newest_first(found)),
            lambda _, found: text.stage_lines(found),
        ),
        Section("jobs", of.job_records, nothing),
        Section(
            "blocked",
            lambda application, _: blocked_record(judged(application).blocked),
            lambda application, _: blocked_lines(judged(application).blocked),
        ),
        Section(
            "stragglers",
            lambda application, _: stragglers_record(judged(application).stragglers),
            lambda application, _: straggler_lines(judged(application).stragglers),
        ),
        Section("", nothing, lambda _, found: [*text.failure_lines(found), *text.locality_lines(found)]),
        Section(
            "executors",
            lambda application, _: of.executor_records(application),
            lambda application, _: text.executor_lines(application),
        ),
        Section(
            "memory",
            lambda application, _: memory_record(application_memory(application)),
            lambda application, _: text.memory_lines(application_memory(application)),
        ),
        Section(
            "sql",
            lambda application, _: (
                rest_execution(one, application.until) for one in application.sql.values()
            ),
            text.sql_lines,
        ),
        Section("timeline", lambda application, _: timeline(application).record(), nothing),
        Section(
            "notes",
            lambda application, _: [
                {"code": note.code, "count": note.count, "detail": note.detail, "text": note.text}
                for note in application.notes
            ],
            lambda application, _: text.note_lines(application),
        ),
    ]


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
