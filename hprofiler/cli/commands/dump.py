"""`hprofiler dump`: what all threads of a job's processes do now."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from hprofiler.app.dump import DumpRequest, DumpResult, dump
from hprofiler.base.bounded_json import members
from hprofiler.base.passwords import hide_in_word
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import outcome_record, print_degraded, print_failures
from hprofiler.cli.terminal.lines import print_json
from hprofiler.cli.terminal.progress import display
from hprofiler.collect.dumping import Looks
from hprofiler.collect.stop import Stop
from hprofiler.model import Status

if TYPE_CHECKING:
    from hprofiler.report.dump import DumpReport

_OF_DUMP = ("pid", "label", "look", "time", "seconds", "kind", "file")


def command(options: argparse.Namespace) -> int:
    selector = chosen.selector(options)
    located = chosen.target(options)
    request = DumpRequest(
        located,
        selector,
        Looks(options.times, options.every, options.owners),
        chosen.output_folder(options, "hprofiler-dump"),
        options.force,
        ("hprofiler", *(hide_in_word(word, getattr(options, "yarn", None)) for word in options.words)),
        chosen.care(options),
        keep_empty=bool(options.output),
    )
    if options.owners:
        cost = "up to 2 s for each GB of small objects"
        print(f"note: each JVM stands still while it searches its heap for --owners, {cost}", file=sys.stderr)
    stop = Stop()
    with display(len(located.hosts), 0.0) as listener:
        result = dump(request, chosen.reach(options, located), listener, stop)
    report = _report(result) if result.record.dumped else None
    _print_problems(result)
    if options.json:
        print_json({**_json(result), "analysis": report.record if report else None})
    elif report:
        print(report.text)
        print(f"\n{report.page}")
    return Exit.after(stop.signal) if stop.signal else _exit_code(result)


def _report(result: DumpResult) -> DumpReport:
    from hprofiler.report.dump import make_dump_report

    return make_dump_report(result.folder.path)


def _print_problems(result: DumpResult) -> None:
    outcomes = [one for host in result.record.hosts for one in host.outcomes]
    failed = [one for one in outcomes if one.status is Status.FAILED and not one.lost]
    print_failures(failed, str(result.folder.path) if result.kept else "", "dumped")
    print_degraded(outcomes)
    if not result.record.dumped:
        idle = next((one.reason for one in outcomes if one.status is Status.IDLE), "")
        print(f"hprofiler: nothing dumped{': ' if idle else ''}{idle}", file=sys.stderr)


def _json(result: DumpResult) -> dict[str, object]:
    record = result.record
    return {
        "folder": str(result.folder.path) if result.kept else None,
        **members(record, "looks", "every", "owners", "interrupted"),
        "processes": {"found": record.processes, "dumped": record.dumped},
        "hosts": [
            {
                "host": host.name,
                "dumps": [members(one, *_OF_DUMP) for one in host.dumps],
                "outcomes": [outcome_record(line) for line in host.outcomes],
            }
            for host in record.hosts
        ],
    }


def _exit_code(result: DumpResult) -> Exit:
    if not result.record.dumped:
        return Exit.NOTHING
    bad = {Status.FAILED, Status.DEGRADED}
    whole = not any(one.status in bad for host in result.record.hosts for one in host.outcomes)
    return Exit.OK if whole and result.record.dumped == result.record.processes else Exit.PARTIAL
