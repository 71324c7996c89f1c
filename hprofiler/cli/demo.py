"""`hprofiler demo`: a small JVM job on this machine, and the main job on it."""

from __future__ import annotations

import argparse
import sys

from hprofiler.cli import options as chosen
from hprofiler.cli.run import record


def command(options: argparse.Namespace) -> int:
    from hprofiler.demo import running_job
    from hprofiler.resolvers import TargetOptions, resolve
    from hprofiler.resources import selector_directory
    from hprofiler.selection import parse_selector

    located = resolve(TargetOptions())
    with running_job() as job:
        started = ", ".join(f"{process.role} (pid {process.pid})" for process in job.processes)
        print(f"demo: a job of two JVMs is running: {started}", file=sys.stderr)
        selector = parse_selector(job.selector, [selector_directory()])
        return record(options, located, selector, chosen.local_reach(options))
