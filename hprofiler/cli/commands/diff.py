"""`hprofiler diff BEFORE AFTER`: what changed between two runs, beyond chance."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from hprofiler.analysis.diff import (
    WHY,
    WRONG_CALLERS,
    Changes,
    MethodChange,
    compare_sources,
    fewest,
    hidden,
    split_by_certainty,
    why_unsure,
)
from hprofiler.analysis.diff_findings import findings_of_changes
from hprofiler.analysis.diff_sides import Source, open_side
from hprofiler.analysis.subject import Finding
from hprofiler.analysis.waits import shown_row
from hprofiler.archive.sides import ArchiveSide
from hprofiler.base.errors import PicturesError, UsageError, writing
from hprofiler.base.text import printable
from hprofiler.base.time_range import TimeRange
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json, warn_of, warn_of_stubs
from hprofiler.cli.terminal.progress import counters
from hprofiler.model.measures import counted
from hprofiler.report.diff_page import TwoRuns, two_runs, write_picture
from hprofiler.report.diff_text import lines, record

_ARCHIVE = "archive:"
_PAGE = ".html"
_SUFFIXES = (".svg", _PAGE)
_FAILED_SHOWN = 5
_MORE_RUNS = "give three runs a side: hprofiler diff OLD-1,OLD-2,OLD-3 NEW-1,NEW-2,NEW-3"


def command(options: argparse.Namespace) -> int:
    outputs = [output_path(name, "docs/diff.md", _SUFFIXES) for name in options.output]
    times = _times(options.time)

    before, after = Path(options.before), Path(options.after)
    pages = any(output.suffix == _PAGE for output in outputs)
    page = two_runs(before, after, options.title) if pages else None
    with counters() as listener:
        take = page.take if page else None
        sources = (_side(options.before, times[0]), _side(options.after, times[1]))
        changes = compare_sources(sources, options.event, options.absolute, listener, take)
    findings = findings_of_changes(changes)
    for output in outputs:
        _write(changes, findings, page if output.suffix == _PAGE else None, output, options.title)
    grown = [] if options.fail_over is None else changes.grew_over(options.fail_over)
    failed, unsure = split_by_certainty(changes, grown)
    within = None if options.fail_over is None or grown else hidden(changes, options.fail_over)
    unsure_why = [(one, why_unsure(changes, one)) for one in unsure]
    if within is not None:
        unsure_why.append((within[0], _hides(changes, within[1])))
    _print(changes, findings, options, failed, unsure, unsure_why)
    if options.fail_over is not None and changes.self_only:
        _print_grown(["cannot tell whether a total grew: stacks are broken"])
    if within is not None:
        one, noise = within
        grew = f"{_grew(one)} ({_growth(one, changes)})"
        _print_grown([f"cannot tell whether {grew}: {_hides(changes, noise)}"])
    if within is not None or any(why_unsure(changes, one) == WHY for one in unsure):
        limit = f"--fail-over {100 * options.fail_over:g}%"
        print(f"  {_MORE_RUNS} {limit}", file=sys.stderr)
    if failed:
        return Exit.WORSE
    trusted = not any(
        side.broken or side.malformed_lines or side.incomplete or side.skips_stubs for side in changes.sides
    )
    return Exit.OK if trusted and not (unsure_why or _problems(changes)) else Exit.PARTIAL


def _side(name: str, time: TimeRange | None) -> Source:
    if not name.startswith(_ARCHIVE):
        return open_side(Path(name), time)
    if time is not None:
        raise UsageError(f"{name}: --time is for run folders and files", "compare it without --time")

    return ArchiveSide(name, datetime.now(timezone.utc))


def _times(given: list[TimeRange]) -> tuple[TimeRange | None, TimeRange | None]:
    """The range of each side."""
    if len(given) > 2:
        raise UsageError("--time is given more than twice", "give one range for both sides, or one for each")
    return (given[0], given[-1]) if given else (None, None)


def _write(
    changes: Changes, findings: Sequence[Finding], page: TwoRuns | None, path: Path, title: str
) -> None:
    try:
        with writing(path):
            if page is not None:
                page.write(changes, findings, path)
            else:
                write_picture(changes, path, title)
    except RuntimeError as error:  # more nodes or names than the page can hold
        raise PicturesError(f"cannot make {path}: {error}", "compare without -o") from error


def _print(
    changes: Changes,
    findings: Sequence[Finding],
    options: argparse.Namespace,
    failed: list[MethodChange],
    unsure: list[MethodChange],
    unsure_why: list[tuple[MethodChange, str]],
) -> None:
    for reason in _problems(changes)[:_FAILED_SHOWN]:
        print(f"not compared: {reason}", file=sys.stderr)
    if len(_problems(changes)) > _FAILED_SHOWN:
        print(f"  … and {len(_problems(changes)) - _FAILED_SHOWN} more", file=sys.stderr)
    for side in changes.sides:
        warn_of(side.malformed_lines, side.warnings, printable(side.name))
        if side.skips_stubs:
            warn_of_stubs(printable(side.name))
    if options.json:
        print_json(record(changes, findings, options.top, failed, unsure_why))
    else:
        print("\n".join(lines(changes, findings, options.top)))
    print_failed(changes, failed, unsure)


def print_failed(changes: Changes, failed: list[MethodChange], unsure: list[MethodChange]) -> None:
    """Name on stderr what grew by more than the limit."""
    _print_grown([f"{_grew(one)}: {_growth(one, changes)}" for one in failed])
    told = [(one, why_unsure(changes, one)) for one in unsure]
    others = [pair for pair in told if pair[1] != WRONG_CALLERS]
    _print_grown(
        [f"cannot tell whether {_grew(one)} ({_growth(one, changes)}): {why}" for one, why in others]
    )
    if len(others) < len(told):
        methods = counted(len(told) - len(others), "methods")
        _print_grown([f"cannot tell whether totals of {methods} grew: {WRONG_CALLERS}"])


def _hides(changes: Changes, noise: float) -> str:
    """Why a change over the limit may be hidden."""
    number = "1 process" if fewest(changes) == 1 else f"{fewest(changes)} processes"
    return f"with {number} on a side, a change below {100 * noise:.1f} points may be chance"


def _print_grown(told: list[str]) -> None:
    for line in told[:_FAILED_SHOWN]:
        print(f"hprofiler: {line}", file=sys.stderr)
    if len(told) > _FAILED_SHOWN:
        print(f"  … and {len(told) - _FAILED_SHOWN} more methods", file=sys.stderr)


def _problems(changes: Changes) -> list[str]:
    sides = (changes.before, changes.after)
    told = (f"{side.name}: {one.host} pid {one.pid}: {one.reason}" for side in sides for one in side.problems)
    return [printable(reason) for reason in told]


def _grew(one: MethodChange) -> str:
    return f"{printable(shown_row(one.name))} grew"


def _growth(one: MethodChange, changes: Changes) -> str:
    own, total = (100 * moved.change / changes.whole for moved in (one.own, one.total))
    return f"{own:+.1f} points self" + ("" if changes.self_only or one.most else f", {total:+.1f} total")
