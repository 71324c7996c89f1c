"""`hprofiler history`, `grew`, `cost` and `where`: questions to an archive."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hprofiler.analysis.diff import MethodChange, split_by_certainty
from hprofiler.archive.grown import grew
from hprofiler.archive.questions import cost, history, where
from hprofiler.archive.selection import Asked
from hprofiler.base.errors import UsageError, writing
from hprofiler.cli.commands.diff import print_failed
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json
from hprofiler.report import archive_page as pages
from hprofiler.report import archive_text as text

_Write = Callable[[Any, Path], None]


def command(options: argparse.Namespace) -> int:
    page = options.output and output_path(options.output, "docs/archive-questions.md")
    if not options.place:
        raise UsageError("no archive is named", "name it with --in, or in $HPROFILER_ARCHIVE")

    asked = Asked(options.place, options.app, options.event, options.since)
    # Of each question: what asks it, and what makes lines, JSON and a page of the answer.
    questions: Mapping[str, tuple[Callable[[], Any], Callable[..., Any], Callable[..., Any], _Write]] = {
        "history": (
            lambda: history(asked, options.method),
            text.history_lines,
            text.history_record,
            pages.write_history,
        ),
        "grew": (lambda: grew(asked, options.since), text.grew_lines, text.grew_record, pages.write_grew),
        "cost": (lambda: cost(asked, options.by), text.cost_lines, text.cost_record, pages.write_cost),
        "where": (
            lambda: where(asked, options.frame),
            text.where_lines,
            text.where_record,
            pages.write_where,
        ),
    }
    question = options.words[0]
    ask, lines, record, write = questions[question]
    found = ask()
    failed: list[MethodChange] = []
    unsure: list[MethodChange] = []
    if question == "grew":
        if options.fail_over is not None:
            failed, unsure = split_by_certainty(found.newest, found.newest.grew_over(options.fail_over))
        record = partial(record, failed=failed, unsure=unsure)
    if page:
        with writing(page):
            write(found, page)
    if options.json:
        print_json(record(found))
    else:
        print("\n".join(lines(found)))
    if failed or unsure:
        print_failed(found.newest, failed, unsure)
    if failed:
        return Exit.WORSE
    return Exit.PARTIAL if unsure else Exit.OK
