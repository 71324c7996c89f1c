"""`hprofiler apps`: the running applications of a YARN cluster."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.target import YARN_PREFIX
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import age, print_json, print_table
from hprofiler.resolve.yarn.applications import Application
from hprofiler.resolve.yarn.locating import running_applications

HEADINGS = ("APPLICATION", "TYPE", "USER", "QUEUE", "CONTAINERS", "MEMORY", "RUNS FOR", "NAME")
_TO_THE_RIGHT = [HEADINGS.index(heading) for heading in ("CONTAINERS", "MEMORY", "RUNS FOR")]


def command(options: argparse.Namespace) -> int:
    words = options.filter.strip()
    words = words.removeprefix(YARN_PREFIX)
    words = words if "=" in words or not words else f"name={words}*"
    found = running_applications(words, yarn_options.cluster(options))
    if options.json:
        print_json([asdict(app) for app in found])
    elif found:
        print_table([HEADINGS, *map(_row, found)], right=_TO_THE_RIGHT)
    else:
        print("no running application" + (f" that matches {words}" if words else ""), file=sys.stderr)
    return Exit.OK


def _row(app: Application) -> list[str]:
    memory = f"{app.memory_mb / 1024:.1f} GiB"
    return [app.id, app.type, app.user, app.queue, str(app.containers), memory, age(app.elapsed), app.name]
