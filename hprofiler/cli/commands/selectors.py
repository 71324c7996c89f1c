"""`hprofiler selectors`: lists the named selectors."""

from __future__ import annotations

import argparse
import json

from hprofiler.cli.options.objects import selector_directories
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_table


def command(options: argparse.Namespace) -> int:
    from hprofiler.selectors.selection import load_selectors

    selectors = load_selectors(selector_directories(options)).values()
    if options.json:
        print(json.dumps([{"name": s.name, "summary": s.summary} for s in selectors], indent=2))
        return Exit.OK
    print_table([(s.name, s.summary) for s in selectors])
    return Exit.OK
