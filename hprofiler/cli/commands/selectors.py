"""`hprofiler selectors`: lists the named selectors."""

from __future__ import annotations

import argparse

from hprofiler.base.bounded_json import members
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json, print_table
from hprofiler.selectors.selection import load_selectors, selector_directories


def command(options: argparse.Namespace) -> int:
    selectors = load_selectors(selector_directories(options.selector_dir)).values()
    if options.json:
        print_json([members(one, "name", "summary") for one in selectors])
    else:
        print_table([(one.name, one.summary) for one in selectors])
    return Exit.OK
