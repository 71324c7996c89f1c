"""`hprofiler outliers DIR`: which hosts and processes of a run differ from the others."""

from __future__ import annotations

import argparse
from pathlib import Path

from hprofiler.analysis.result import find_outliers
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import print_problems
from hprofiler.cli.terminal.lines import print_json
from hprofiler.report.text import outliers_record, outliers_table


def command(options: argparse.Namespace) -> int:
    found = find_outliers(Path(options.folder), options.event, options.trim)
    if options.json:
        events = [{"event": event, **outliers_record(compared)} for event, compared in found.events]
        print_json({"events": events})
    else:
        print("\n\n".join(outliers_table(event, compared) for event, compared in found.events))
    print_problems("not compared", found.problems)
    if not any(compared.hosts for _, compared in found.events):
        return Exit.NOTHING
    return Exit.PARTIAL if found.problems else Exit.OK
