"""`hprofiler archive VERB`: add runs to an archive, keep it small and whole, ask it in SQL."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from hprofiler.archive.compact import compact
from hprofiler.archive.place import open_place
from hprofiler.archive.prune import prune
from hprofiler.archive.reading import ask
from hprofiler.archive.schema import TABLES
from hprofiler.base.bounded_json import members
from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable
from hprofiler.cli.options.archive_verbs import VARIABLE
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import print_problems
from hprofiler.cli.terminal.lines import print_json, print_table
from hprofiler.model.measures import counted

if TYPE_CHECKING:
    from hprofiler.archive.add import Added

_LEFT_SHOWN = 5


def command(options: argparse.Namespace) -> int:
    return _VERBS[options.verb](options)


def _add(options: argparse.Namespace) -> int:
    from hprofiler.archive.add import add  # which reads profiles and Spark's logs

    if options.place is None:
        raise UsageError("no archive is named", f"name it with --to, or set ${VARIABLE}")
    added = []
    folders = [Path(name) for name in options.folders]
    for one in add(folders, options.place, options.pseudonymise, options.app):
        added.append(one)
        print_added(one, options.place, sys.stderr.write if options.json else sys.stdout.write)
    if options.json:
        print_json({"place": options.place, "runs": [_record(one) for one in added]})
    if all(one.failure for one in added):
        return Exit.NOTHING
    return Exit.PARTIAL if any(one.failure or one.problems for one in added) else Exit.OK


def print_added(one: Added, place: str, write: Callable[[str], object]) -> None:
    """What became of a run, and what of it is missing."""
    if one.failure:
        remedy = f"\n  {printable(one.failure.remedy)}" if one.failure.remedy else ""
        print(
            f"{printable(str(one.folder))}: not added: {printable(one.failure.reason)}{remedy}",
            file=sys.stderr,
        )
        return
    done = "is in the archive already" if one.known else f"added to {place}"
    write(printable(f"{one.folder}: run {one.run} {done}") + "\n")
    print_problems("not added", one.problems)


def _record(one: Added) -> dict[str, object]:
    failure = one.failure.reason if one.failure else None
    problems = [
        members(problem, "host", "pid", "code", "parameters", "reason", "remedy") for problem in one.problems
    ]
    return {
        "folder": str(one.folder),
        "run": one.run or None,
        "known": one.known,
        "failure": failure,
        "problems": problems,
    }


def _compact(options: argparse.Namespace) -> int:
    done = 0
    for one in compact(options.place):
        done += 1
        runs, files = counted(one.runs, "runs"), counted(one.files, "files")
        print(printable(f"{one.application} {one.month}: {files} with {runs} joined"))
    if not done:
        print("there is nothing to join")
    return Exit.OK


def _prune(options: argparse.Namespace) -> int:
    if not options.older_than:
        raise UsageError("this removes every run", "delete the archive's folder instead")
    removed = prune(options.place, options.older_than)
    print(f"{removed:,} run{'' if removed == 1 else 's'} removed")
    return Exit.OK


def _check(options: argparse.Namespace) -> int:
    from hprofiler.archive.check import check

    found = check(options.place)
    for problem in found.problems:
        print(printable(problem))
    if found.left_over:
        print(f"{len(found.left_over):,} files of no run, which `archive compact` removes:")
        for name in found.left_over[:_LEFT_SHOWN]:
            print(f"  {printable(name)}")
    state = counted(len(found.problems), "problems") if found.problems else "no problem"
    print(f"{counted(found.runs, 'runs')}, {state}")
    if not found.problems:
        return Exit.OK
    print("docs/archive.md says how to go on: When something goes wrong")
    return Exit.PARTIAL


def _sql(options: argparse.Namespace) -> int:
    query, place = options.query, options.place
    if query is None and place is not None and " " in place.strip():
        query, place = place, os.environ.get(VARIABLE)  # a query alone
    if query is None:
        if place is not None:
            open_place(place)
        print_table([[table.name, ", ".join(table.columns)] for table in TABLES.values()])
        return Exit.OK
    if not place:
        raise UsageError("no archive is named", f"name it before the query, or set ${VARIABLE}")
    names, rows = ask(place, query)
    if options.json:
        print_json([dict(zip(names, map(_plain, row), strict=True)) for row in rows])
    else:
        table = [names, *([_text(cell) for cell in row] for row in rows)]
        if len(names) > 1:
            print_table(table)
        else:
            print("\n".join(cell for row in table for cell in row))
    return Exit.OK


def _plain(cell: object) -> object:
    if isinstance(cell, (list, tuple)):
        return [_plain(one) for one in cell]
    if isinstance(cell, Decimal):
        return float(cell)
    known = cell is None or isinstance(cell, (bool, int, float, str))
    return cell if known else cell.isoformat() if isinstance(cell, datetime) else str(cell)


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.15g}"
    return printable(";".join(map(str, cell)) if isinstance(cell, (list, tuple)) else str(cell))


_VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "add": _add,
    "compact": _compact,
    "prune": _prune,
    "check": _check,
    "sql": _sql,
}
