"""`hprofiler history`, `grew`, `cost` and `where`: questions to an archive."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hprofiler.base.errors import UsageError, writing
from hprofiler.cli.commands.diff import print_failed
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json

if TYPE_CHECKING:
    from hprofiler.archive.selection import Asked


class _Answer(NamedTuple):
    """An answer as lines, as JSON and as a page; `ending` prints what failed, and returns the exit code."""

    lines: Callable[[], list[str]]
    record: Callable[[], dict[str, object]]
    write: Callable[[Path], None]
    ending: Callable[[], Exit] = lambda: Exit.OK


def command(options: argparse.Namespace) -> int:
    page = options.output and output_path(options.output, "docs/archive-questions.md")
    if not options.place:
        raise UsageError("no archive is named", "name it with --in, or in $HPROFILER_ARCHIVE")
    from hprofiler.archive.selection import Asked

    asked = Asked(options.place, options.app, options.event, options.since)
    answer = _ANSWERS[options.words[0]](asked, options)
    if page:
        with writing(page):
            answer.write(page)
    if options.json:
        print_json(answer.record())
    else:
        print("\n".join(answer.lines()))
    return answer.ending()


def _history(asked: Asked, options: argparse.Namespace) -> _Answer:
    from hprofiler.archive.questions import history
    from hprofiler.report.archive_page import write_history
    from hprofiler.report.archive_text import history_lines, history_record

    found = history(asked, options.method)
    return _Answer(
        partial(history_lines, found), partial(history_record, found), partial(write_history, found)
    )


def _grew(asked: Asked, options: argparse.Namespace) -> _Answer:
    from hprofiler.analysis.diff import split_by_certainty
    from hprofiler.archive.grown import grew
    from hprofiler.report.archive_page import write_grew
    from hprofiler.report.archive_text import grew_lines, grew_record

    found = grew(asked, options.since)
    over = [] if options.fail_over is None else found.newest.grew_over(options.fail_over)
    failed, unsure = split_by_certainty(found.newest, over)

    def ending() -> Exit:
        print_failed(found.newest, failed, unsure)
        return Exit.WORSE if failed else Exit.OK

    record = partial(grew_record, found, failed, unsure)
    return _Answer(partial(grew_lines, found), record, partial(write_grew, found), ending)


def _cost(asked: Asked, options: argparse.Namespace) -> _Answer:
    from hprofiler.archive.questions import cost
    from hprofiler.report.archive_page import write_cost
    from hprofiler.report.archive_text import cost_lines, cost_record

    found = cost(asked, options.by)
    return _Answer(partial(cost_lines, found), partial(cost_record, found), partial(write_cost, found))


def _where(asked: Asked, options: argparse.Namespace) -> _Answer:
    from hprofiler.archive.questions import where
    from hprofiler.report.archive_page import write_where
    from hprofiler.report.archive_text import where_lines, where_record

    found = where(asked, options.frame)
    return _Answer(partial(where_lines, found), partial(where_record, found), partial(write_where, found))


_ANSWERS = {"history": _history, "grew": _grew, "cost": _cost, "where": _where}
