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

    located, sampling = resolve(TargetOptions()), chosen.sampling(options)
    with running_job(_say) as job:
        started = ", ".join(f"{process.role} (pid {process.pid})" for process in job.processes)
        _say(f"a job of two JVMs is running: {started}")
        selector = parse_selector(job.selector, [selector_directory()])
        return record(options, sampling, located, selector, chosen.local_reach(options))


def _say(what: str) -> None:
    print(f"demo: {what}", file=sys.stderr, flush=True)
